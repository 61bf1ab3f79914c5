//! The committed table, and how a run differs from it.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use plumbline_bits::Hash;
use plumbline_core::num::Dtype;

use super::cases::Set;

/// The table inside this program.
static EMBEDDED: &str = include_str!("../../../fixtures/bits.txt");

const HEADING: &str = "\
# The results of every operation on the golden and on the seeded cases, as hashes (docs/src/bits.md).
# `plumbline bits` compares, `plumbline bits --update` writes. A changed hash of results beside an unchanged hash of inputs
# is a changed numeric result, which CHANGELOG.md tells.
# operation set cases refused inputs f32 f64
";

/// The hashes of one operation on one set of cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The operation's identifier.
    pub operation: String,
    /// The set.
    pub set: Set,
    /// How many cases there are.
    pub cases: usize,
    /// How many evaluations were refused, of two for each case.
    pub refused: usize,
    /// Hash of the cases themselves.
    pub inputs: Hash,
    /// Hash of the results in single precision; `None` where the backend has none.
    pub f32: Option<Hash>,
    /// Hash of the results in double precision.
    pub f64: Option<Hash>,
}

impl Row {
    fn hash(&self, dtype: Dtype) -> Option<Hash> {
        match dtype {
            Dtype::F32 => self.f32,
            Dtype::F64 => self.f64,
        }
    }
}

/// What is not as in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The table has no such row.
    New,
    /// The cases are others.
    Cases,
    /// The same cases have other results, in these precisions.
    Results(Vec<Dtype>),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::New => f.write_str("is not in the table"),
            Difference::Cases => f.write_str("has other cases than those of the table"),
            Difference::Results(dtypes) => {
                let names: Vec<&str> = dtypes.iter().map(|dtype| dtype.name()).collect();
                write!(f, "NUMERIC RESULT DIFFERS in {}", names.join(" and "))
            }
        }
    }
}

/// Rows by operation and set.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<Row>,
}

/// What a target printed, beside the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// How many hashes are equal.
    pub equal: usize,
    /// Those that differ: operation, set and precision.
    pub differ: Vec<String>,
    /// Those of the table that were not printed.
    pub missing: Vec<String>,
}

impl Table {
    /// A table of these rows.
    pub fn new(rows: Vec<Row>) -> Self {
        Table { rows }
    }

    /// The table inside this program.
    pub fn embedded() -> Result<Self, String> {
        Table::parse(EMBEDDED)
    }

    /// Read a table.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut rows = Vec::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#') && !line.is_empty()) {
            let row = parse_row(line).ok_or_else(|| format!("line {} is no row of a table of bits", number + 1))?;
            rows.push(row);
        }
        Ok(Table { rows })
    }

    /// The rows.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The table as it is committed.
    pub fn text(&self) -> String {
        let mut text = HEADING.to_owned();
        for row in &self.rows {
            let hash = |hash: Option<Hash>| hash.map_or_else(|| "-".to_owned(), |hash| hash.to_string());
            let (set, inputs) = (row.set.name(), row.inputs);
            let (single, double) = (hash(row.f32), hash(row.f64));
            let _ = writeln!(text, "{} {set} {} {} {inputs} {single} {double}", row.operation, row.cases, row.refused);
        }
        text
    }

    fn find(&self, operation: &str, set: Set) -> Option<&Row> {
        self.rows.iter().find(|row| row.operation == operation && row.set == set)
    }

    /// How a row of another run differs from this table; `None` where it does not. A precision that the other run does
    /// not have is not compared.
    pub fn difference(&self, other: &Row) -> Option<Difference> {
        let Some(row) = self.find(&other.operation, other.set) else { return Some(Difference::New) };
        if row.inputs != other.inputs || row.cases != other.cases {
            return Some(Difference::Cases);
        }
        let differs = |dtype: &Dtype| other.hash(*dtype).is_some() && row.hash(*dtype) != other.hash(*dtype);
        let dtypes: Vec<Dtype> = [Dtype::F32, Dtype::F64].into_iter().filter(differs).collect();
        if dtypes.is_empty() { None } else { Some(Difference::Results(dtypes)) }
    }

    /// Compare with what a target printed: lines of operation, set, precision and hash; other lines are passed over.
    /// What is missing is looked for among the operations with `filter` in their identifier, in the sets and precisions
    /// that the target printed at all.
    pub fn compare_lines(&self, text: &str, filter: &str) -> Lines {
        let mut printed: BTreeMap<(Set, &str), BTreeMap<&str, Hash>> = BTreeMap::new();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let [operation, set, dtype, hash] = words.as_slice()
                && let (Some(set), Some(hash)) = (Set::named(set), Hash::parse(hash))
            {
                printed.entry((set, dtype)).or_default().insert(operation, hash);
            }
        }
        let mut lines = Lines::default();
        for ((set, name), hashes) in &printed {
            let dtype = [Dtype::F32, Dtype::F64].into_iter().find(|dtype| dtype.name() == *name);
            let expected = |row: &Row| dtype.and_then(|dtype| row.hash(dtype));
            for (operation, hash) in hashes {
                match self.find(operation, *set).and_then(expected) {
                    Some(expected) if expected == *hash => lines.equal += 1,
                    _ => lines.differ.push(format!("{operation} {} {name}", set.name())),
                }
            }
            for row in self.rows.iter().filter(|row| row.set == *set && row.operation.contains(filter)) {
                if row.cases > 0 && !hashes.contains_key(row.operation.as_str()) {
                    lines.missing.push(format!("{} {} {name}", row.operation, set.name()));
                }
            }
        }
        lines
    }
}

