//! Factors: how a number that differs by a factor on every case is told in terms of the case.

use plumbline_core::spec::Value;

use super::meaning::Meaning;
use super::tolerance::Tolerance;
use crate::vectors::Case;

/// A factor in words.
#[derive(Clone, Debug, PartialEq)]
pub struct Factor {
    /// `2`, `1/B`, `tokens/(B*T)`, ….
    pub text: String,
    /// How many quantities it is made of; 0 for a constant.
    pub cost: usize,
}

/// Quantities that losses are divided by.
pub struct Quantities {
    names: Vec<String>,
    /// By case, then by name.
    values: Vec<Vec<f64>>,
}

impl Quantities {
    /// The quantities of the cases.
    pub fn of(meaning: &Meaning, cases: &[&Case]) -> Quantities {
        let mut names: Vec<String> =
            ["B", "T", "tokens", "rows_with_tokens", "longest_row", "groups"].map(String::from).to_vec();
        names.extend(meaning.operation.params.iter().map(|param| param.name.to_string()));
        let values = cases.iter().map(|case| quantities(meaning, case)).collect();
        Quantities { names, values }
    }

    /// The simplest ways to write one factor per case (`None` where the case does not tell).
    pub fn name(&self, factors: &[Option<f64>], tolerance: Tolerance) -> Vec<Factor> {
        let close = |got: f64, expected: f64| (got - expected).abs() <= 20.0 * tolerance.relative * expected.abs();
        let told: Vec<(usize, f64)> =
            factors.iter().enumerate().filter_map(|(case, factor)| Some((case, (*factor)?))).collect();
        let Some((_, first)) = told.first().copied() else { return Vec::new() };
        if told.iter().all(|(_, factor)| close(*factor, first)) {
            return vec![Factor { text: fraction_within(first, tolerance.relative.max(1e-6)), cost: 0 }];
        }
        let fits = |formula: &dyn Fn(&[f64]) -> f64| {
            told.iter().all(|(case, factor)| {
                let expected = formula(&self.values[*case]);
                expected.is_finite() && close(*factor, expected)
            })
        };
        let mut found: Vec<Factor> = Vec::new();
        let count = self.names.len();
        for (index, name) in self.names.iter().enumerate() {
            let one = [
                (name.clone(), 1.0, true),
                (format!("1/{name}"), 1.0, false),
                (format!("-{name}"), -1.0, true),
                (format!("-1/{name}"), -1.0, false),
            ];
            for (text, sign, upright) in one {
                if fits(&|values| sign * if upright { values[index] } else { 1.0 / values[index] }) {
                    found.push(Factor { text, cost: 1 });
                }
            }
        }
        if found.is_empty() {
            found.extend(self.with_constant(&told, &close));
        }
        if found.is_empty() {
            for first in 0..count {
                for second in 0..count {
                    let (left, right) = (&self.names[first], &self.names[second]);
                    if first != second && fits(&|values| values[first] / values[second]) {
                        found.push(Factor { text: format!("{left}/{right}"), cost: 2 });
                    }
                    if first <= second && fits(&|values| values[first] * values[second]) {
                        found.push(Factor { text: format!("{left}*{right}"), cost: 2 });
                    }
                    if first <= second && fits(&|values| 1.0 / (values[first] * values[second])) {
                        found.push(Factor { text: format!("1/({left}*{right})"), cost: 2 });
                    }
                }
            }
        }
        if found.is_empty() {
            for top in 0..count {
                for first in 0..count {
                    for second in first..count {
                        if top != first && top != second && fits(&|v| v[top] / (v[first] * v[second])) {
                            let (top, first, second) = (&self.names[top], &self.names[first], &self.names[second]);
                            found.push(Factor { text: format!("{top}/({first}*{second})"), cost: 3 });
                        }
                    }
                }
            }
        }
        found
    }
}

