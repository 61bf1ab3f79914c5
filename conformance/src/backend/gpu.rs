//! The kernels for graphics processors.

use std::cell::RefCell;

use plumbline_core::num::Dtype;
use plumbline_evaluate::{Evaluator, Invocation, Outputs, Request, evaluate_by};
use plumbline_gpu::{Device, Emulated, Error, evaluate::evaluate};

use super::{Backend, Failure};

/// The kernels on a device.
#[derive(Clone, Copy, Debug)]
pub struct OnDevice<D> {
    /// The backend's name on the command line.
    pub name: &'static str,
    /// The device.
    pub device: D,
}

impl OnDevice<Emulated> {
    /// The kernels' source on an emulated grid.
    pub fn host() -> Self {
        OnDevice { name: "gpu-host", device: Emulated::default() }
    }
}

impl<D: Device> Backend for OnDevice<D> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn dtypes(&self) -> &'static [Dtype] {
        &[Dtype::F32, Dtype::F64]
    }

    fn evaluate(&self, request: &Request<'_>) -> Result<Outputs, Failure> {
        on_device(&self.device, request)
    }
}

/// The first CUDA device of this machine, opened when it is first asked for.
#[derive(Debug, Default)]
pub struct Gpu {
    #[cfg(feature = "cuda")]
    device: std::cell::OnceCell<Result<plumbline_gpu::Cuda, Error>>,
}

impl Gpu {
    #[cfg(feature = "cuda")]
    fn device(&self) -> Result<&plumbline_gpu::Cuda, String> {
        self.device.get_or_init(plumbline_gpu::Cuda::open).as_ref().map_err(Error::to_string)
    }

    #[cfg(not(feature = "cuda"))]
    fn device(&self) -> Result<&Emulated, String> {
        Err("this program was built without the feature `cuda`".to_owned())
    }
}

impl Backend for Gpu {
    fn name(&self) -> &'static str {
        "gpu"
    }

    fn dtypes(&self) -> &'static [Dtype] {
        &[Dtype::F32, Dtype::F64]
    }

    fn ready(&self) -> Result<(), String> {
        self.device().map(|_| ())
    }

    fn evaluate(&self, request: &Request<'_>) -> Result<Outputs, Failure> {
        on_device(self.device().map_err(Failure::Broke)?, request)
    }
}

/// Evaluate on a device. What is no judgement of the input ends as an error of the device, kept aside.
fn on_device<D: Device>(device: &D, request: &Request<'_>) -> Result<Outputs, Failure> {
    let kernels = Kernels { device, aside: RefCell::new(None) };
    let result = evaluate_by(&kernels, request);
    match kernels.aside.into_inner() {
        Some(error @ Error::NoKernel(_)) => Err(Failure::Skipped(error.to_string())),
        Some(error) => Err(Failure::Broke(error.to_string())),
        None => result.map_err(|refusal| Failure::Refused(refusal.to_string())),
    }
}

struct Kernels<'d, D> {
    device: &'d D,
    aside: RefCell<Option<Error>>,
}

impl<D> Kernels<'_, D> {
    fn settle(&self, result: Result<(), Error>) -> Result<(), plumbline_core::Error> {
        result.or_else(|error| match error {
            Error::Core(error) => Err(error),
            other => {
                *self.aside.borrow_mut() = Some(other);
                Ok(())
            }
        })
    }
}

impl<D: Device> Evaluator for Kernels<'_, D> {
    fn single(&self, call: Invocation<'_, '_, f32>) -> Result<(), plumbline_core::Error> {
        self.settle(evaluate(self.device, call.operation, call.dialect, call.given, call.inputs, call.outputs))
    }

    fn double(&self, call: Invocation<'_, '_, f64>) -> Result<(), plumbline_core::Error> {
        self.settle(evaluate(self.device, call.operation, call.dialect, call.given, call.inputs, call.outputs))
    }
}
