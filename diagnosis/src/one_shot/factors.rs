//! Factors that losses are found to be off by, in the terms of the batch.

use crate::factor::row_lengths;
use crate::vectors::Case;

/// A factor with its name.
pub(super) struct Factor {
    pub text: String,
    pub number: f64,
    /// How many quantities of the batch it is made of, plus one.
    pub cost: u32,
}

/// −1, 2, ½, and the quotients of the batch's sizes.
pub(super) fn factors(case: &Case) -> Vec<Factor> {
    let mut all: Vec<Factor> = Vec::new();
    let mut add = |text: String, number: f64, cost: u32| {
        if number.is_finite() && number != 0.0 && number != 1.0 {
            all.push(Factor { text, number, cost });
        }
    };
    for (text, number) in [("-1", -1.0), ("2", 2.0), ("1/2", 0.5)] {
        add(text.into(), number, 1);
    }
    let sizes = sizes(case);
    for (name, size) in &sizes {
        add((*name).into(), *size, 2);
        add(format!("1/{name}"), 1.0 / size, 2);
    }
    for (top, first) in &sizes {
        for (bottom, second) in &sizes {
            add(format!("{top}/{bottom}"), first / second, 3);
        }
    }
    add("1/(B*T)".into(), 1.0 / (sizes[0].1 * sizes[1].1), 2);
    for (top, first) in sizes.iter().skip(2) {
        add(format!("{top}/(B*T)"), first / (sizes[0].1 * sizes[1].1), 3);
    }
    all
}

fn sizes(case: &Case) -> Vec<(&'static str, f64)> {
    let (rows, columns) = case
        .rows_and_columns()
        .unwrap_or_else(|| (case.inputs.iter().find_map(|(_, tensor)| tensor.shape.first().copied()).unwrap_or(1), 1));
    let lengths = row_lengths(case, rows, columns);
    let mut sizes = vec![
        ("B", rows as f64),
        ("T", columns as f64),
        ("tokens", lengths.iter().sum::<usize>() as f64),
        ("rows_with_tokens", lengths.iter().filter(|length| **length > 0).count() as f64),
        ("longest_row", lengths.iter().copied().max().unwrap_or(0) as f64),
    ];
    if let Some(group) = case.input("group") {
        let mut groups = group.values.clone();
        groups.sort_unstable_by(f64::total_cmp);
        groups.dedup();
        sizes.push(("groups", groups.len() as f64));
    }
    sizes
}
