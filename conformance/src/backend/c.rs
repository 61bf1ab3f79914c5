//! The C library.
#![allow(unsafe_code)]

use std::env;
use std::ffi::{CString, c_char};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;

use libloading::Library;
use plumbline::{
    PLUMBLINE_MAX_RANK, PlumblineCall, PlumblineDtype, PlumblineError, PlumblineInput, PlumblineOutput, PlumblineParam,
    PlumblineParamKind, PlumblineStatus,
};
use plumbline_core::num::{Dtype, Real};
use plumbline_core::spec::{Data, Evaluable, OutputSpec};
use plumbline_evaluate::tensor::Tensor;
use plumbline_evaluate::{Converted, Outputs, Param, Request, Wanted, operation_named};

use super::{Backend, Failure};

/// Names the shared library, where it is not beside this program.
const VARIABLE: &str = "PLUMBLINE_LIBRARY";

/// The shared library that programs in C use, loaded into this process and called as they call it.
#[derive(Default)]
pub struct C {
    functions: OnceLock<Result<Functions, String>>,
}

type EvaluateFunction =
    unsafe extern "C" fn(*const PlumblineCall, *const PlumblineOutput, usize, *mut PlumblineError) -> PlumblineStatus;
type ShapeFunction = unsafe extern "C" fn(
    *const PlumblineCall,
    *const c_char,
    *mut usize,
    *mut usize,
    *mut usize,
    *mut PlumblineError,
) -> PlumblineStatus;

struct Functions {
    evaluate: EvaluateFunction,
    output_shape: ShapeFunction,
    /// Keeps the code of the functions in memory.
    _library: Library,
}

impl Backend for C {
    fn name(&self) -> &'static str {
        "c"
    }

    fn dtypes(&self) -> &'static [Dtype] {
        &[Dtype::F32, Dtype::F64]
    }

    fn ready(&self) -> Result<(), String> {
        self.functions().map(|_| ())
    }

    fn evaluate(&self, request: &Request<'_>) -> Result<Outputs, Failure> {
        let functions = self.functions().map_err(Failure::Broke)?;
        match request.dtype {
            Dtype::F32 => evaluate::<f32>(functions, request),
            Dtype::F64 => evaluate::<f64>(functions, request),
        }
    }
}

impl C {
    fn functions(&self) -> Result<&Functions, String> {
        self.functions.get_or_init(load).as_ref().map_err(Clone::clone)
    }
}

fn load() -> Result<Functions, String> {
    let path = find()?;
    let told = |error: libloading::Error| format!("{}: {error}", path.display());
    // SAFETY: the library is the one that this workspace builds, or the one that the user names: loading it runs no code of
    // its own. The types of the functions are those of the crate that it is built from, and `_library` keeps it loaded.
    unsafe {
        let library = Library::new(&path).map_err(told)?;
        let evaluate = *library.get::<EvaluateFunction>(c"plumbline_evaluate").map_err(told)?;
        let output_shape = *library.get::<ShapeFunction>(c"plumbline_output_shape").map_err(told)?;
        Ok(Functions { evaluate, output_shape, _library: library })
    }
}

/// The library that the user names; else the one that was built together with this program.
fn find() -> Result<PathBuf, String> {
    if let Some(path) = env::var_os(VARIABLE) {
        return Ok(path.into());
    }
    let name = libloading::library_filename("plumbline");
    let program = env::current_exe().map_err(|error| format!("this program does not find itself: {error}"))?;
    let folder = program.parent().unwrap_or(Path::new("."));
    [folder.join("deps").join(&name), folder.join(&name)].into_iter().find(|path| path.exists()).ok_or_else(|| {
        let name = name.display();
        format!("{name} is not beside this program; name it by the environment variable {VARIABLE}")
    })
}

/// A number type, and its pointers in the structures of C.
trait Element: Evaluable {
    const CODE: PlumblineDtype;
    fn input(values: &[Self], input: &mut PlumblineInput);
    fn output(values: &mut [Self], output: &mut PlumblineOutput);
}

impl Element for f32 {
    const CODE: PlumblineDtype = PlumblineDtype::F32;
    fn input(values: &[f32], input: &mut PlumblineInput) {
        input.f32 = values.as_ptr();
    }
    fn output(values: &mut [f32], output: &mut PlumblineOutput) {
        output.f32 = values.as_mut_ptr();
    }
}

impl Element for f64 {
    const CODE: PlumblineDtype = PlumblineDtype::F64;
    fn input(values: &[f64], input: &mut PlumblineInput) {
        input.f64 = values.as_ptr();
    }
    fn output(values: &mut [f64], output: &mut PlumblineOutput) {
        output.f64 = values.as_mut_ptr();
    }
}

/// A buffer for an output.
struct Buffer<R> {
    spec: &'static OutputSpec,
    name: CString,
    shape: Vec<usize>,
    values: Vec<R>,
}

