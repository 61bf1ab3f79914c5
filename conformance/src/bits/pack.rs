//! Cases in one block of bytes, for targets that read no files.

use std::collections::HashMap;

use plumbline_bits::pack::{MAGIC, MAX_RANK, kind};
use plumbline_core::spec::{Domain, InputSpec};
use plumbline_evaluate::tensor::Tensor;
use plumbline_evaluate::{Param, is_real};

use super::cases::{Case, Group};

/// The cases of these groups, in their order.
pub fn pack(groups: &[Group]) -> Result<Vec<u8>, String> {
    let count: usize = groups.iter().map(|group| group.cases.len()).sum();
    // What several cases share stands behind the cases: their length is known before their places are.
    let length: usize = groups.iter().flat_map(|group| &group.cases).map(record_length).sum();
    let mut shared = Shared { start: MAGIC.len() + 4 + length, bytes: Vec::new(), places: HashMap::new() };
    let mut block = MAGIC.to_vec();
    block.extend(word(count)?);
    for group in groups {
        for case in &group.cases {
            block.extend(shared.text(group.operation.id)?);
            match &case.dialect {
                Some(dialect) => block.extend(shared.text(dialect)?),
                None => block.extend([0; 4]),
            }
            let params = params(case, &mut shared)?;
            block.extend(shared.place(params)?);
            block.push(byte(case.inputs.len())?);
            for (name, tensor) in &case.inputs {
                let spec = group.operation.input(name);
                let spec = spec.ok_or_else(|| format!("{} has no input `{name}`", group.operation.id))?;
                block.extend(shared.text(name)?);
                let array = array(spec, tensor)?;
                block.extend(shared.place(array)?);
            }
        }
    }
    block.extend(shared.bytes);
    Ok(block)
}

fn record_length(case: &Case) -> usize {
    4 + 4 + 4 + 1 + 8 * case.inputs.len()
}

/// What several cases share, each once.
struct Shared {
    start: usize,
    bytes: Vec<u8>,
    places: HashMap<Vec<u8>, usize>,
}

impl Shared {
    fn place(&mut self, bytes: Vec<u8>) -> Result<[u8; 4], String> {
        if let Some(place) = self.places.get(&bytes) {
            return word(*place);
        }
        let place = self.start + self.bytes.len();
        self.bytes.extend(&bytes);
        self.places.insert(bytes, place);
        word(place)
    }

    fn text(&mut self, text: &str) -> Result<[u8; 4], String> {
        let length = u16::try_from(text.len()).map_err(|_| format!("`{text}` is too long"))?;
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.extend(text.as_bytes());
        self.place(bytes)
    }
}

fn params(case: &Case, shared: &mut Shared) -> Result<Vec<u8>, String> {
    let mut bytes = vec![byte(case.params.len())?];
    for (name, value) in &case.params {
        bytes.extend(shared.text(name)?);
        match value {
            Param::None => {
                bytes.push(kind::NONE);
                bytes.extend([0; 8]);
            }
            Param::Number(number) => {
                bytes.push(kind::NUMBER);
                bytes.extend(number.to_bits().to_le_bytes());
            }
            Param::Flag(flag) => {
                bytes.push(kind::FLAG);
                bytes.extend(u64::from(*flag).to_le_bytes());
            }
            Param::Name(name) => {
                bytes.push(kind::NAME);
                bytes.extend(shared.text(name)?);
                bytes.extend([0; 4]);
            }
        }
    }
    Ok(bytes)
}

fn array(spec: &InputSpec, tensor: &Tensor) -> Result<Vec<u8>, String> {
    if tensor.shape.len() > MAX_RANK {
        return Err(format!("`{}` has more than {MAX_RANK} sizes", spec.name));
    }
    let values = &tensor.values;
    let is_single = values.iter().all(|value| value.is_nan() || f64::from(*value as f32).to_bits() == value.to_bits());
    let kind = match spec.domain {
        Domain::Mask | Domain::Done => kind::MASK,
        domain if !is_real(domain) => kind::INDEX,
        _ if is_single => kind::F32,
        _ => kind::F64,
    };
    let mut bytes = vec![kind, byte(tensor.shape.len())?];
    for size in &tensor.shape {
        bytes.extend(word(*size)?);
    }
    for value in values {
        match kind {
            kind::MASK => bytes.push(*value as u8),
            kind::INDEX => bytes.extend((*value as u32).to_le_bytes()),
            kind::F32 => bytes.extend((*value as f32).to_le_bytes()),
            _ => bytes.extend(value.to_le_bytes()),
        }
    }
    Ok(bytes)
}

fn byte(number: usize) -> Result<u8, String> {
    u8::try_from(number).map_err(|_| format!("{number} does not fit into 8 bits"))
}

fn word(number: usize) -> Result<[u8; 4], String> {
    u32::try_from(number).map(u32::to_le_bytes).map_err(|_| format!("{number} does not fit into 32 bits"))
}
