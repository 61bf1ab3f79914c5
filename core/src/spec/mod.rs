//! The types that describe an operation as data, and the uniform way to evaluate one by name.
//!
//! An [`Operation`] says what is computed (TeX), from which inputs (name, shape, domain), with which parameters
//! (default, legal range), where it comes from, and which settings of its parameters are the dialects of known
//! libraries. [`evaluate`] checks a call against that description and hands it to the operation's function. Bindings,
//! the command line, the conformance run and the book are driven by these types and know no operation by name.

mod call;
mod choice;
mod elementwise;
mod kernel;
mod operation;
mod params;
mod shape;
#[cfg(test)]
pub(crate) mod testing;

pub use call::{Call, Data, Evaluable, Input, MAX_OUTPUTS, Output, evaluate, evaluate_by};
pub use choice::Choice;
pub(crate) use choice::choice;
pub(crate) use elementwise::map_elements;
pub use elementwise::{Elementwise, evaluate_elements, formula_of};
pub use kernel::Kernel;
pub(crate) use operation::evaluate_with;
pub use operation::{
    Dialect, Domain, Evaluate, Family, InputSpec, Operation, OutputSpec, ParamKind, ParamSpec, Range, Shape, Source,
    Value,
};
pub use params::{Given, GivenValue, MAX_PARAMS, Params};
pub use shape::{Dims, MAX_DIMS, resolve_dims};