fn parse_row(line: &str) -> Option<Row> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [operation, set, cases, refused, inputs, single, double] = words.as_slice() else { return None };
    let hash = |word: &str| if word == "-" { Some(None) } else { Hash::parse(word).map(Some) };
    Some(Row {
        operation: (*operation).to_owned(),
        set: Set::named(set)?,
        cases: cases.parse().ok()?,
        refused: refused.parse().ok()?,
        inputs: Hash::parse(inputs)?,
        f32: hash(single)?,
        f64: hash(double)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(f32: u64, f64: u64) -> Row {
        Row {
            operation: "kl.k1".to_owned(),
            set: Set::Golden,
            cases: 3,
            refused: 0,
            inputs: Hash(1),
            f32: Some(Hash(f32)),
            f64: Some(Hash(f64)),
        }
    }

    #[test]
    fn a_table_is_read_as_it_is_written() {
        let table = Table::new(vec![row(2, 3), Row { set: Set::Seeded, f32: None, ..row(0, 4) }]);
        assert_eq!(Table::parse(&table.text()).unwrap().rows(), table.rows());
        assert_eq!(Table::parse("kl.k1 golden 3\n").unwrap_err(), "line 1 is no row of a table of bits");
    }

    #[test]
    fn other_results_are_told_from_other_cases() {
        let table = Table::new(vec![row(2, 3)]);
        assert_eq!(table.difference(&row(2, 3)), None);
        assert_eq!(table.difference(&row(2, 4)), Some(Difference::Results(vec![Dtype::F64])));
        assert_eq!(table.difference(&Row { f64: None, ..row(2, 0) }), None);
        assert_eq!(table.difference(&Row { inputs: Hash(9), ..row(5, 3) }), Some(Difference::Cases));
        assert_eq!(table.difference(&Row { set: Set::Seeded, ..row(2, 3) }), Some(Difference::New));
    }

    #[test]
    fn what_a_target_prints_is_compared_and_may_not_be_missing() {
        let table = Table::new(vec![row(2, 3), Row { operation: "kl.k2".to_owned(), ..row(5, 6) }]);
        let printed = "some words\nkl.k1 golden f32 0000000000000002\nkl.k1 golden f64 0000000000000004\n";
        let lines = table.compare_lines(printed, "");
        assert_eq!((lines.equal, lines.differ.as_slice()), (1, ["kl.k1 golden f64".to_owned()].as_slice()));
        assert_eq!(lines.missing, ["kl.k2 golden f32", "kl.k2 golden f64"]);
        assert!(table.compare_lines(printed, "k1").missing.is_empty());
    }
}
