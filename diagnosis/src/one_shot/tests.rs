//! Questions whose answers are known.

use plumbline_core::num::Dtype;
use plumbline_evaluate::tensor::Tensor;
use plumbline_evaluate::{Param, Request, Wanted, evaluate};

use super::{Answer, Conclusion, GradientFit, Printed, Question, in_turn, prepare};
use crate::vectors::Random;

/// Rows of lengths 1, 2, 4 and 3, ratios on both sides of the clip range, advantages of both signs.
fn batch() -> Vec<(String, Tensor)> {
    let mut random = Random::new(7, "one-shot");
    let mut drawn = |shape: Vec<usize>, low: f64, high: f64| {
        let values = (0..shape.iter().product()).map(|_| random.between(low, high)).collect();
        Tensor { shape, values }
    };
    let log_prob = drawn(vec![4, 4], -3.0, -0.1);
    let mut moved = |by: f64| {
        let offsets = drawn(vec![4, 4], -by, by);
        let values = log_prob.values.iter().zip(offsets.values).map(|(number, offset)| number + offset).collect();
        Tensor { shape: vec![4, 4], values }
    };
    let (old, reference) = (moved(0.5), moved(0.7));
    let mask = [1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0].map(f64::from).to_vec();
    vec![
        ("log_probs".into(), log_prob),
        ("old_log_probs".into(), old),
        ("ref_log_prob".into(), reference),
        ("advantages".into(), Tensor { shape: vec![4, 1], values: vec![1.2, -0.7, 0.4, -1.9] }),
        ("response_mask".into(), Tensor { shape: vec![4, 4], values: mask }),
    ]
}

/// The value and the gradient by the log-probabilities of an operation on the batch.
fn value_and_gradient(operation: &str, dialect: Option<&str>, params: &[(&str, Param)]) -> (f64, Tensor) {
    try_value_and_gradient(operation, dialect, params).unwrap()
}

/// `None` where the batch lacks an input.
fn try_value_and_gradient(operation: &str, dialect: Option<&str>, params: &[(&str, Param)]) -> Option<(f64, Tensor)> {
    let names = ["log_prob", "old_log_prob", "ref_log_prob", "advantage", "mask"];
    let mut inputs: Vec<(String, Tensor)> =
        names.iter().zip(batch()).map(|(name, (_, tensor))| ((*name).to_owned(), tensor)).collect();
    inputs[3].1.shape = vec![4];
    let params: Vec<(String, Param)> = params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let outputs = Wanted::Named(&["loss", "d_log_prob"]);
    let request = Request { operation, dialect, dtype: Dtype::F64, params: &params, inputs: &inputs, outputs };
    let outputs = evaluate(&request).ok()?;
    Some((outputs[0].1.values[0], outputs[1].1.clone()))
}

fn question(loss: &str) -> Question {
    Question {
        inputs: batch(),
        result: Printed::parse(loss).unwrap(),
        gradients: Vec::new(),
        operation: None,
        dialect: None,
        params: Vec::new(),
        effort: None,
    }
}

fn answer(question: &Question) -> Answer {
    prepare(question).unwrap().answer(&in_turn)
}

fn has_name(answer: &Answer, operation: &str, dialect: &str) -> bool {
    let mut names = answer.fits.iter().filter(|fit| fit.changes.is_empty()).flat_map(|fit| &fit.names);
    names.any(|name| name.operation == operation && name.dialect == Some(dialect))
}

#[test]
fn every_dialect_of_an_objective_is_found_from_six_digits() {
    let mut asked = 0;
    for id in
        ["objective.grpo", "objective.dapo", "objective.dr_grpo", "objective.cispo", "objective.gspo", "objective.sapo"]
    {
        let operation = plumbline_core::catalog::find(id).unwrap();
        for dialect in operation.dialects {
            let Some((value, _)) = try_value_and_gradient(id, Some(dialect.name), &[]) else { continue };
            let answer = answer(&question(&format!("{value:.6}")));
            assert_eq!(answer.conclusion, Conclusion::Known, "{id} {}: {:?}", dialect.name, answer.fits);
            assert!(has_name(&answer, id, dialect.name), "{id} {}: {:?}", dialect.name, answer.fits);
            assert!(!answer.may_be_chance());
            asked += 1;
        }
    }
    assert!(asked >= 14, "{asked}");
}

#[test]
fn a_changed_parameter_and_a_factor_are_named() {
    let known = [("kl_coefficient", Param::Number(0.3))];
    let (value, _) = value_and_gradient(
        "objective.grpo",
        Some("paper"),
        &[known[0].clone(), ("kl_estimator", Param::Name("k2".into()))],
    );
    let (right, _) = value_and_gradient("objective.grpo", Some("paper"), &known);
    let mut asked = question(&format!("{value:.9}"));
    asked.operation = Some("objective.grpo".into());
    asked.params = vec![("kl_coefficient".into(), Param::Number(0.3))];
    let answered = answer(&asked);
    assert_eq!(answered.conclusion, Conclusion::Changed, "{:?}", answered.fits);
    assert!(answered.fits.iter().any(|fit| fit.changes == ["param:kl_estimator=k2"]), "{:?}", answered.fits);
    assert!((answered.meant_value.unwrap() - right).abs() < 1e-12);
    // Divided by the rows once too often.
    asked.result = Printed::parse(&format!("{:.10}", right / 16.0)).unwrap();
    let answered = answer(&asked);
    assert!(answered.fits.iter().any(|fit| fit.changes == ["factor:1/(B*T)"]), "{:?}", answered.fits);
    // The operands of the KL term are swapped.
    let mut swapped = asked.inputs.clone();
    let doubled: Vec<f64> = swapped[0].1.values.iter().zip(&swapped[2].1.values).map(|(x, y)| 2.0 * x - y).collect();
    swapped[2].1.values = doubled;
    let other = Question { inputs: swapped, ..asked.clone() };
    let value = answer(&other).meant_value.unwrap();
    asked.result = Printed::parse(&format!("{value:.9}")).unwrap();
    let answered = answer(&asked);
    assert!(
        answered.fits.iter().any(|fit| fit.changes == ["reversed:log_prob-ref_log_prob"]),
        "{:?} {:?}",
        answered.fits,
        answered.nearest
    );
}

