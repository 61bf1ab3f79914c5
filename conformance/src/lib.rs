//! Checks implementations of reinforcement-learning losses against Plumbline's core.
//!
//! The way of the data: golden files ([`fixture`]) or a user's JSON → named arrays → a [`backend`], of which core (by
//! `plumbline-evaluate`) is the first → [`compare`] with a bound that follows from the precision → a report
//! ([`verify`]). An implementation that runs as a program ([`protocol`]) is asked for its numbers on chosen inputs
//! and told what it computes (by `plumbline-diagnosis`, [`report`]). No operation is known here by name: everything
//! comes from the catalog.

pub mod backend;
pub mod batch_file;
pub mod bits;
pub mod compare;
pub mod fixture;
pub mod protocol;
pub mod report;
pub mod verify;
