//! How `plumbline check` talks to an implementation: JSON lines on standard input and output.
//!
//! The protocol is described in docs/src/protocol.md and in the schema `fixtures/schema/plumbline-protocol-1.schema.json`.
//! Nothing that an implementation does (crash, hang, garbage, a line without end) does more than end in a [`Break`].

mod lines;
mod message;
mod subject;

pub use lines::LONGEST_LINE;
pub use message::{Answer, Declared, Request, Start, VERSION, read_answer, read_start};
pub use subject::{Break, Subject};
