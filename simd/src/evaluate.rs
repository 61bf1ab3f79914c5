//! The catalog's uniform evaluation by a level.

use plumbline_core::Error;
use plumbline_core::engine::Engine;
use plumbline_core::spec::{Evaluable, Given, Input, Operation, Output, evaluate_by};

use crate::{Level, Task};

struct Evaluation<'a, 'i, 'o, R> {
    operation: &'static Operation,
    dialect: Option<&'a str>,
    given: &'a [Given<'a>],
    inputs: &'a [Input<'i, R>],
    outputs: &'a mut [Output<'o, R>],
}

impl<R: Evaluable> Task for Evaluation<'_, '_, '_, R> {
    type Output = Result<(), Error>;

    fn run<E: Engine>(self, engine: E) -> Result<(), Error> {
        evaluate_by(engine, self.operation, self.dialect, self.given, self.inputs, self.outputs)
    }
}

/// [`plumbline_core::spec::evaluate`] with the passes called by `level`. An operation without passes of that kind is
/// evaluated as core is compiled.
///
/// ```
/// use plumbline_core::{catalog, spec::{Data, Input, Output}};
/// use plumbline_simd::{Level, evaluate};
/// let operation = catalog::find("objective.ppo").unwrap();
/// let real = |name, data| Input { name, shape: &[1, 2], data: Data::Real(data) };
/// let inputs = [
///     real("log_prob", &[-1.0f32, -1.0]), real("old_log_prob", &[-1.0, -1.0]), real("advantage", &[3.0, -1.0]),
/// ];
/// let mut loss = [0.0];
/// evaluate(Level::best(), operation, None, &[], &inputs, &mut [Output { name: "loss", data: &mut loss }]).unwrap();
/// assert_eq!(loss, [-1.0]);
/// ```
pub fn evaluate<R: Evaluable>(
    level: Level,
    operation: &'static Operation,
    dialect: Option<&str>,
    given: &[Given<'_>],
    inputs: &[Input<'_, R>],
    outputs: &mut [Output<'_, R>],
) -> Result<(), Error> {
    level.run(Evaluation { operation, dialect, given, inputs, outputs })
}