impl Quantities {
    /// A quantity, or its reciprocal, times one constant that is a plain fraction.
    fn with_constant(&self, told: &[(usize, f64)], close: &dyn Fn(f64, f64) -> bool) -> Vec<Factor> {
        let mut found = Vec::new();
        for (index, name) in self.names.iter().enumerate() {
            for upright in [true, false] {
                let of = |case: usize| {
                    let quantity = self.values[case][index];
                    if upright { quantity } else { 1.0 / quantity }
                };
                let Some((case, factor)) = told.first() else { continue };
                let constant = factor / of(*case);
                let varies = told.iter().any(|(other, _)| of(*other) != of(*case));
                let text = fraction(constant);
                let is_plain =
                    constant.is_finite() && constant != 0.0 && (text.contains('/') || constant.fract() == 0.0);
                if varies && is_plain && told.iter().all(|(case, factor)| close(*factor, constant * of(*case))) {
                    let quantity = if upright { format!("{name}*{text}") } else { format!("{text}*1/{name}") };
                    found.push(Factor { text: quantity, cost: 2 });
                }
            }
        }
        found
    }
}

fn quantities(meaning: &Meaning, case: &Case) -> Vec<f64> {
    let (rows, columns) = case.rows_and_columns().unwrap_or_else(|| {
        let rows = case.inputs.iter().find_map(|(_, tensor)| tensor.shape.first().copied());
        (rows.unwrap_or(1), 1)
    });
    let lengths = row_lengths(case, rows, columns);
    let groups = case.input("group").map(|tensor| {
        let mut members = tensor.values.clone();
        members.sort_unstable_by(f64::total_cmp);
        members.dedup();
        members.len() as f64
    });
    let mut values = vec![
        rows as f64,
        columns as f64,
        lengths.iter().sum::<usize>() as f64,
        lengths.iter().filter(|length| **length > 0).count() as f64,
        lengths.iter().copied().max().unwrap_or(0) as f64,
        groups.unwrap_or(f64::NAN),
    ];
    // A parameter at 1 cannot be told from no factor.
    values.extend(meaning.parameters(case).unwrap_or_default().into_iter().map(|value| match value {
        Value::Number(number) if number != 1.0 => number,
        Value::Integer(number) if number != 1 => number as f64,
        _ => f64::NAN,
    }));
    values
}

/// The unmasked tokens of each row.
pub fn row_lengths(case: &Case, rows: usize, columns: usize) -> Vec<usize> {
    match case.input("mask") {
        Some(mask) if mask.values.len() == rows * columns && columns > 0 => {
            mask.values.chunks(columns).map(|row| row.iter().filter(|kept| **kept != 0.0).count()).collect()
        }
        _ => vec![columns; rows],
    }
}

/// A number as a fraction of small whole numbers where it is one, else as a decimal.
pub fn fraction(number: f64) -> String {
    fraction_within(number, 1e-6)
}

fn fraction_within(number: f64, error: f64) -> String {
    for denominator in 1..=64u32 {
        let numerator = (number * f64::from(denominator)).round();
        let is_close =
            (number * f64::from(denominator) - numerator).abs() <= error * number.abs() * f64::from(denominator);
        if is_close && numerator.abs() <= 4096.0 && (numerator != 0.0 || number == 0.0) {
            return if denominator == 1 { format!("{numerator}") } else { format!("{numerator}/{denominator}") };
        }
    }
    for power in [100.0, 1e3, 1e4, 1e5, 1e6] {
        if (number.abs() * power - 1.0).abs() <= error {
            return format!("{}1/{power}", if number < 0.0 { "-" } else { "" });
        }
    }
    format!("{number:.9}")
}

#[cfg(test)]
mod tests {
    use super::fraction;

    #[test]
    fn fractions_are_recognised() {
        assert_eq!(fraction(0.5), "1/2");
        assert_eq!(fraction(-1.0), "-1");
        assert_eq!(fraction(2.0 / 3.0), "2/3");
        assert_eq!(fraction(0.0), "0");
        assert_eq!(fraction(-0.001), "-1/1000");
        assert_eq!(fraction(std::f64::consts::PI), "3.141592654");
    }
}
