//! The evidence in order, and what is said of it.

use super::evidence::{Sample, token_pattern};
use super::finding::{Explanation, Finding, FindingKind, Verdict, Worst};
use super::invariance::failures;
use super::meaning::{Meaning, Numbers, Trainable, outputs};
use super::search::Search;
use super::space::Point;
use super::tolerance::Tolerance;
use super::words::{number, place};
use crate::vectors::{Case, Junk, Purpose};
use plumbline_core::spec::Family;
use plumbline_evaluate::tensor::Tensor;

/// What an implementation did on a case.
#[derive(Clone, Debug, PartialEq)]
pub enum Observed {
    /// It gave outputs.
    Outputs(Vec<(String, Tensor)>),
    /// It left the case out, with a reason.
    Skipped(String),
    /// It raised an error of its own.
    Raised(String),
    /// It broke the protocol or died.
    Broken(String),
    /// It was not asked.
    NotAsked,
}

/// A case and what was observed on it.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The case.
    pub case: Case,
    /// What the implementation did.
    pub observed: Observed,
}

/// The result on one operation.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    /// The verdict.
    pub verdict: Verdict,
    /// Cases whose numbers were compared.
    pub compared: usize,
    /// Cases that the implementation left out, with the reasons.
    pub skipped: Vec<String>,
    /// Whether gradients were compared.
    pub gradients: bool,
    /// The number that differs most.
    pub worst: Option<Worst>,
    /// What was found, in order of the evidence.
    pub findings: Vec<Finding>,
}

/// The most explanations that are printed.
const SHOWN: usize = 6;

/// Compare what was observed with what was meant and say what explains the difference.
pub fn diagnose(meaning: &Meaning, declared_dialect: bool, seen: &[Observation], tolerance: Tolerance) -> Diagnosis {
    let mut findings = broken_and_raised(seen);
    let mut is_broken = !findings.is_empty();
    let skipped = seen
        .iter()
        .filter_map(|seen| match &seen.observed {
            Observed::Skipped(reason) => Some(reason.clone()),
            _ => None,
        })
        .collect();
    let samples: Vec<Sample<'_>> = seen.iter().filter_map(|seen| sample(meaning, seen)).collect();
    findings.extend(not_finite(&samples, tolerance));
    findings.extend(masked_junk(meaning, seen, tolerance));
    let clean: Vec<Sample<'_>> = samples
        .iter()
        .filter(|sample| !matches!(sample.case.purpose, Purpose::UnderMask { .. }))
        .filter(|sample| !has_unexpected(sample, tolerance))
        .cloned()
        .collect();
    let worst = worst_of(samples.iter(), tolerance);
    let differing = clean.iter().filter(|sample| !sample.is_right(tolerance)).count();
    let mut conforms_to = None;
    if differing > 0 {
        let id_of = |position: usize| seen.get(position).map(|seen| seen.case.id.clone());
        let finding = explain(meaning, &clean, &failures(&clean, &id_of, tolerance), tolerance);
        // Where nothing was declared and nothing else is wrong, numbers of another dialect are no mistake.
        conforms_to = finding
            .explanations
            .iter()
            .find_map(|explanation| match explanation.ids.as_slice() {
                [id] => id.strip_prefix("dialect:"),
                _ => None,
            })
            .filter(|_| !declared_dialect && findings.is_empty())
            .and_then(|name| meaning.operation.dialect(name))
            .map(|dialect| dialect.name);
        if conforms_to.is_none() {
            // What follows from the explanation is no finding of its own: junk that is counted, a mean of nothing.
            let explained: Vec<&Explanation> =
                finding.explanations.iter().filter(|explanation| !explanation.changes.is_empty()).collect();
            let affected = seen.iter().filter(|seen| is_broken_off(meaning, seen, tolerance));
            let all_follow = |explanation: &&Explanation| {
                let point = Point { meaning, changes: explanation.changes.clone() };
                affected.clone().all(|seen| follows(&point, seen, tolerance))
            };
            if explained.iter().any(all_follow) {
                findings.retain(|finding| finding.kind == FindingKind::Broken);
                is_broken = !findings.is_empty();
            }
            findings.push(finding);
        }
    }
    if conforms_to.is_none() {
        findings.extend(other_outputs(meaning, seen, tolerance));
    }
    findings.extend(under_mask(meaning, &samples));
    findings.sort_by_key(|finding| finding.kind);
    let verdict = match conforms_to {
        Some(name) => Verdict::ConformsToDialect(name),
        None if is_broken => Verdict::Broken,
        None if samples.is_empty() => Verdict::NotCompared,
        None if findings.iter().all(|finding| finding.kind == FindingKind::UnderMask) => Verdict::Conforms,
        None => Verdict::Differs,
    };
    Diagnosis {
        verdict,
        compared: samples.len(),
        skipped,
        gradients: samples.iter().any(|sample| !sample.trainables.is_empty()),
        worst,
        findings,
    }
}

