//! Rows of the collection that are no mutants, with the reason.

/// A row and why it has no mutant.
pub const ROWS: &[(&str, &str)] = &[
    ("C15", "the ratio's bound before the minimum is the dual clip for every bound above 1 + epsilon: equal numbers"),
    (
        "E08",
        "the two orders of a straight-through sum differ by the rounding of the larger term, below any tolerance of the type",
    ),
    ("E11", "two places of one code base estimate differently: each conforms to the estimator that it declares"),
    ("E12", "no mistake: the reversed divergence was logged only"),
    ("F13", "the filter read another reward than was meant: which array is handed over is the caller's"),
    ("G21", "the derivative by the next value is no output of a target"),
    ("H05", "no mistake: the maximum of the two errors is right (a control)"),
    ("I01", "the entropy of a distribution has no sampled token among its inputs"),
    ("J07", "the order in which a replay hands over its rows is data, not a formula"),
    ("L04", "no mixing network is in the catalog; the same shift in time is G17 and L07"),
    ("L16", "a matter of the optimiser's state"),
    ("L17", "the loss of the temperature is not in the catalog"),
    ("L18", "a choice of a target, no formula"),
    ("N05", "no mistake: the shift was right (a control)"),
];
