//! The batch as one JSON object: arrays by name (also below `inputs`), `loss`, and what is known of the rest.

use std::fmt;

use plumbline_diagnosis::one_shot::{Printed, canonical, is_result};
use plumbline_evaluate::Param;
use plumbline_evaluate::nearest::nearest;
use plumbline_evaluate::tensor::{Number, Tensor};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Array, BatchFile};

/// Members in their order, none twice.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members: Vec<(String, &'de RawValue)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &'de RawValue>()? {
                    if members.iter().any(|(other, _)| *other == name) {
                        return Err(A::Error::custom(format!("`{name}` is given twice")));
                    }
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Each)
    }
}

pub(super) fn read(text: &str) -> Result<BatchFile, String> {
    if text.trim_start().starts_with(['[', '"', 't', 'n', 'f']) && serde_json::from_str::<&RawValue>(text).is_ok() {
        return Err(r#"the batch must be a JSON object: {"log_prob": [[...]], "loss": ...}"#.into());
    }
    let Members(members) = serde_json::from_str(text).map_err(|error| {
        let hint = match text.contains("NaN") || text.contains("Infinity") {
            true => r#"; NaN and infinities are written "NaN", "Infinity", "-Infinity" (with quotation marks)"#,
            false => "",
        };
        format!("it is no JSON: {error}{hint}")
    })?;
    let mut file = BatchFile::default();
    let mut lengths: Option<(String, Vec<usize>)> = None;
    for (name, value) in members {
        let text = value.get().trim();
        match name.as_str() {
            "inputs" | "gradients" => {
                let Members(inner) = serde_json::from_str(text).map_err(|error| format!("`{name}`: {error}"))?;
                for (key, value) in inner {
                    // Below `gradients` the name of the input is enough.
                    let full = match name.as_str() {
                        "gradients" if canonical(&key).is_some() && !key.starts_with("d_") => format!("d_{key}"),
                        _ => key,
                    };
                    array(&mut file, &mut lengths, full, value.get().trim())?;
                }
            }
            "params" => {
                let Members(inner) = serde_json::from_str(text).map_err(|error| format!("`params`: {error}"))?;
                for (key, value) in inner {
                    let param = serde_json::from_str::<Param>(value.get());
                    file.params.push((key.clone(), param.map_err(|error| format!("`{key}`: {}", plain(&error)))?));
                }
            }
            "operation" | "op" => file.operation = Some(word(&name, text)?),
            "dialect" => file.dialect = Some(word(&name, text)?),
            _ if is_result(&name) && !text.starts_with(['[', '{']) => {
                let printed =
                    Printed::parse(text).ok_or_else(|| format!("`{name}` is no number: {}", beginning(text)))?;
                file.result = Some(printed);
            }
            _ if text.starts_with(['[', '{']) || canonical(&name).is_some() => {
                array(&mut file, &mut lengths, name, text)?;
            }
            _ => {
                let known = ["inputs", "params", "gradients", "operation", "dialect", "loss"];
                let hint = nearest(&name, known).map_or(String::new(), |near| format!(" (is `{near}` meant?)"));
                file.notes.push(format!("`{name}` is not used: it is no array{hint}"));
            }
        }
    }
    if let Some((origin, lengths)) = lengths
        && file.arrays.iter().all(|(name, _)| canonical(name) != Some("mask"))
    {
        let columns = lengths.iter().copied().max().unwrap_or(0);
        let values = lengths.iter().flat_map(|length| (0..columns).map(|slot| f64::from(u8::from(slot < *length))));
        let tensor = Tensor { shape: vec![lengths.len(), columns], values: values.collect() };
        file.arrays.push(("mask".into(), Array { tensor, written: None }));
        file.notes.push(format!("rows differ in length: they are padded, and the mask follows from `{origin}`"));
    }
    Ok(file)
}

fn word(name: &str, text: &str) -> Result<String, String> {
    serde_json::from_str(text).map_err(|_| format!("`{name}` must be a name, not {}", beginning(text)))
}

fn beginning(text: &str) -> String {
    let start: String = text.chars().take(40).collect();
    if start.len() < text.len() { start + "…" } else { start }
}

/// A complaint without its place, which is that within the member.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

/// Take an array up. Rows of different lengths are padded with 0; all such arrays must agree in their lengths.
fn array(
    file: &mut BatchFile,
    lengths: &mut Option<(String, Vec<usize>)>,
    name: String,
    text: &str,
) -> Result<(), String> {
    let letters: String = text.chars().filter(|letter| !letter.is_ascii_whitespace()).take(3).collect();
    let is_matrix = letters.starts_with("[[") && !letters.ends_with("[[[");
    let rows = if is_matrix { serde_json::from_str::<Vec<Vec<Number>>>(text).ok() } else { None };
    let tensor = match rows {
        Some(rows) => {
            let of_rows: Vec<usize> = rows.iter().map(Vec::len).collect();
            let columns = of_rows.iter().copied().max().unwrap_or(0);
            if of_rows.iter().any(|length| *length != columns) {
                match lengths {
                    Some((other, known)) if *known != of_rows => {
                        return Err(format!("the rows of `{name}` are not as long as those of `{other}`"));
                    }
                    Some(_) => {}
                    None => *lengths = Some((name.clone(), of_rows)),
                }
            }
            let padded =
                rows.iter().flat_map(|row| (0..columns).map(|slot| row.get(slot).map_or(0.0, |number| number.0)));
            Tensor { values: padded.collect(), shape: vec![rows.len(), columns] }
        }
        None => {
            let value: Value = serde_json::from_str(text).map_err(|error| format!("`{name}`: {error}"))?;
            if let Some((position, leaf)) = no_number(&value, Vec::new()) {
                return Err(format!(
                    "`{name}` at index {position:?} is {}, not a number",
                    beginning(&leaf.to_string())
                ));
            }
            Tensor::from_json(&value).map_err(|error| format!("`{name}`: {error}"))?
        }
    };
    file.arrays.push((name, Array { tensor, written: None }));
    Ok(())
}

/// The first leaf of nested lists that is no number.
fn no_number(value: &Value, position: Vec<usize>) -> Option<(Vec<usize>, &Value)> {
    match value {
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, item)| no_number(item, position.iter().copied().chain([index]).collect())),
        Value::Object(_) => None,
        leaf => Number::deserialize(leaf).is_err().then_some((position, leaf)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_different_lengths_are_padded_and_masked() {
        let file = read(r#"{"log_probs": [[-1, -2], [-3]], "advantages": [1, 2], "loss": 0.25, "run": "x"}"#).unwrap();
        assert_eq!(file.arrays[0].1.tensor, Tensor { shape: vec![2, 2], values: vec![-1.0, -2.0, -3.0, 0.0] });
        assert_eq!(file.arrays[2].0, "mask");
        assert_eq!(file.arrays[2].1.tensor.values, [1.0, 1.0, 1.0, 0.0]);
        assert_eq!(file.result.unwrap().tensor.values, [0.25]);
        assert_eq!(file.notes.len(), 2);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_index() {
        for (text, words) in [
            (r#"{"log_prob": [[-1, "x"], [0, 0]]}"#, r#"`log_prob` at index [0, 1] is "x", not a number"#),
            (r#"{"log_prob": [[-1], [null]]}"#, "`log_prob` at index [1, 0] is null"),
            (r#"{"log_prob": [[NaN]]}"#, r#"NaN and infinities are written "NaN""#),
            (r#"{"a": [[1], [2, 3]], "b": [[1, 2], [3]]}"#, "the rows of `b` are not as long as those of `a`"),
            (r#"{"mask": [1], "mask": [1]}"#, "`mask` is given twice"),
            (r#"{"loss": "low"}"#, "`loss` is no number"),
            (r#"{"params": {"clip_ratio_low": [1]}}"#, "`clip_ratio_low`"),
            (r#"{"operation": 3}"#, "`operation` must be a name"),
            (r#"{"log_prob": [[[1], 2]]}"#, "ragged"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(words) && !error.contains('\n'), "{words}: {error}");
        }
    }
}