/// The number that differs most of those that count as different, on an ordinary case where one differs: far cases are large
/// in everything.
fn worst_of<'a>(samples: impl Iterator<Item = &'a Sample<'a>> + Clone, tolerance: Tolerance) -> Option<Worst> {
    let most = |of_purpose: &dyn Fn(Purpose) -> bool| {
        let chosen = samples.clone().filter(|sample| of_purpose(sample.case.purpose));
        chosen
            .filter_map(|sample| sample.worst(tolerance))
            .max_by(|first, second| first.difference.total_cmp(&second.difference))
    };
    most(&|purpose| purpose == Purpose::Regular).or_else(|| most(&|_| true))
}

fn broken_and_raised(seen: &[Observation]) -> Vec<Finding> {
    let mut findings: Vec<(FindingKind, &str, Vec<&str>)> = Vec::new();
    for seen in seen {
        let (kind, text) = match &seen.observed {
            Observed::Broken(text) => (FindingKind::Broken, text),
            Observed::Raised(text) => (FindingKind::Raised, text),
            _ => continue,
        };
        match findings.iter_mut().find(|(other, words, _)| *other == kind && words == text) {
            Some((_, _, cases)) => cases.push(&seen.case.id),
            None => findings.push((kind, text, vec![&seen.case.id])),
        }
    }
    findings
        .into_iter()
        .map(|(kind, text, cases)| Finding {
            kind,
            text: format!("On {}: {text}.", list(&cases)),
            explanations: Vec::new(),
            case: cases.first().copied().unwrap_or_default().into(),
        })
        .collect()
}

fn list(cases: &[&str]) -> String {
    let shown = cases.iter().take(3).map(|case| format!("`{case}`")).collect::<Vec<_>>().join(", ");
    match cases.len() {
        0..=3 => shown,
        more => format!("{shown} and {} more cases", more - 3),
    }
}

/// The numbers of both sides on one case, where the implementation gave some.
fn sample<'a>(meaning: &Meaning, seen: &'a Observation) -> Option<Sample<'a>> {
    let Observed::Outputs(given) = &seen.observed else { return None };
    let find = |name: &str| given.iter().find(|(given, _)| given == name).map(|(_, tensor)| tensor);
    let main = meaning.operation.outputs.first()?;
    let trainables: Vec<Trainable> =
        meaning.trainables(&seen.case).into_iter().filter(|trainable| find(trainable.output).is_some()).collect();
    let value = find(main.name)?;
    let gradients = trainables.iter().filter_map(|trainable| Some(find(trainable.output)?.values.clone())).collect();
    let point = Point { meaning, changes: Vec::new() };
    let expected = point.numbers(&seen.case, &trainables).ok()?;
    let mask = seen.case.input("mask").filter(|mask| mask.shape == value.shape);
    let kept = match mask {
        Some(mask) => mask.values.iter().map(|value| *value != 0.0).collect(),
        None => vec![true; value.values.len()],
    };
    let got = Numbers { value: value.values.clone(), gradients, uncertainty: 0.0 };
    Some(Sample { case: &seen.case, trainables, got, expected, main: (main.name, value.shape.clone()), kept })
}

fn has_unexpected(sample: &Sample<'_>, tolerance: Tolerance) -> bool {
    sample.pairs().any(|(_, _, got, expected)| {
        !got.is_finite() && !tolerance.same(got, expected) && expected.abs() <= tolerance.largest
    })
}