fn evaluate<R: Element>(functions: &Functions, request: &Request<'_>) -> Result<Outputs, Failure> {
    let operation = operation_named(request.operation)?;
    let id = c_text(request.operation)?;
    let dialect = request.dialect.map(c_text).transpose()?;

    let mut texts = Vec::new();
    for (name, value) in request.params {
        let text = if let Param::Name(text) = value { Some(c_text(text)?) } else { None };
        texts.push((c_text(name)?, text));
    }
    let params: Vec<PlumblineParam> = request
        .params
        .iter()
        .zip(&texts)
        .map(|((_, value), (name, text))| {
            let (kind, number) = match value {
                Param::None => (PlumblineParamKind::None, 0.0),
                Param::Number(number) => (PlumblineParamKind::Number, *number),
                Param::Flag(flag) => (PlumblineParamKind::Flag, f64::from(u8::from(*flag))),
                Param::Name(_) => (PlumblineParamKind::Name, 0.0),
            };
            let text = text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
            PlumblineParam { name: name.as_ptr(), kind: kind as u32, number, text }
        })
        .collect();

    let mut converted = Vec::new();
    for (name, tensor) in request.inputs {
        // An input that the operation does not have is told by the library; as what it is handed over does not matter.
        let spec = operation.input(name).or(operation.inputs.first());
        let spec = spec.ok_or_else(|| Failure::Refused(format!("{} has no inputs", operation.id)))?;
        converted.push((c_text(name)?, &tensor.shape, Converted::<R>::new(spec, tensor)?));
    }
    let inputs: Vec<PlumblineInput> = converted
        .iter()
        .map(|(name, shape, converted)| {
            let mut input = PlumblineInput {
                name: name.as_ptr(),
                shape: shape.as_ptr(),
                rank: shape.len(),
                f32: ptr::null(),
                f64: ptr::null(),
                mask: ptr::null(),
                index: ptr::null(),
            };
            match converted.data() {
                Data::Real(values) => R::input(values, &mut input),
                Data::Mask(values) => input.mask = values.as_ptr(),
                Data::Index(values) => input.index = values.as_ptr(),
            }
            input
        })
        .collect();
    let call = PlumblineCall {
        operation: id.as_ptr(),
        dialect: dialect.as_ref().map_or(ptr::null(), |dialect| dialect.as_ptr()),
        dtype: R::CODE as u32,
        params: params.as_ptr(),
        param_count: params.len(),
        inputs: inputs.as_ptr(),
        input_count: inputs.len(),
    };

    let asked = |spec: &OutputSpec| match request.outputs {
        Wanted::All => spec.gradient_of.is_none_or(|input| request.inputs.iter().any(|(name, _)| name == input)),
        Wanted::Values => spec.gradient_of.is_none(),
        Wanted::Named(names) => names.contains(&spec.name),
    };
    let mut buffers = Vec::new();
    for spec in operation.outputs.iter().filter(|spec| asked(spec) || spec.workspace) {
        let name = c_text(spec.name)?;
        match output_shape(functions, &call, &name)? {
            Some(shape) => {
                let count = shape.iter().product();
                buffers.push(Buffer { spec, name, shape, values: vec![R::zero(); count] });
            }
            // Where only what is determined was asked for, the others are left out.
            None if matches!(request.outputs, Wanted::Named(_)) && asked(spec) => {
                return Err(Failure::Refused(format!("the given inputs do not determine the size of `{}`", spec.name)));
            }
            None => {}
        }
    }
    let outputs: Vec<PlumblineOutput> = buffers
        .iter_mut()
        .map(|buffer| {
            let (name, length) = (buffer.name.as_ptr(), buffer.values.len());
            let mut output = PlumblineOutput { name, f32: ptr::null_mut(), f64: ptr::null_mut(), length };
            R::output(&mut buffer.values, &mut output);
            output
        })
        .collect();
    let mut error = PlumblineError::none();
    // SAFETY: every pointer of the call and of the outputs leads into a vector or text of this function, as long as it says;
    // nothing else uses them meanwhile.
    let status = unsafe { (functions.evaluate)(&call, outputs.as_ptr(), outputs.len(), &mut error) };
    ended(status, &error)?;
    Ok(buffers
        .into_iter()
        .filter(|buffer| asked(buffer.spec))
        .map(|buffer| {
            let values = buffer.values.into_iter().map(Real::to_f64).collect();
            (buffer.spec.name.to_owned(), Tensor { shape: buffer.shape, values })
        })
        .collect())
}

/// The sizes of an output; `None` where the inputs do not determine them.
fn output_shape(functions: &Functions, call: &PlumblineCall, name: &CString) -> Result<Option<Vec<usize>>, Failure> {
    let (mut sizes, mut rank, mut length) = ([0; PLUMBLINE_MAX_RANK], 0, 0);
    let mut error = PlumblineError::none();
    // SAFETY: the call's pointers lead to what they say for as long as the call is borrowed, the others to locals.
    let status = unsafe {
        let sizes = sizes.as_mut_ptr();
        (functions.output_shape)(call, name.as_ptr(), sizes, &mut rank, &mut length, &mut error)
    };
    if status == PlumblineStatus::MissingInput {
        return Ok(None);
    }
    ended(status, &error)?;
    let sizes: Vec<usize> = sizes.into_iter().take(rank).collect();
    if sizes.iter().product::<usize>() != length {
        return Err(Failure::Broke(format!("the shape {sizes:?} does not have the length {length}")));
    }
    Ok(Some(sizes))
}

fn ended(status: PlumblineStatus, error: &PlumblineError) -> Result<(), Failure> {
    match status {
        PlumblineStatus::Ok => Ok(()),
        PlumblineStatus::Internal => Err(Failure::Broke(error.text())),
        _ => Err(Failure::Refused(error.text())),
    }
}

fn c_text(text: &str) -> Result<CString, Failure> {
    CString::new(text).map_err(|_| Failure::Refused(format!("`{text:?}` cannot be a name in C")))
}