#[test]
fn a_gradient_tells_apart_what_the_value_does_not() {
    // k1+ has the value of k1 and the gradient of k2.
    let known = ("kl_coefficient", Param::Number(0.3));
    let estimator = ("kl_estimator", Param::Name("k1_plus".into()));
    let (value, gradient) = value_and_gradient("objective.grpo", Some("paper"), &[known.clone(), estimator]);
    let mut asked = question(&format!("{value:.8}"));
    asked.operation = Some("objective.grpo".into());
    asked.params = vec![(known.0.into(), known.1)];
    let has = |answer: &Answer, id: &str| answer.fits.iter().any(|fit| fit.changes == [id]);
    let by_value = answer(&asked);
    assert!(has(&by_value, "param:kl_estimator=k1") && has(&by_value, "param:kl_estimator=k1_plus"), "{by_value:?}");
    assert!(by_value.fits.iter().all(|fit| fit.gradient == GradientFit::NotGiven) && by_value.apart.is_some());
    asked.gradients = vec![(String::new(), Printed::guessed(gradient.clone()))];
    let with_gradient = answer(&asked);
    assert!(has(&with_gradient, "param:kl_estimator=k1_plus"), "{:?}", with_gradient.fits);
    assert!(!has(&with_gradient, "param:kl_estimator=k1"), "{:?}", with_gradient.fits);
    // A gradient that is twice the right one.
    let doubled = Tensor { values: gradient.values.iter().map(|number| 2.0 * number).collect(), ..gradient };
    asked.gradients = vec![("log_probs".into(), Printed::guessed(doubled))];
    let answered = answer(&asked);
    assert_eq!(answered.conclusion, Conclusion::GradientDiffers, "{:?}", answered.fits);
    let texts: Vec<String> = answered.fits.iter().map(|fit| format!("{:?}", fit.gradient)).collect();
    assert!(texts.iter().any(|text| text.contains("is 2 times the right one")), "{texts:?}");
}

#[test]
fn few_digits_and_strangers_are_told_honestly() {
    let vague = answer(&question("0.5"));
    assert!(vague.fits.is_empty() || vague.may_be_chance(), "{:?}", vague.by_chance);
    let stranger = answer(&question("123456.789012"));
    assert_eq!(stranger.conclusion, Conclusion::Unknown);
    assert_eq!(stranger.nearest.len(), 3);
    assert!(stranger.tried > 1000 && stranger.by_chance < 0.01);
}

#[test]
fn effort_has_a_limit_and_what_is_left_out_is_counted() {
    let mut asked = question("123456.789012");
    asked.effort = Some(16 * 60);
    let answered = answer(&asked);
    assert!(answered.left_out > 0, "{answered:?}");
}

#[test]
fn refusals_name_the_argument() {
    let mut bad = question("0.5");
    bad.inputs[4].1.values[2] = 0.5;
    let text = |question: &Question| prepare(question).err().map(|error| error.message).unwrap_or_default();
    let place = |question: &Question| prepare(question).err().map(|error| (error.argument, error.index));
    assert_eq!(place(&bad), Some((Some("response_mask".into()), Some(2))));
    assert_eq!(text(&bad), "`mask` at index 2 is 0.5, legal is 0 or 1");
    let mut bad = question("0.5");
    bad.inputs.retain(|(name, _)| name != "log_probs");
    assert!(text(&bad).contains("also needs log_prob"), "{}", text(&bad));
    let mut bad = question("0.5");
    bad.operation = Some("objective.grop".into());
    assert!(text(&bad).contains("did you mean `objective.grpo`?"), "{}", text(&bad));
    let mut bad = question("0.5");
    bad.operation = Some("objective.grpo".into());
    bad.inputs[1].1.values[0] = f64::NAN;
    assert_eq!(text(&bad), "`old_log_prob` at index 0 is not finite");
    assert_eq!(place(&bad), Some((Some("old_log_probs".into()), Some(0))));
    // The same where nothing is said to be meant: no operation has a value then.
    bad.operation = None;
    assert_eq!(text(&bad), "`old_log_prob` at index 0 is not finite");
    let mut bad = question("0.5");
    bad.inputs.push(("logp".into(), bad.inputs[0].1.clone()));
    assert_eq!(text(&bad), "`log_probs` and `logp` are both `log_prob`; give one of them");
    let mut bad = question("0.5");
    bad.params = vec![("clip_ratio_lo".into(), Param::Number(0.1))];
    assert!(text(&bad).contains("did you mean `clip_ratio_low`?"), "{}", text(&bad));
}