fn not_finite(samples: &[Sample<'_>], tolerance: Tolerance) -> Option<Finding> {
    let affected: Vec<&Sample<'_>> = samples
        .iter()
        .filter(|sample| !matches!(sample.case.purpose, Purpose::UnderMask { .. }))
        .filter(|sample| has_unexpected(sample, tolerance))
        .collect();
    let first = affected.first()?;
    let (output, position, got, expected) =
        first.pairs().find(|(_, _, got, expected)| !got.is_finite() && !tolerance.same(*got, *expected))?;
    let cases: Vec<&str> = affected.iter().map(|sample| sample.case.id.as_str()).collect();
    let when = if affected.iter().all(|sample| sample.case.purpose == Purpose::EmptyRow) {
        " It happens only where a row has no token."
    } else if affected.iter().all(|sample| sample.case.purpose == Purpose::FarRatio) {
        " It happens only where log-ratios are large: an overflow."
    } else if affected.iter().all(|sample| sample.case.purpose == Purpose::Edge) {
        " It happens only on an edge case."
    } else {
        ""
    };
    Some(Finding {
        kind: FindingKind::NotFinite,
        text: format!(
            "On {} `{output}`{} is {got} where {} is right.{when}",
            list(&cases),
            place(&position),
            number(expected)
        ),
        explanations: Vec::new(),
        case: first.case.id.clone(),
    })
}

/// An input whose numbers under the mask change the result.
struct Leak {
    input: &'static str,
    kinds: Vec<Junk>,
    value: bool,
    gradient: bool,
    example: String,
    case: String,
}

/// One finding for each input whose numbers under the mask change the result.
fn masked_junk(meaning: &Meaning, seen: &[Observation], tolerance: Tolerance) -> Vec<Finding> {
    let mut leaks: Vec<Leak> = Vec::new();
    for probe in seen {
        let Purpose::UnderMask { input, junk, clean } = probe.case.purpose else { continue };
        let Some(clean) = seen.get(clean) else { continue };
        let (Some(with), Some(without)) = (sample(meaning, probe), sample(meaning, clean)) else { continue };
        if has_unexpected(&without, tolerance) {
            continue;
        }
        // A per-token value may hold anything under the mask, but not NaN: a sum over it times the mask would be NaN.
        let spoilt =
            with.got.value.iter().zip(&without.got.value).any(|(with, without)| with.is_nan() && !without.is_nan());
        let value = spoilt || !with.value_is(&without.got, tolerance);
        let gradient = !with.gradient_is(&without.got, tolerance);
        if !value && !gradient {
            continue;
        }
        let pair = with.pairs().zip(without.pairs()).find(|(with, without)| !tolerance.same(with.2, without.2));
        let example = pair.map_or(String::new(), |((output, position, with, _), (_, _, without, _))| {
            format!("`{output}`{} becomes {} instead of {}", place(&position), number(with), number(without))
        });
        match leaks.iter_mut().find(|leak| leak.input == input) {
            Some(leak) => {
                leak.kinds.push(junk);
                leak.value |= value;
                leak.gradient |= gradient;
            }
            None => {
                let case = probe.case.id.clone();
                leaks.push(Leak { input, kinds: vec![junk], value, gradient, example, case });
            }
        }
    }
    leaks
        .into_iter()
        .map(|Leak { input, kinds, value, gradient, example, case }| {
            let kinds_text = kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
            let (where_text, where_id) = match (value, gradient) {
                (true, true) => ("the value and the gradient", "value-and-gradient"),
                (true, false) => ("the value", "value"),
                _ => ("the gradient only", "gradient"),
            };
            let finite = kinds.contains(&Junk::Large);
            let cause = if finite {
                "the masked slots are used as numbers"
            } else {
                "0 times NaN is NaN: the mask is multiplied where it should select"
            };
            Finding {
                kind: FindingKind::MaskedJunk,
                text: format!(
                    "What stands under the mask in `{input}` ({kinds_text}) reaches {where_text}: {example} on `{case}`; {cause}."
                ),
                explanations: vec![Explanation {
                    ids: vec![format!("masked-junk:{input}:{where_id}")],
                    text: format!("masked slots of `{input}` are left out before anything is computed from them"),
                    cost: 0,
                    changes: Vec::new(),
                }],
                case,
            }
        })
        .collect()
}

/// Whether a case shows something that is looked at before the numbers: an error, a number that is not finite, junk.
fn is_broken_off(meaning: &Meaning, seen: &Observation, tolerance: Tolerance) -> bool {
    let is_junk = matches!(seen.case.purpose, Purpose::UnderMask { .. });
    matches!(seen.observed, Observed::Raised(_))
        || sample(meaning, seen).is_some_and(|sample| is_junk || has_unexpected(&sample, tolerance))
}

/// Whether an implementation that computes this point would do on a case what was observed there.
fn follows(point: &Point<'_>, seen: &Observation, tolerance: Tolerance) -> bool {
    if matches!(seen.observed, Observed::Raised(_)) {
        return point.numbers(&seen.case, &[]).is_err();
    }
    let Some(sample) = sample(point.meaning, seen) else { return true };
    match point.numbers(&seen.case, &sample.trainables) {
        // The core refuses where a framework goes on with numbers that are not finite.
        Err(_) => {
            matches!(seen.case.purpose, Purpose::UnderMask { junk, .. } if !junk.number().is_finite())
                || sample.got.all().any(|number| !number.is_finite())
        }
        Ok(numbers) => sample.value_is(&numbers, tolerance) && sample.gradient_is(&numbers, tolerance),
    }
}

/// Advantages and rewards that are not 0 in masked slots, where the operation's own are: a sum over all slots counts them.
fn under_mask(meaning: &Meaning, samples: &[Sample<'_>]) -> Option<Finding> {
    if !matches!(meaning.operation.family, Family::Advantage | Family::Reward) {
        return None;
    }
    let regular = samples.iter().filter(|sample| !matches!(sample.case.purpose, Purpose::UnderMask { .. }));
    let (sample, slot) = regular.into_iter().find_map(|sample| {
        let pairs = sample.got.value.iter().zip(&sample.expected.value);
        let mut masked = pairs.zip(&sample.kept).enumerate().filter(|(_, (_, kept))| !**kept);
        let (slot, _) = masked.find(|(_, ((got, expected), _))| **expected == 0.0 && **got != 0.0)?;
        Some((sample, slot))
    })?;
    let position = Tensor { shape: sample.main.1.clone(), values: Vec::new() }.position(slot);
    Some(Finding {
        kind: FindingKind::UnderMask,
        text: format!(
            "A remark, no deviation: under the mask `{}`{} is {} on `{}`, where 0 would be safe; whatever sums over all slots \
             counts it.",
            sample.main.0,
            place(&position),
            number(sample.got.value[slot]),
            sample.case.id
        ),
        explanations: Vec::new(),
        case: sample.case.id.clone(),
    })
}

/// Outputs that the implementation gave beside value and gradients.
fn other_outputs(meaning: &Meaning, seen: &[Observation], tolerance: Tolerance) -> Vec<Finding> {
    let mut findings = Vec::new();
    for spec in meaning.operation.outputs.iter().skip(1).filter(|spec| spec.gradient_of.is_none()) {
        let mut bad: Option<(String, f64, f64)> = None;
        let mut differing = 0;
        let mut total = 0;
        let mut alike: Option<Vec<String>> = None;
        for seen in seen.iter().filter(|seen| !matches!(seen.case.purpose, Purpose::UnderMask { .. })) {
            let Observed::Outputs(given) = &seen.observed else { continue };
            let Some((_, got)) = given.iter().find(|(name, _)| name == spec.name) else { continue };
            let expected = meaning
                .parameters(&seen.case)
                .and_then(|params| outputs(meaning.operation, &params, &seen.case.inputs, &[spec.name]));
            let Ok(expected) = expected.map(|mut all| all.remove(0)) else { continue };
            let mask = seen.case.input("mask").filter(|mask| mask.shape == got.shape);
            let kept = |slot: usize| mask.is_none_or(|mask| mask.values[slot] != 0.0);
            total += 1;
            let now: Vec<String> = look_alikes(meaning, seen, given, got, tolerance);
            alike = Some(match alike {
                None => now,
                Some(before) => before.into_iter().filter(|name| now.contains(name)).collect(),
            });
            let pairs = got.values.iter().zip(&expected).enumerate();
            let first = pairs.filter(|(slot, _)| kept(*slot)).find(|(_, (got, right))| !tolerance.same(**got, **right));
            if let Some((_, (got, right))) = first {
                differing += 1;
                bad.get_or_insert((seen.case.id.clone(), *got, *right));
            }
        }
        if let Some((case, got, right)) = bad {
            findings.push(Finding {
                kind: FindingKind::OtherOutput,
                text: format!(
                    "`{}` differs on {differing} of {total} cases: on `{case}` it is {}, right is {}.",
                    spec.name,
                    number(got),
                    number(right)
                ),
                explanations: alike
                    .unwrap_or_default()
                    .into_iter()
                    .filter(|name| name != spec.name)
                    .map(|name| Explanation {
                        ids: vec![format!("output:{}:equals:{name}", spec.name)],
                        text: format!("`{}` is what `{name}` should be", spec.name),
                        cost: 2,
                        changes: Vec::new(),
                    })
                    .collect(),
                case,
            });
        }
    }
    findings
}

/// Inputs and right outputs whose numbers an output has, where the mask keeps them.
fn look_alikes(
    meaning: &Meaning,
    seen: &Observation,
    given: &[(String, Tensor)],
    got: &Tensor,
    tolerance: Tolerance,
) -> Vec<String> {
    let mask = seen.case.input("mask").filter(|mask| mask.shape == got.shape);
    let same = |values: &[f64]| {
        values.len() == got.values.len()
            && got.values.iter().zip(values).enumerate().all(|(slot, (got, other))| {
                mask.is_some_and(|mask| mask.values[slot] == 0.0) || tolerance.same(*got, *other)
            })
    };
    let inputs = seen.case.inputs.iter().filter(|(_, tensor)| same(&tensor.values)).map(|(name, _)| name.to_string());
    let outputs_named = given.iter().filter_map(|(name, _)| {
        let spec = meaning.operation.output(name).filter(|spec| spec.gradient_of.is_none())?;
        let params = meaning.parameters(&seen.case).ok()?;
        let right = outputs(meaning.operation, &params, &seen.case.inputs, &[spec.name]).ok()?.pop()?;
        same(&right).then(|| name.clone())
    });
    inputs.chain(outputs_named).collect()
}

/// The finding for numbers that are finite and not right.
fn explain(meaning: &Meaning, samples: &[Sample<'_>], invariances: &[String], tolerance: Tolerance) -> Finding {
    let differing: Vec<&Sample<'_>> = samples.iter().filter(|sample| !sample.is_right(tolerance)).collect();
    let worst = worst_of(differing.iter().copied(), tolerance);
    let mut text = format!("{} of {} cases differ", differing.len(), samples.len());
    let mut case = String::new();
    if let Some(worst) = &worst {
        case.clone_from(&worst.case);
        text += &format!(
            ", most on `{}`: `{}`{} is {}, right is {}",
            worst.case,
            worst.output,
            place(&worst.position),
            number(worst.got),
            number(worst.expected)
        );
    }
    let token = differing.iter().find_map(|sample| Some((sample, sample.first_difference(tolerance)?)));
    if let Some((sample, (output, position, got, expected))) = token {
        text += &format!(
            "; the first differing token is `{output}`{} on `{}`: {} instead of {}",
            place(&position),
            sample.case.id,
            number(got),
            number(expected)
        );
    }
    text.push('.');
    if samples.iter().all(|sample| sample.value_is(&sample.expected, tolerance)) {
        text += " The value is right everywhere; only the gradient differs.";
    }
    let unusual = |sample: &&Sample<'_>| sample.case.purpose != Purpose::Regular;
    if differing.iter().all(unusual) {
        let names: Vec<&str> = differing.iter().map(|sample| sample.case.id.as_str()).collect();
        text += &format!(" Ordinary cases are right: only {} is affected.", list(&names));
    }
    for invariance in invariances {
        text += &format!(" {invariance}.");
    }
    if let Some(pattern) = token_pattern(meaning.operation, samples, tolerance) {
        text += &format!(" As for the gradient, {pattern}.");
    }
    let mut explanations = Search { meaning, samples, tolerance }.explanations();
    if tolerance == Tolerance::DOUBLE && samples.iter().all(|sample| sample.is_right(Tolerance::SINGLE)) {
        explanations.push(Explanation {
            ids: vec!["precision:f32".into()],
            text: format!(
                "something inside is computed in single precision: all numbers agree within {:e} of their size",
                Tolerance::SINGLE.relative
            ),
            cost: 2,
            changes: Vec::new(),
        });
    }
    let mut kind = FindingKind::Explained;
    if explanations.is_empty() {
        let regular: Vec<Sample<'_>> =
            samples.iter().filter(|sample| sample.case.purpose == Purpose::Regular).cloned().collect();
        let is_smaller = regular.len() < samples.len() && regular.iter().any(|sample| !sample.is_right(tolerance));
        if is_smaller {
            explanations = Search { meaning, samples: &regular, tolerance }.explanations();
            if !explanations.is_empty() {
                text +=
                    " On ordinary cases (not on the empty row or the far ratios, which need more) this explains it:";
            }
        }
    }
    if explanations.is_empty() {
        kind = match differing.iter().all(unusual) {
            true => FindingKind::EdgeOnly,
            false if !invariances.is_empty() => FindingKind::Invariance,
            false => FindingKind::Unknown,
        };
        text += &Search { meaning, samples, tolerance }.unknown();
    }
    // Of equally simple ones first those that agree under the mask too, where nothing need agree.
    explanations.sort_by_cached_key(|explanation| {
        let point = Point { meaning, changes: explanation.changes.clone() };
        let agrees = |sample: &Sample<'_>| {
            point.numbers(sample.case, &[]).is_ok_and(|numbers| tolerance.all_same(&sample.got.value, &numbers.value))
        };
        (explanation.cost, !explanation.changes.is_empty() && !samples.iter().all(agrees))
    });
    if kind == FindingKind::Explained {
        let words = explanations.iter().take(SHOWN).map(|explanation| explanation.text.as_str()).collect::<Vec<_>>();
        text += &match words.as_slice() {
            [one] => format!(" The numbers are right if {one}."),
            several => format!(
                " {} explanations fit equally; the numbers are right if {}{}.",
                explanations.len(),
                several.join("; or if "),
                if explanations.len() > SHOWN { "; …" } else { "" }
            ),
        };
    }
    Finding { kind, text, explanations, case }
}

#[cfg(test)]
mod tests {
    use plumbline_core::catalog;
    use plumbline_core::num::Dtype;

    use super::{Observation, Observed, Verdict, diagnose};
    use crate::meaning::outputs;
    use crate::vectors::{Case, Purpose, Taken, cases_for};
    use crate::{Meaning, Tolerance};
    use plumbline_evaluate::tensor::{Tensor, round_to};

    /// In single precision every ordinary number is off by rounding; what is wrong on a far case only is still the worst.
    #[test]
    fn a_far_case_has_the_worst_number_where_ordinary_ones_are_off_by_rounding_only() {
        let meaning = Meaning { operation: catalog::find("kl.k3").unwrap(), dialect: None, settings: Vec::new() };
        let empty = Case { id: String::new(), purpose: Purpose::Regular, overrides: Vec::new(), inputs: Vec::new() };
        let base = meaning.parameters(&empty).unwrap();
        let cases =
            cases_for(meaning.operation, &base, &Taken::default(), 1, Dtype::F32, &|case| meaning.accepts(case));
        let answer = |case: Case| {
            let params = meaning.parameters(&case).unwrap();
            let mut values = outputs(meaning.operation, &params, &case.inputs, &["kl"]).unwrap().remove(0);
            let is_far = case.id == "far-ratio";
            let given = |value: f64| if is_far { value.min(15.0) } else { value * (1.0 + 1e-7) };
            values.iter_mut().for_each(|value| *value = round_to(given(*value), Dtype::F32));
            let shape = case.input("log_prob").unwrap().shape.clone();
            let observed = Observed::Outputs(vec![("kl".into(), Tensor { shape, values })]);
            Observation { case, observed }
        };
        let seen: Vec<Observation> = cases.into_iter().map(answer).collect();
        let found = diagnose(&meaning, false, &seen, Tolerance::SINGLE);
        assert_eq!(found.verdict, Verdict::Differs);
        let worst = found.worst.unwrap();
        assert_eq!((worst.case.as_str(), worst.got), ("far-ratio", 15.0));
        assert!(worst.expected > 20.0, "{}", worst.expected);
        assert!(found.findings[0].text.contains("most on `far-ratio`"), "{}", found.findings[0].text);
    }
}
