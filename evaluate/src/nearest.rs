//! The known name that a mistyped one most resembles.

/// The candidate with the smallest edit distance to `given`, where it is near enough to be what was meant: at most a
/// third of the characters differ (at least two may), or one contains the other.
///
/// ```
/// use plumbline_evaluate::nearest::nearest;
/// assert_eq!(nearest("log_probs", ["log_prob", "ref_log_prob", "mask"]), Some("log_prob"));
/// assert_eq!(nearest("temperature", ["log_prob", "mask"]), None);
/// ```
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (given.chars().count() / 3).max(2);
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let distance = edit_distance(given, candidate);
            let contained = !given.is_empty() && (candidate.contains(given) || given.contains(candidate));
            (distance <= limit || contained).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's distance in characters: insertions, deletions and substitutions cost 1 each.
fn edit_distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (position, letter) in from.chars().enumerate() {
        let mut diagonal = position;
        row[0] = position + 1;
        for (column, other) in to.iter().enumerate() {
            let substituted = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = substituted.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("abc", ""), 3);
        assert_eq!(edit_distance("same", "same"), 0);
    }

    #[test]
    fn the_smallest_distance_wins_and_a_stranger_has_no_neighbour() {
        assert_eq!(nearest("kl.k9", ["kl.k1", "kl.abs"]), Some("kl.k1"));
        assert_eq!(nearest("gae", ["advantage.gae", "advantage.rloo"]), Some("advantage.gae"));
        assert_eq!(nearest("", ["advantage.gae"]), None);
        assert_eq!(nearest("zzzzzz", ["advantage.gae"]), None);
    }
}
