//! What frameworks call the inputs that the catalog has under one name.

use plumbline_core::catalog;

/// Names in use, and the catalog's. What differs only in case, hyphens or a plural needs no entry.
const ALIASES: &[(&str, &str)] = &[
    ("logp", "log_prob"),
    ("logprob", "log_prob"),
    ("new_log_prob", "log_prob"),
    ("new_logprob", "log_prob"),
    ("policy_log_prob", "log_prob"),
    ("action_log_prob", "log_prob"),
    ("current_log_prob", "log_prob"),
    ("per_token_logp", "log_prob"),
    ("old_logp", "old_log_prob"),
    ("old_logprob", "old_log_prob"),
    ("old_action_log_prob", "old_log_prob"),
    ("old_per_token_logp", "old_log_prob"),
    ("behavior_log_prob", "old_log_prob"),
    ("behaviour_log_prob", "old_log_prob"),
    ("prev_logprob", "old_log_prob"),
    ("ref_logp", "ref_log_prob"),
    ("ref_logprob", "ref_log_prob"),
    ("reference_log_prob", "ref_log_prob"),
    ("reference_logp", "ref_log_prob"),
    ("reference_policy_logprob", "ref_log_prob"),
    ("ref_per_token_logp", "ref_log_prob"),
    ("base_action_log_prob", "ref_log_prob"),
    ("rollout_logprob", "rollout_log_prob"),
    ("sampling_log_prob", "rollout_log_prob"),
    ("sampling_per_token_logp", "rollout_log_prob"),
    ("generation_logprob", "rollout_log_prob"),
    ("adv", "advantage"),
    ("response_mask", "mask"),
    ("attention_mask", "mask"),
    ("completion_mask", "mask"),
    ("action_mask", "mask"),
    ("loss_mask", "mask"),
    ("token_mask", "mask"),
    ("group_id", "group"),
    ("group_index", "group"),
    ("uid", "group"),
    ("rollout_is_weight", "importance_weight"),
    ("importance_sampling_ratio", "importance_weight"),
    ("is_weight", "importance_weight"),
    ("vpred", "value"),
    ("ret", "return"),
    ("chosen_logp", "chosen_log_prob"),
    ("policy_chosen_logp", "chosen_log_prob"),
    ("rejected_logp", "rejected_log_prob"),
    ("policy_rejected_logp", "rejected_log_prob"),
    ("ref_chosen_logp", "ref_chosen_log_prob"),
    ("reference_chosen_logp", "ref_chosen_log_prob"),
    ("ref_rejected_logp", "ref_rejected_log_prob"),
    ("reference_rejected_logp", "ref_rejected_log_prob"),
    ("chosen_reward", "chosen_score"),
    ("rejected_reward", "rejected_score"),
];

/// What the main output may be called in a file.
const RESULTS: &[&str] = &["loss", "pg_loss", "policy_loss", "actor_loss", "total_loss", "output", "result"];

/// What an array of a batch is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// An input, or nothing that is known.
    Input,
    /// The gradient by this input; empty where the name says no more than that it is a gradient.
    Gradient(&'static str),
    /// What was printed.
    Result,
}

/// What an array is. An input of the catalog may be called as a result is elsewhere; a gradient's name says that it is one.
pub fn member(given: &str) -> Member {
    match gradient_of(given) {
        Some(input) => Member::Gradient(input),
        None if is_result(given) && canonical(given).is_none() => Member::Result,
        None => Member::Input,
    }
}

/// Whether a member of a file is the number that was printed.
pub fn is_result(given: &str) -> bool {
    RESULTS.contains(&plain(given).as_str())
}

/// The input whose gradient a name means; `Some("")` where it says no more than that it is a gradient.
fn gradient_of(given: &str) -> Option<&'static str> {
    let plain = plain(given);
    if matches!(plain.as_str(), "gradient" | "grad") {
        return Some("");
    }
    let inner = ["d_", "grad_", "gradient_", "d_loss_d_"].iter().find_map(|prefix| plain.strip_prefix(prefix));
    inner.or_else(|| plain.strip_suffix("_grad")).and_then(canonical)
}

/// The catalog's name of an input; `None` where nothing is called so.
///
/// ```
/// use plumbline_diagnosis::one_shot::canonical;
/// assert_eq!(canonical("old_log_probs"), Some("old_log_prob"));
/// assert_eq!(canonical("response_mask"), Some("mask"));
/// assert_eq!(canonical("weather"), None);
/// ```
pub fn canonical(given: &str) -> Option<&'static str> {
    let plain = plain(given);
    let singular = plain.strip_suffix('s').unwrap_or(&plain);
    [plain.as_str(), singular].into_iter().find_map(|name| {
        let known = inputs().find(|input| *input == name);
        known.or_else(|| ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, canonical)| *canonical))
    })
}

/// The names of all inputs of the catalog; some come more than once.
pub fn inputs() -> impl Iterator<Item = &'static str> {
    catalog::operations().flat_map(|operation| operation.inputs).map(|input| input.name)
}

fn plain(given: &str) -> String {
    given.trim().chars().map(|letter| if "-. /".contains(letter) { '_' } else { letter.to_ascii_lowercase() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_alias_leads_to_an_input_and_hides_none() {
        for (alias, name) in ALIASES {
            assert!(inputs().any(|input| input == *name), "{name} is no input");
            assert!(inputs().all(|input| input != *alias), "{alias} is an input itself");
        }
    }

    #[test]
    fn names_are_found_under_what_frameworks_call_them() {
        for (given, name) in [
            ("log_probs", "log_prob"),
            ("Old-LogProbs", "old_log_prob"),
            ("per_token_logps", "log_prob"),
            ("ref_per_token_logps", "ref_log_prob"),
            ("advantages", "advantage"),
            ("token_level_rewards", ""),
            ("values", "values"),
            ("rollout_is_weights", "importance_weight"),
        ] {
            assert_eq!(canonical(given).unwrap_or_default(), name, "{given}");
        }
        assert_eq!(gradient_of("d_log_probs"), Some("log_prob"));
        assert_eq!(gradient_of("log_prob.grad"), Some("log_prob"));
        assert_eq!(gradient_of("grad"), Some(""));
        assert_eq!(gradient_of("done"), None);
        assert!(is_result("pg_loss") && !is_result("value"));
        assert_eq!(member("pg_loss"), Member::Result);
        assert_eq!(member("grad_log_probs"), Member::Gradient("log_prob"));
        assert_eq!(member("weather"), Member::Input);
    }
}
