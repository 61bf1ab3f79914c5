//! Plumbline for C and C++: `include/plumbline.h`, which is generated from this crate.
//!
//! The catalog describes and evaluates every operation here as it does in Rust; no operation is known by name. Nothing is
//! allocated, no state is kept, so that every function may be called from any number of threads at once. What a caller
//! can get wrong (null or misaligned pointers, overlapping buffers, unknown names, wrong shapes) is a status with a
//! message; no panic crosses the boundary.

mod boundary;
mod call;
mod describe;
mod evaluate;
mod status;
mod text;

pub use call::{
    PlumblineCall, PlumblineDtype, PlumblineInput, PlumblineOutput, PlumblineParam, PlumblineParamKind,
    plumbline_param_flag, plumbline_param_name, plumbline_param_none, plumbline_param_number,
};
pub use describe::{
    PLUMBLINE_MAX_RANK, PlumblineDialectInfo, PlumblineInputInfo, PlumblineNumbers, PlumblineOperationInfo,
    PlumblineOutputInfo, PlumblineParamInfo, PlumblineShapeInfo, PlumblineSourceInfo, plumbline_dialect,
    plumbline_find, plumbline_input, plumbline_input_shape, plumbline_operation, plumbline_operation_count,
    plumbline_output, plumbline_param, plumbline_param_choice, plumbline_source, plumbline_version,
};
pub use evaluate::{plumbline_evaluate, plumbline_output_shape};
pub use status::{PLUMBLINE_MESSAGE_SIZE, PLUMBLINE_NO_INDEX, PlumblineError, PlumblineStatus};
pub use text::PlumblineText;
