//! Factors: on everything, on value or gradient alone, on one term of the sum, on each row.

use plumbline_core::spec::Value;

use super::change::Change;
use super::coefficient::coefficients;
use super::factor::{Quantities, row_lengths};
use super::finding::Explanation;
use super::meaning::Numbers;
use super::search::Search;
use super::space::Point;

impl Search<'_> {
    /// A factor on everything, on the value only or on the gradient only, beside `changes`.
    pub(super) fn factors(&self, changes: &[Change]) -> Vec<Explanation> {
        let point = Point { meaning: self.meaning, changes: changes.to_vec() };
        let mut numbers = Vec::new();
        let mut both: Option<Vec<Option<f64>>> = Some(Vec::new());
        let mut value: Option<Vec<Option<f64>>> = Some(Vec::new());
        let mut gradient: Option<Vec<Option<f64>>> = Some(Vec::new());
        for sample in self.samples {
            let Ok(of_point) = point.numbers(sample.case, &sample.trainables) else { return Vec::new() };
            let kept = |numbers: &[f64]| -> Vec<f64> {
                numbers.iter().zip(&sample.kept).filter(|(_, kept)| **kept).map(|(number, _)| *number).collect()
            };
            let flat = |numbers: &Numbers| numbers.gradients.concat();
            let (got_value, point_value) = (kept(&sample.got.value), kept(&of_point.value));
            let (got_gradient, point_gradient) = (flat(&sample.got), flat(&of_point));
            let got_all = [got_value.as_slice(), &got_gradient].concat();
            let point_all = [point_value.as_slice(), &point_gradient].concat();
            let collect = |all: &mut Option<Vec<Option<f64>>>, got: &[f64], of_point: &[f64]| match (
                all.as_mut(),
                self.ratio(got, of_point, &[]),
            ) {
                (Some(factors), Some(factor)) => factors.push(factor),
                _ => *all = None,
            };
            collect(&mut both, &got_all, &point_all);
            collect(&mut value, &got_value, &point_value);
            collect(&mut gradient, &got_gradient, &point_gradient);
            if both.is_none() && (value.is_none() || gradient.is_none()) {
                return Vec::new();
            }
            numbers.push(of_point);
        }
        let cases = self.cases();
        let quantities = Quantities::of(self.meaning, &cases);
        let name = |factors: &Option<Vec<Option<f64>>>| {
            factors.as_ref().map(|factors| quantities.name(factors, self.tolerance)).unwrap_or_default()
        };
        let beside = self.words(changes);
        let cost = changes.iter().map(|change| self.cost(change)).sum::<u32>();
        let ids = |id: String| changes.iter().map(Change::id).chain([id]).collect();
        let mut found: Vec<Explanation> = name(&both)
            .into_iter()
            .filter(|factor| factor.text != "1" && factor.text != "0")
            .map(|factor| Explanation {
                ids: ids(format!("factor:{}", factor.text)),
                text: format!("{beside}everything is multiplied by {}", factor.text),
                cost: cost + 1 + factor.cost as u32,
                changes: Vec::new(),
            })
            .collect();
        if let (true, true, Some(factors)) = (found.is_empty(), changes.is_empty(), &both) {
            let told = factors.iter().flatten().filter(|factor| **factor != 0.0).count();
            let is_other = factors.iter().flatten().any(|factor| (factor - 1.0).abs() > 1e-6);
            let says_something = self.samples.iter().any(|sample| sample.got.all().count() > 2);
            if told > 1 && is_other && says_something {
                // Of no quantity that is known: it says that everything else is right.
                found.push(Explanation {
                    ids: ids("factor:per-case".into()),
                    text: "all numbers of a case have one factor, another on every case (a normaliser that is none of the \
                           batch's sizes or parameters)"
                        .into(),
                    cost: 6,
                    changes: Vec::new(),
                });
            }
        }
        if found.iter().all(|explanation| explanation.cost >= 6) {
            let has_gradient = self.samples.iter().any(|sample| !sample.trainables.is_empty());
            if !has_gradient {
                return found;
            }
            let (value, gradient) = (name(&value), name(&gradient));
            for value in &value {
                for gradient in gradient.iter().filter(|gradient| gradient.text != value.text && gradient.text != "0") {
                    let text = match (value.text.as_str(), gradient.text.as_str()) {
                        ("1", factor) => format!("{beside}the gradient only is multiplied by {factor}"),
                        (factor, "1") => format!("{beside}the value only is multiplied by {factor}"),
                        (value, gradient) => {
                            format!("{beside}the value is multiplied by {value} and the gradient by {gradient}")
                        }
                    };
                    found.push(Explanation {
                        ids: ids(format!("factor:value*{},gradient*{}", value.text, gradient.text)),
                        text,
                        cost: cost + 3 + (value.cost + gradient.cost) as u32,
                        changes: Vec::new(),
                    });
                }
            }
        }
        found
    }

    /// The one factor between two lists of numbers; `Some(None)` where both are 0, `None` where there is none. `scale` is the
    /// size of what `got` was taken from, where it is a difference: it carries the rounding of that size.
    fn ratio(&self, got: &[f64], of_point: &[f64], scale: &[f64]) -> Option<Option<f64>> {
        if of_point.iter().any(|number| !number.is_finite()) || got.len() != of_point.len() {
            return None;
        }
        let allowed = |index: usize, expected: f64| {
            let scale = scale.get(index).copied().unwrap_or(0.0).abs();
            4.0 * self.tolerance.relative * expected.abs().max(scale) + self.tolerance.absolute
        };
        // Least squares, each number weighted by what it may be off: large ones say no more than small ones.
        let (mut product, mut square) = (0.0, 0.0);
        for (index, (got, of_point)) in got.iter().zip(of_point).enumerate() {
            let weight = 1.0 / allowed(index, *of_point);
            product += (weight * got) * (weight * of_point);
            square += (weight * of_point) * (weight * of_point);
        }
        if square == 0.0 {
            return got.iter().enumerate().all(|(index, got)| got.abs() <= allowed(index, 0.0)).then_some(None);
        }
        let factor = product / square;
        let fits = got.iter().zip(of_point).enumerate().all(|(index, (got, of_point))| {
            let expected = factor * of_point;
            (got - expected).abs() <= allowed(index, expected)
        });
        fits.then_some(Some(factor))
    }

    /// One term of the sum has another factor: the term of a coefficient, or the rest beside it.
    pub(super) fn terms(&self) -> Vec<Explanation> {
        let mut found = Vec::new();
        let cases = self.cases();
        let quantities = Quantities::of(self.meaning, &cases);
        for param in coefficients(self.meaning, &cases) {
            let without = Point { meaning: self.meaning, changes: vec![Change::Set(param.name, Value::Number(0.0))] };
            let mut of_term: Option<Vec<Option<f64>>> = Some(Vec::new());
            let mut of_rest: Option<Vec<Option<f64>>> = Some(Vec::new());
            let mut is_present = false;
            for sample in self.samples {
                let Ok(rest) = without.numbers(sample.case, &sample.trainables) else {
                    of_term = None;
                    of_rest = None;
                    break;
                };
                let got: Vec<f64> = sample.got.all().collect();
                let sizes = got.clone();
                let rest: Vec<f64> = rest.all().collect();
                let term: Vec<f64> = sample.expected.all().zip(&rest).map(|(all, rest)| all - rest).collect();
                is_present |= term.iter().any(|number| *number != 0.0);
                let minus = |from: &[f64], what: &[f64]| -> Vec<f64> {
                    from.iter().zip(what).map(|(from, what)| from - what).collect()
                };
                let collect = |all: &mut Option<Vec<Option<f64>>>, got: Vec<f64>, part: &[f64]| match (
                    all.as_mut(),
                    self.ratio(&got, part, &sizes),
                ) {
                    (Some(factors), Some(factor)) => factors.push(factor),
                    _ => *all = None,
                };
                collect(&mut of_term, minus(&got, &rest), &term);
                collect(&mut of_rest, minus(&got, &term), &rest);
            }
            if !is_present {
                continue;
            }
            for (factors, what, id) in [
                (of_term, format!("the term of `{}` is multiplied by", param.name), format!("term:{}", param.name)),
                (
                    of_rest,
                    format!("everything but the term of `{}` is multiplied by", param.name),
                    format!("rest:{}", param.name),
                ),
            ] {
                let Some(factors) = factors else { continue };
                for factor in quantities.name(&factors, self.tolerance) {
                    if factor.text == "1" {
                        continue;
                    }
                    let sign = if factor.text == "-1" { " (its sign is turned)" } else { "" };
                    found.push(Explanation {
                        ids: vec![format!("{id}*{}", factor.text)],
                        text: format!("{what} {}{sign}", factor.text),
                        cost: 2 + 2 * factor.cost as u32,
                        changes: Vec::new(),
                    });
                }
            }
        }
        found
    }

    /// Tokens with a positive advantage have one factor, those with a negative one another.
    pub(super) fn sign_factors(&self) -> Vec<Explanation> {
        let mut by_sign: [Vec<Option<f64>>; 2] = [Vec::new(), Vec::new()];
        for sample in self.samples {
            let Some(advantage) = sample.case.input("advantage") else { return Vec::new() };
            let (Some(got), Some(expected)) = (sample.got.gradients.first(), sample.expected.gradients.first()) else {
                return Vec::new();
            };
            if got.len() % advantage.values.len().max(1) != 0 {
                return Vec::new();
            }
            let width = (got.len() / advantage.values.len().max(1)).max(1);
            let has_tokens = sample.got.value.len() == got.len();
            for (factors, sign) in by_sign.iter_mut().zip([1.0, -1.0]) {
                let of_sign = |slot: &usize| advantage.values[slot / width] * sign > 0.0;
                let chosen: Vec<usize> = (0..got.len()).filter(of_sign).collect();
                let pick = |from: &[f64]| chosen.iter().map(|slot| from[*slot]).collect::<Vec<f64>>();
                let (mut own, mut right) = (pick(got), pick(expected));
                if has_tokens {
                    let kept: Vec<usize> = chosen.iter().copied().filter(|slot| sample.kept[*slot]).collect();
                    own.extend(kept.iter().map(|slot| sample.got.value[*slot]));
                    right.extend(kept.iter().map(|slot| sample.expected.value[*slot]));
                }
                match self.ratio(&own, &right, &[]) {
                    Some(factor) => factors.push(factor),
                    None => return Vec::new(),
                }
            }
        }
        let cases = self.cases();
        let quantities = Quantities::of(self.meaning, &cases);
        let [positive, negative] = by_sign;
        let mut found = Vec::new();
        for positive in quantities.name(&positive, self.tolerance) {
            for negative in quantities.name(&negative, self.tolerance) {
                if positive.text != negative.text {
                    found.push(Explanation {
                        ids: vec![format!("factor-by-sign:advantage:{},{}", positive.text, negative.text)],
                        text: format!(
                            "tokens with a positive advantage are multiplied by {} and those with a negative one by {}",
                            positive.text, negative.text
                        ),
                        cost: 4 + (positive.cost + negative.cost) as u32,
                        changes: Vec::new(),
                    });
                }
            }
        }
        found
    }

    /// Each row's gradient has a factor of its own, by the row's length.
    pub(super) fn row_factor(&self) -> Vec<Explanation> {
        let mut by_length: Vec<Vec<Option<f64>>> = vec![Vec::new(), Vec::new()];
        let mut lengths_differ = false;
        for sample in self.samples {
            let (Some(got), Some(expected)) = (sample.got.gradients.first(), sample.expected.gradients.first()) else {
                return Vec::new();
            };
            let Some((rows, columns)) = sample.case.rows_and_columns() else { return Vec::new() };
            if got.len() != rows * columns || columns == 0 {
                return Vec::new();
            }
            let lengths = row_lengths(sample.case, rows, columns);
            let mut factors: Vec<(usize, f64)> = Vec::new();
            for ((got, expected), length) in got.chunks(columns).zip(expected.chunks(columns)).zip(lengths) {
                match self.ratio(got, expected, &[]) {
                    Some(Some(factor)) if length > 0 => factors.push((length, factor)),
                    Some(_) => {}
                    None => return Vec::new(),
                }
            }
            lengths_differ |= factors.iter().any(|(length, _)| Some(*length) != factors.first().map(|first| first.0));
            let close = |a: f64, b: f64| (a - b).abs() <= 20.0 * self.tolerance.relative * b.abs();
            for (which, rest) in by_length.iter_mut().enumerate() {
                let scaled: Vec<f64> = factors
                    .iter()
                    .map(|(length, factor)| if which == 0 { factor * *length as f64 } else { factor / *length as f64 })
                    .collect();
                let first = scaled.first().copied();
                let is_one = first.is_none_or(|first| scaled.iter().all(|number| close(*number, first)));
                rest.push(if is_one { first } else { Some(f64::NAN) });
            }
        }
        if !lengths_differ {
            return Vec::new();
        }
        let cases = self.cases();
        let quantities = Quantities::of(self.meaning, &cases);
        let mut found = Vec::new();
        for (rest, row) in by_length.iter().zip(["1/L_i", "L_i"]) {
            if rest.iter().flatten().any(|number| number.is_nan()) {
                continue;
            }
            for factor in quantities.name(rest, self.tolerance) {
                let text = if factor.text == "1" { row.to_string() } else { format!("{row} * {}", factor.text) };
                found.push(Explanation {
                    ids: vec![format!("row-factor:{row}")],
                    text: format!("each row's gradient is multiplied by {text} (L_i: the row's unmasked tokens)"),
                    cost: 4 + factor.cost as u32,
                    changes: Vec::new(),
                });
            }
        }
        found
    }
}
