//! The catalog for JavaScript. One [`Call`] carries one evaluation over the border: arrays are copied once into the
//! module's memory and results once out of it. The package's own scripts (`wasm/npm`) wrap it; users do not see it.

mod call;
#[cfg(feature = "identify")]
mod identify;
mod refused;

pub use call::Call;
#[cfg(feature = "identify")]
pub use identify::Identification;
pub use refused::Refused;
