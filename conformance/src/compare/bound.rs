//! How far a number may be from what is expected, and why.

use plumbline_core::num::Dtype;

/// How closely two computations have to agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tier {
    /// Bit by bit: our own backends among each other. They execute the same operations in the same order, so any
    /// difference is a fault.
    Bits,
    /// Against an oracle that computed in that precision: another order of operations, another exponential, the same
    /// mathematics.
    Oracle(Dtype),
}

/// The error that is allowed of one element: `relative` · |expected| + `absolute`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Relative to the element itself.
    pub relative: f64,
    /// Whatever the element is.
    pub absolute: f64,
}

impl Bound {
    /// The error allowed of an element with this expected value.
    pub fn of(self, expected: f64) -> f64 {
        self.relative * expected.abs() + self.absolute
    }
}

impl Tier {
    /// The bound for the elements of an array whose numbers are sums of at most `terms` terms, none larger in magnitude
    /// than `scale`.
    ///
    /// Two computations of the same mathematics in a precision with unit roundoff u (2⁻⁵³, 2⁻²⁴) differ by
    ///
    /// * a *relative* part, the roundings along one chain of products, exponentials and divisions. An exponential
    ///   passes on the absolute error of its argument, which is up to u times the argument; arguments of the golden
    ///   cases reach ±20 (the clamp of the libraries), and a chain has about three roundings there: 60 u, stated as
    ///   64 u = 3.8e-6 for single precision. For double precision the contract is 1e-12, which includes it
    ///   (64 u = 7.1e-15) with room for library code that loses digits (1 + x − 1, a variance from a difference).
    /// * an *absolute* part from sums whose terms cancel. A sum of n terms in any order errs by at most
    ///   (n − 1) · u · Σ|xᵢ|; taken over two computations, and with each term itself a few u off, a mean errs by at most
    ///   4 · n · u · max|xᵢ|. That is what is left where a sum comes out near 0, so it does not shrink with the result.
    pub fn bound(self, terms: usize, scale: f64) -> Bound {
        let (relative, roundoff) = match self {
            Tier::Bits => return Bound { relative: 0.0, absolute: 0.0 },
            Tier::Oracle(Dtype::F64) => (1e-12, f64::EPSILON / 2.0),
            Tier::Oracle(Dtype::F32) => (64.0 * f64::from(f32::EPSILON) / 2.0, f64::from(f32::EPSILON) / 2.0),
        };
        Bound { relative, absolute: 4.0 * terms.max(1) as f64 * roundoff * scale }
    }

    /// The precision that distances are counted in.
    pub fn counted_in(self, file: Dtype) -> Dtype {
        match self {
            Tier::Bits => file,
            Tier::Oracle(dtype) => dtype,
        }
    }
}
