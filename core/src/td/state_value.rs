//! TD(0) for state values.

use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Domain, Family, InputSpec, Operation, OutputSpec, Source, evaluate_with};
use crate::td::transition::{
    DISCOUNT, DONE, ERROR_LOSS, Estimate, HUBER_THRESHOLD, LOSS, REWARD, TARGET, TD_ERROR, WEIGHT, ended, finite,
    learn, one_step_target,
};

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let discount: R = call.number("discount")?;
    let (rewards, next, done) = (call.finite("reward")?, call.real("next_value")?, call.optional_bytes("done"));
    learn(call, Estimate::Value, |_, n| {
        let bootstrap = if ended(done, n) { None } else { Some(finite("next_value", next, n)?) };
        Ok(one_step_target(finite("reward", rewards, n)?, discount, bootstrap))
    })
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "td.td0",
    family: Family::TemporalDifference,
    title: "TD(0)",
    summary: "The state's value is moved towards the reward plus the discounted value of the next state.",
    formula: r"y = r + \gamma(1 - d)V(s'),\quad \delta = y - V(s),\quad L = \frac1N\sum w\,\ell(\delta)",
    gradient: r"\partial L/\partial V(s) = -\frac{w}{N}\,\ell'(\delta)",
    notes: "The semi-gradient: y is a constant. With half_squared and step size α the update is Sutton and Barto's \
            V ← V + αδ. No dialects.",
    sources: &[Source {
        title: "Reinforcement Learning: An Introduction, 2nd edition",
        reference: "Sutton and Barto 2018, ISBN 978-0-262-03924-6",
        place: "Eq. 6.2 and 6.5",
    }],
    inputs: &[
        InputSpec::new("value", Domain::Value, &[&["N"]], "value of the state, the estimate that learns"),
        REWARD,
        InputSpec::new("next_value", Domain::Value, &[&["N"]], "value of the next state, a constant"),
        DONE,
        WEIGHT,
    ],
    params: &[DISCOUNT, ERROR_LOSS, HUBER_THRESHOLD],
    defaults: &[],
    outputs: &[
        LOSS,
        TARGET,
        TD_ERROR,
        OutputSpec::gradient("d_value", "value", &["N"], "derivative of the loss by each value"),
    ],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;

    fn case() -> Case {
        Case::new(SPECS, "td.td0")
            .real("value", &[2], &[1.0, 2.0])
            .real("reward", &[2], &[1.0, 3.0])
            .real("next_value", &[2], &[4.0, f64::NAN])
            .mask("done", &[2], &[0, 1])
            .number("discount", 0.5)
    }

    #[test]
    fn nothing_is_read_behind_the_end() {
        assert_eq!(case().get("target").unwrap(), [3.0, 3.0]);
        assert_eq!(case().get("td_error").unwrap(), [2.0, 1.0]);
        assert_eq!(case().get("loss").unwrap(), [1.25]);
        assert_eq!(case().get("d_value").unwrap(), [-1.0, -0.5]);
        case().check_gradient("value");
        case().choice("error_loss", "huber").number("huber_threshold", 1.5).check_gradient("value");
        let open = case().mask("done", &[2], &[0, 0]).get("loss");
        assert_eq!(open, Err(Error::NonFinite { argument: "next_value", index: 1 }));
    }

    #[test]
    fn weights_scale_loss_and_gradient() {
        let weighted = case().real("importance_weight", &[2], &[0.5, 0.0]);
        assert_eq!(weighted.get("loss").unwrap(), [0.5]);
        assert_eq!(weighted.get("d_value").unwrap(), [-0.5, 0.0]);
        assert_eq!(weighted.get("td_error").unwrap(), [2.0, 1.0]);
    }
}
