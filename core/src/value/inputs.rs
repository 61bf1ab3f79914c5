//! Inputs, outputs and the masked mean that the files of this family share.

use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Domain, InputSpec, OutputSpec, Source};

/// The predicted value.
pub const VALUE: InputSpec =
    InputSpec::new("value", Domain::Value, &[&["B", "T"]], "predicted value at each token (units of the return)");
/// The return it is fitted to.
pub const RETURN: InputSpec =
    InputSpec::new("return", Domain::Value, &[&["B", "T"]], "return at each token, a constant (no gradient)");
/// The mean loss.
pub const LOSS: OutputSpec = OutputSpec::value("loss", &[], "mean loss over the unmasked tokens");
/// Its gradient.
pub const D_VALUE: OutputSpec =
    OutputSpec::gradient("d_value", "value", &["B", "T"], "derivative of the mean loss by each value");
/// The loss of each token.
pub const TOKEN_LOSS: OutputSpec = OutputSpec::value("token_loss", &["B", "T"], "loss of each token");
/// The paper whose appendix and code fit the value by squared error.
pub const PPO: Source =
    Source { title: "Proximal Policy Optimization Algorithms", reference: "arXiv:1707.06347", place: "Eq. 9, L^VF" };

/// The mean over unmasked tokens of a loss that gives [value, derivative by the first input], its gradient, and the loss
/// of each token. The inputs must be finite where the mask keeps; an empty mask is an error.
pub fn mean_loss<R: Real, const I: usize>(
    call: &mut Call<'_, R>,
    inputs: [&'static str; I],
    formula: impl Fn([R; I]) -> [R; 2],
) -> Result<(), Error> {
    let mask = call.mask()?;
    let mut columns: [&[R]; I] = [&[]; I];
    for (column, name) in columns.iter_mut().zip(inputs) {
        *column = call.real(name)?;
        mask.check_finite(name, column)?;
    }
    let count = mask.count();
    if count == 0 {
        return Err(Error::EmptyMask { argument: "mask" });
    }
    let count = R::from_count(count);
    let term = |slot: usize| formula(columns.map(|column| column.get(slot).copied().unwrap_or(R::zero())));
    let loss = mask.sum(|slot| term(slot)[0]) / count;
    if let Some(buffer) = call.output("d_value") {
        mask.write(buffer, |slot| term(slot)[1] / count);
    }
    if let Some(buffer) = call.output("token_loss") {
        mask.write(buffer, |slot| term(slot)[0]);
    }
    call.write("loss", loss);
    Ok(())
}
