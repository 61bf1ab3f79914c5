//! Coefficients: parameters that multiply one term of a sum.

use plumbline_core::spec::{ParamKind, ParamSpec, Value};

use super::change::Change;
use super::meaning::Meaning;
use super::space::Point;
use super::tolerance::Tolerance;
use crate::vectors::Case;

/// The parameters in which the value is linear on every case, and not constant: 0 is legal and switches the term off.
/// Discounts and shares (at most 1) are none.
pub(super) fn coefficients(meaning: &Meaning, cases: &[&Case]) -> Vec<&'static ParamSpec> {
    let may_be =
        |kind: ParamKind| matches!(kind, ParamKind::Number { range, .. } if range.contains(0.0) && range.high > 1.0);
    let params = meaning.operation.params.iter().filter(|param| may_be(param.kind));
    params.filter(|param| is_linear(meaning, cases, param.name)).collect()
}

fn is_linear(meaning: &Meaning, cases: &[&Case], name: &'static str) -> bool {
    let mut has_term = false;
    for case in cases {
        let value_at = |factor: f64| {
            let change = match factor {
                0.0 => Change::Set(name, Value::Number(0.0)),
                _ => Change::Scale(name, factor),
            };
            Some(Point { meaning, changes: vec![change] }.numbers(case, &[]).ok()?.value)
        };
        let (Some(none), Some(once), Some(twice)) = (value_at(0.0), value_at(1.0), value_at(2.0)) else { continue };
        let all_finite = |values: &[f64]| values.iter().all(|value| value.is_finite());
        if !all_finite(&none) || !all_finite(&once) || !all_finite(&twice) {
            continue;
        }
        has_term |= none != once;
        for ((none, once), twice) in none.iter().zip(&once).zip(twice) {
            let scale = none.abs().max(once.abs());
            if !Tolerance::DOUBLE.same_at_scale(twice, 2.0 * once - none, scale) {
                return false;
            }
        }
    }
    has_term
}

#[cfg(test)]
mod tests {
    use plumbline_core::catalog;

    use super::{Meaning, coefficients};
    use crate::vectors::Case;
    use crate::vectors_of;

    #[test]
    fn coefficients_are_told_from_bounds_and_epsilons() {
        let names = |id: &str| {
            let meaning = Meaning { operation: catalog::find(id).unwrap(), dialect: None, settings: Vec::new() };
            let cases = vectors_of(&meaning, 1).unwrap();
            let clean: Vec<&Case> = cases.iter().filter(|case| case.id.starts_with("random-")).collect();
            coefficients(&meaning, &clean).into_iter().map(|param| param.name).collect::<Vec<_>>()
        };
        assert_eq!(names("objective.grpo"), ["kl_cov_coefficient", "kl_coefficient", "entropy_coefficient"]);
        assert_eq!(names("kl.reward_penalty"), ["kl_coefficient"]);
        assert_eq!(names("surrogate.ppo_clip"), Vec::<&str>::new());
    }
}
