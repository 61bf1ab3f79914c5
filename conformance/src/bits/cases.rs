//! What is computed: the cases of every operation.

use plumbline_bits::{Digest, Hash};
use plumbline_core::catalog;
use plumbline_core::spec::Operation;
use plumbline_evaluate::Param;
use plumbline_evaluate::tensor::Tensor;

use super::seeded;
use crate::fixture::Golden;
use crate::verify::dialect_of;

/// Where cases come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Set {
    /// The inputs of the golden cases.
    Golden,
    /// Drawn from a seed: small ones for every setting, and large ones.
    Seeded,
}

impl Set {
    /// Both sets.
    pub const ALL: [Set; 2] = [Set::Golden, Set::Seeded];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Set::Golden => "golden",
            Set::Seeded => "seeded",
        }
    }

    /// The set of that name.
    pub fn named(name: &str) -> Option<Set> {
        Set::ALL.into_iter().find(|set| set.name() == name)
    }
}

/// One case, computed in both precisions.
#[derive(Clone, Debug)]
pub struct Case {
    /// The dialect.
    pub dialect: Option<String>,
    /// Parameters by name.
    pub params: Vec<(String, Param)>,
    /// Inputs by name.
    pub inputs: Vec<(String, Tensor)>,
}

/// The cases of one operation in one set.
#[derive(Clone, Debug)]
pub struct Group {
    /// The operation.
    pub operation: &'static Operation,
    /// The set.
    pub set: Set,
    /// The cases, in their order.
    pub cases: Vec<Case>,
}

impl Group {
    /// A hash of the cases themselves: where it changes, the results are those of other inputs.
    pub fn inputs_hash(&self) -> Hash {
        let mut digest = Digest::new();
        for case in &self.cases {
            digest.case();
            digest.bytes(case.dialect.as_deref().unwrap_or("").as_bytes());
            for (name, value) in &case.params {
                digest.bytes(format!("\n{name}=").as_bytes());
                match value {
                    Param::None => digest.bytes(b"none"),
                    Param::Number(number) => digest.bytes(&number.to_bits().to_le_bytes()),
                    Param::Flag(flag) => digest.bytes(if *flag { b"true" } else { b"false" }),
                    Param::Name(name) => digest.bytes(name.as_bytes()),
                }
            }
            for (name, tensor) in &case.inputs {
                digest.bytes(format!("\n{:?}", tensor.shape).as_bytes());
                digest.output(name, tensor.values.iter().copied());
            }
        }
        digest.finish()
    }
}

/// All cases of the operations whose identifier contains `filter`, in the order of the catalog.
pub fn cases(files: &[Golden], sets: &[Set], filter: &str) -> Vec<Group> {
    let mut groups = Vec::new();
    for operation in catalog::operations().filter(|operation| operation.id.contains(filter)) {
        for set in sets {
            let cases = match set {
                Set::Golden => golden(files, operation),
                Set::Seeded => seeded::cases(operation),
            };
            groups.push(Group { operation, set: *set, cases });
        }
    }
    groups
}

fn golden(files: &[Golden], operation: &Operation) -> Vec<Case> {
    files
        .iter()
        .flat_map(|golden| &golden.cases)
        .filter(|case| case.operation == operation.id)
        .map(|case| Case {
            dialect: dialect_of(case).map(str::to_owned),
            params: case.params.clone(),
            inputs: case.inputs.clone(),
        })
        .collect()
}
