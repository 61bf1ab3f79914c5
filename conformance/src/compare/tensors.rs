//! Compare one output with what is expected of it.

use plumbline_core::num::Dtype;

use super::bound::{Bound, Tier};
use super::distance::{relative_error, ulp_distance};
use plumbline_evaluate::tensor::{Tensor, round_to};

/// How well two arrays agree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agreement {
    /// How many elements were compared.
    pub elements: usize,
    /// How many were outside their bound.
    pub outside: usize,
    /// How many agree only by the absolute part of their bound: their terms cancel, and relative figures say nothing.
    pub cancelled: usize,
    /// The largest distance in units of the last place, cancelled elements left out.
    pub worst_ulp: u64,
    /// The largest relative error, cancelled elements left out.
    pub worst_relative: f64,
    /// The first element outside its bound.
    pub first: Option<Difference>,
}

/// One element that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Its place, outermost first.
    pub position: Vec<usize>,
    /// What was expected.
    pub expected: f64,
    /// What came.
    pub got: f64,
    /// |got − expected|.
    pub absolute: f64,
    /// The error that is allowed.
    pub allowed: f64,
}

/// Compare `got` with `expected`, element by element; the shapes must be equal (`None` where they are not).
///
/// NaN agrees with nothing, itself included: no operation has a reason to give it. Infinities agree by sign.
pub fn compare(expected: &Tensor, got: &Tensor, tier: Tier, dtype: Dtype, bound: Bound) -> Option<Agreement> {
    if expected.shape != got.shape || expected.values.len() != got.values.len() {
        return None;
    }
    let counted_in = tier.counted_in(dtype);
    let mut agreement = Agreement { elements: expected.values.len(), ..Agreement::default() };
    for (index, (&wanted, &came)) in expected.values.iter().zip(&got.values).enumerate() {
        let absolute = if wanted == came { 0.0 } else { (came - wanted).abs() };
        let allowed = bound.of(wanted);
        let same_bits = wanted.to_bits() == came.to_bits() && !wanted.is_nan();
        let inside = match tier {
            Tier::Bits => same_bits,
            // Written so that a NaN on either side, or infinity against a number, is outside.
            Tier::Oracle(_) => absolute == 0.0 || (wanted.is_finite() && came.is_finite() && absolute <= allowed),
        };
        let by_relative = absolute <= bound.relative * wanted.abs();
        if inside && !same_bits && !by_relative {
            agreement.cancelled += 1;
        } else {
            let relative = relative_error(wanted, came);
            agreement.worst_relative =
                if relative.is_nan() { f64::INFINITY } else { agreement.worst_relative.max(relative) };
            let ulp = ulp_distance(round_to(wanted, counted_in), round_to(came, counted_in), counted_in);
            agreement.worst_ulp = agreement.worst_ulp.max(ulp.unwrap_or(u64::MAX));
        }
        if !inside {
            agreement.outside += 1;
            agreement.first.get_or_insert_with(|| Difference {
                position: expected.position(index),
                expected: wanted,
                got: came,
                absolute,
                allowed,
            });
        }
    }
    Some(agreement)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(values: &[f64]) -> Tensor {
        Tensor { shape: vec![values.len()], values: values.to_vec() }
    }

    fn f64_tier(expected: &[f64], got: &[f64]) -> Agreement {
        let tier = Tier::Oracle(Dtype::F64);
        compare(&vector(expected), &vector(got), tier, Dtype::F64, tier.bound(2, 1.0)).unwrap()
    }

    #[test]
    fn nan_never_agrees_and_infinities_agree_by_sign() {
        assert_eq!(f64_tier(&[f64::NAN], &[f64::NAN]).outside, 1);
        assert_eq!(f64_tier(&[1.0], &[f64::NAN]).outside, 1);
        assert_eq!(f64_tier(&[f64::NAN], &[1.0]).outside, 1);
        assert_eq!(f64_tier(&[f64::INFINITY, f64::NEG_INFINITY], &[f64::INFINITY, f64::NEG_INFINITY]).outside, 0);
        assert_eq!(f64_tier(&[f64::INFINITY], &[f64::NEG_INFINITY]).outside, 1);
        assert_eq!(f64_tier(&[f64::INFINITY], &[f64::MAX]).outside, 1);
        assert_eq!(f64_tier(&[f64::MAX], &[f64::INFINITY]).outside, 1);
        let same =
            compare(&vector(&[f64::NAN]), &vector(&[f64::NAN]), Tier::Bits, Dtype::F64, Tier::Bits.bound(1, 1.0));
        assert_eq!(same.unwrap().outside, 1);
    }

    #[test]
    fn bits_tell_the_zeros_apart() {
        let bits = |expected: f64, got: f64| {
            compare(&vector(&[expected]), &vector(&[got]), Tier::Bits, Dtype::F64, Tier::Bits.bound(1, 1.0)).unwrap()
        };
        assert_eq!(bits(0.0, -0.0).outside, 1);
        assert_eq!(bits(0.5, 0.5).outside, 0);
        assert_eq!(bits(0.5, f64::from_bits(0.5f64.to_bits() + 1)).outside, 1);
        assert_eq!(f64_tier(&[0.0], &[-0.0]).outside, 0);
    }

    #[test]
    fn the_relative_bound_is_1e_12_and_the_first_element_outside_is_told() {
        assert_eq!(f64_tier(&[100.0], &[100.0 * (1.0 + 0.9e-12)]).outside, 0);
        let agreement = f64_tier(&[1.0, 100.0], &[1.0, 100.0 * (1.0 + 1.2e-12)]);
        assert_eq!(agreement.outside, 1);
        let first = agreement.first.unwrap();
        assert_eq!((first.position.as_slice(), first.expected), ([1].as_slice(), 100.0));
        assert!((agreement.worst_relative - 1.2e-12).abs() < 1e-15);
    }

    #[test]
    fn a_cancelled_sum_is_held_to_the_absolute_bound() {
        let floor = 4.0 * 2.0 * f64::EPSILON / 2.0;
        let kept = f64_tier(&[0.0], &[0.9 * floor]);
        assert_eq!((kept.outside, kept.cancelled, kept.worst_ulp), (0, 1, 0));
        assert_eq!(f64_tier(&[0.0], &[1.1 * floor]).outside, 1);
    }

    #[test]
    fn shapes_must_be_equal() {
        let tier = Tier::Oracle(Dtype::F32);
        assert!(compare(&Tensor::scalar(1.0), &vector(&[1.0]), tier, Dtype::F32, tier.bound(1, 1.0)).is_none());
    }
}
