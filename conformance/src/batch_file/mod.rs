//! A user's batch from a file: JSON, numpy's `.npz`, or safetensors. What a file is, its first bytes tell.

mod json;
mod npy;
mod npz;
mod safetensors;

use plumbline_diagnosis::one_shot::{Member, Printed, Question, Written, member};
use plumbline_evaluate::Param;
use plumbline_evaluate::tensor::Tensor;

/// What a file holds.
#[derive(Clone, Debug, Default)]
pub struct BatchFile {
    /// Arrays by the names that they have in the file.
    pub arrays: Vec<(String, Array)>,
    /// The printed number, where it stands in the file as text.
    pub result: Option<Printed>,
    /// The operation that is meant.
    pub operation: Option<String>,
    /// The dialect that is meant.
    pub dialect: Option<String>,
    /// Parameters.
    pub params: Vec<(String, Param)>,
    /// What was made of the file, in sentences.
    pub notes: Vec<String>,
}

/// An array and the precision that it was stored in.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The numbers.
    pub tensor: Tensor,
    /// `None` where the file does not say: decimals, or doubles that may hold singles.
    pub written: Option<Written>,
}

impl Array {
    fn printed(self) -> Printed {
        match self.written {
            Some(written) => Printed::new(self.tensor, written),
            None => Printed::guessed(self.tensor),
        }
    }
}

/// Read a file's bytes; an error says in one sentence what is wrong with them.
pub fn read(bytes: &[u8]) -> Result<BatchFile, String> {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        npz::read(bytes)
    } else if bytes.len() > 8 && bytes.get(8) == Some(&b'{') && first != Some(&b'{') {
        safetensors::read(bytes)
    } else if bytes.starts_with(b"\x93NUMPY") {
        Err("a single array (.npy) has no names; save the batch with numpy.savez".into())
    } else {
        match std::str::from_utf8(bytes) {
            Ok(text) => json::read(text.trim_start_matches('\u{feff}')),
            Err(_) => Err("it is neither JSON nor .npz nor safetensors".into()),
        }
    }
}

impl BatchFile {
    /// The question that the file asks; `loss` stands before what the file says.
    pub fn question(self, loss: Option<Printed>, effort: Option<u64>) -> Result<(Question, Vec<String>), String> {
        let mut result = loss.or(self.result);
        let (mut inputs, mut gradients) = (Vec::new(), Vec::new());
        let is_single = self.arrays.iter().any(|(_, array)| array.written == Some(Written::Single));
        for (name, array) in self.arrays {
            match member(&name) {
                Member::Gradient(input) => gradients.push((input.to_owned(), array.printed())),
                Member::Result if result.is_none() => result = Some(array.printed().into_result()),
                Member::Result => {}
                Member::Input => inputs.push((name, array.tensor)),
            }
        }
        let mut result = result.ok_or("it holds no `loss`, and none was given with --loss")?;
        if is_single && matches!(result.written, Written::Double | Written::Decimal { digits: 9.., .. }) {
            // What is computed from numbers of single precision carries their rounding, however it is printed.
            result.written = Written::Single;
        }
        let (operation, dialect, params) = (self.operation, self.dialect, self.params);
        Ok((Question { inputs, result, gradients, operation, dialect, params, effort }, self.notes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_batch_is_told_in_one_sentence() {
        for (bytes, words) in [
            (&b""[..], "is no JSON"),
            (b"\x93NUMPY\x01\x00", "numpy.savez"),
            (b"\xff\xfe\x00", "neither JSON nor"),
            (b"PK\x03\x04", "archive"),
            (b"\x10\x00\x00\x00\x00\x00\x00\x00{", "safetensors"),
            (b"[1, 2]", "must be a JSON object"),
        ] {
            let error = read(bytes).unwrap_err();
            assert!(error.contains(words) && !error.contains('\n'), "{words}: {error}");
        }
    }
}
