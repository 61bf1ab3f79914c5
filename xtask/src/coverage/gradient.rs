//! What checks an operation's gradients: a library's golden values, and central differences of the operation's own value.
//!
//! Differences are taken by the test `conformance/tests/gradient.rs`, which fails where an operation declares a derivative
//! and none of its elements could be measured. A gradient that is declared to leave out stopped factors is no derivative
//! of the value: only golden values can check it.

use std::fmt;

use plumbline_conformance::fixture::Case;
use plumbline_core::spec::Operation;

/// What checks the gradients of an operation.
#[derive(Default)]
pub struct Check {
    outputs: usize,
    golden: usize,
    differences: bool,
    /// Gradients that nothing checks.
    pub holes: Vec<String>,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.outputs, self.golden, self.differences) {
            (0, ..) => f.write_str("none"),
            (_, 0, true) => f.write_str("differences"),
            (_, golden, false) => write!(f, "{golden} golden"),
            (_, golden, true) => write!(f, "{golden} golden, differences"),
        }
    }
}

/// Look the gradients of an operation up among its golden cases.
pub fn check(operation: &Operation, cases: &[&Case]) -> Check {
    let mut check = Check::default();
    for output in operation.outputs.iter().filter(|output| output.gradient_of.is_some()) {
        check.outputs += 1;
        let golden = cases.iter().filter(|case| case.expected.iter().any(|(name, _)| name == output.name)).count();
        check.golden = check.golden.max(golden);
        check.differences |= !output.stop_gradient;
        if output.stop_gradient && golden == 0 {
            check.holes.push(format!("no golden value of the gradient `{}`, which is no derivative", output.name));
        }
    }
    check
}
