//! Deviations that are known, listed in a file: what is listed fails no check, and what is listed and no longer occurs does.

use plumbline_diagnosis::Finding;
use serde::Deserialize;

use super::Report;

/// One known deviation.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// The operation.
    pub operation: String,
    /// The cause as the report's table prints it: the identifiers of an explanation joined by ` + `, or a finding's kind.
    pub cause: String,
    /// Why it is accepted.
    pub reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    known: Vec<Known>,
}

/// Read the list; an error says in one sentence what is wrong with it.
pub fn read_known(text: &str) -> Result<Vec<Known>, String> {
    let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
    for (index, known) in file.known.iter().enumerate() {
        if plumbline_core::catalog::find(&known.operation).is_none() {
            return Err(format!("known[{index}]: no operation is called `{}`", known.operation));
        }
        if known.reason.trim().is_empty() {
            return Err(format!("known[{index}]: `reason` is empty"));
        }
        if file.known[..index].iter().any(|other| (&other.operation, &other.cause) == (&known.operation, &known.cause))
        {
            return Err(format!("known[{index}]: {} of {} is listed twice", known.cause, known.operation));
        }
    }
    Ok(file.known)
}

/// The causes that a finding goes by: each explanation that fits, or its kind where there is none.
pub fn causes(finding: &Finding) -> Vec<String> {
    if finding.explanations.is_empty() {
        return vec![finding.kind.name().to_owned()];
    }
    finding.explanations.iter().map(|explanation| explanation.ids.join(" + ")).collect()
}

impl Report {
    /// Mark the findings that are listed; the entries of checked operations (and of none that was declared) that fit no
    /// finding are stale.
    pub fn apply_known(&mut self, known: &[Known], checked_all: bool) {
        for entry in known {
            let mut occurs = false;
            let mut was_checked = checked_all;
            for checked in self.operations.iter_mut().filter(|checked| checked.id == entry.operation) {
                was_checked = true;
                for (finding, reason) in checked.diagnosis.findings.iter().zip(&mut checked.known) {
                    if causes(finding).contains(&entry.cause) {
                        *reason = Some(entry.reason.clone());
                        occurs = true;
                    }
                }
            }
            if was_checked && !occurs {
                self.stale.push(entry.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_strict() {
        let entry = r#"{"operation": "kl.k3", "cause": "factor:2", "reason": "agreed"}"#;
        assert_eq!(read_known(&format!(r#"{{"known": [{entry}]}}"#)).unwrap().len(), 1);
        for (text, words) in [
            ("{}", "known"),
            (r#"{"known": [{"operation": "kl.k9", "cause": "x", "reason": "y"}]}"#, "no operation is called `kl.k9`"),
            (r#"{"known": [{"operation": "kl.k3", "cause": "x", "reason": " "}]}"#, "`reason` is empty"),
            (
                r#"{"known": [{"operation": "kl.k3", "cause": "x", "reason": "y", "until": 3}]}"#,
                "unknown field `until`",
            ),
            (&format!(r#"{{"known": [{entry}, {entry}]}}"#), "known[1]: factor:2 of kl.k3 is listed twice"),
        ] {
            let error = read_known(text).unwrap_err();
            assert!(error.contains(words), "{words}: {error}");
        }
    }
}
