//! Evaluate an operation by names and arrays: a coat around [`plumbline_core::spec::evaluate`] that allocates the
//! outputs and says, in words, what is wrong with a request.

mod convert;
pub mod describe;
pub mod nearest;
mod refusal;
mod request;
pub mod tensor;

pub use convert::{Converted, is_real};
pub use refusal::Refusal;
pub use request::{
    Evaluator, Filled, Invocation, Outputs, Param, Request, Wanted, evaluate, evaluate_arrays, evaluate_by,
    input_named, operation_named, resolved_params, shape_of,
};
