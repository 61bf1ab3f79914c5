//! Numbers and places in words.

/// A place in an output, as ` [0, 2]`; nothing for a scalar.
pub(super) fn place(position: &[usize]) -> String {
    if position.is_empty() { String::new() } else { format!(" at {position:?}") }
}

/// A number with as many digits as tell.
pub(super) fn number(value: f64) -> String {
    if value == 0.0 {
        // Without the sign of a negative zero.
        "0".to_string()
    } else if value.is_finite() && !(1e-4..1e7).contains(&value.abs()) {
        format!("{value:.9e}")
    } else {
        format!("{:.9}", value).trim_end_matches('0').trim_end_matches('.').to_string()
    }
}
