//! The golden run: every case through a backend, compared with what the oracle gave.

mod junit;
mod report;
mod run;
mod table;

pub use junit::junit;
pub use report::{CaseReport, FamilyReport, Finding, FindingKind, Report, Verdict, Worst};
pub use run::{dialect_of, verify, verify_case};
pub use table::{findings_text, table};
