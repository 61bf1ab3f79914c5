//! DAPO's soft punishment of overlong responses.

use crate::Error;
use crate::num::Real;
use crate::spec::{
    Call, Dialect, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, Value, evaluate_with,
};

/// The choices of [`overlong`].
#[derive(Clone, Copy, Debug)]
pub struct Overlong<R> {
    /// L_max: the length from which the punishment is full.
    pub max_length: u32,
    /// L_cache: over how many tokens before it the punishment grows.
    pub buffer_length: u32,
    /// The full punishment, as a positive number.
    pub penalty_factor: R,
    /// Whether the punishment stays at its full value beyond L_max (verl lets it grow).
    pub floor: bool,
}

/// The punishment of a response of `length` tokens: 0 up to L_max − L_cache, then falling to −factor at L_max over L_cache
/// tokens, and −factor beyond (soft overlong punishment; DAPO, Yu et al. 2025, eq. 13).
///
/// The result is to be added to the reward. Not differentiated. Errors: `OutOfRange` of `buffer_length` (0, or above
/// `max_length`) and of `penalty_factor` (negative).
///
/// Differs in: verl (no floor: beyond L_max the punishment goes on growing).
///
/// ```
/// use plumbline_core::reward::{Overlong, overlong};
/// let soft = Overlong { max_length: 100, buffer_length: 20, penalty_factor: 1.0, floor: true };
/// assert_eq!(overlong(80, soft)?, 0.0);
/// assert_eq!(overlong(90, soft)?, -0.5);
/// assert_eq!(overlong(140, soft)?, -1.0);
/// assert_eq!(overlong(140, Overlong { floor: false, ..soft })?, -3.0);
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn overlong<R: Real>(length: u32, config: Overlong<R>) -> Result<R, Error> {
    config.check()?;
    Ok(config.punishment(length))
}

impl<R: Real> Overlong<R> {
    fn check(&self) -> Result<(), Error> {
        if self.buffer_length == 0 || self.buffer_length > self.max_length {
            let value = f64::from(self.buffer_length);
            return Err(Error::OutOfRange { argument: "buffer_length", value, legal: "from 1 to max_length" });
        }
        let factor = self.penalty_factor.to_f64();
        if Range::NON_NEGATIVE.contains(factor) {
            return Ok(());
        }
        Err(Error::OutOfRange { argument: "penalty_factor", value: factor, legal: Range::NON_NEGATIVE.text })
    }

    fn punishment(&self, length: u32) -> R {
        let beyond = length.saturating_sub(self.max_length - self.buffer_length);
        let beyond = if self.floor { beyond.min(self.buffer_length) } else { beyond };
        if beyond == 0 {
            return R::zero();
        }
        -(R::from_count(beyond as usize) / R::from_count(self.buffer_length as usize) * self.penalty_factor)
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let whole = |name: &'static str, value: usize| {
        u32::try_from(value).map_err(|_| Error::OutOfRange { argument: name, value: value as f64, legal: "below 2^32" })
    };
    let config = Overlong {
        max_length: whole("max_length", call.integer("max_length")?)?,
        buffer_length: whole("buffer_length", call.integer("buffer_length")?)?,
        penalty_factor: call.number("penalty_factor")?,
        floor: call.flag("floor"),
    };
    config.check()?;
    let lengths = call.index("length")?;
    if let Some(out) = call.output("penalty") {
        for (penalty, length) in out.iter_mut().zip(lengths) {
            *penalty = config.punishment(*length);
        }
    }
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "reward.overlong",
    family: Family::Reward,
    title: "Soft overlong punishment",
    summary: "A penalty that grows linearly over the last tokens before the length limit.",
    formula: r"R_{\mathrm{length}}(y) = \begin{cases} 0 & |y| \le L_{\max} - L_{\mathrm{cache}}\\
f\,\frac{(L_{\max} - L_{\mathrm{cache}}) - |y|}{L_{\mathrm{cache}}} & \text{up to } L_{\max}\\ -f & \text{beyond}\end{cases}",
    gradient: "",
    notes: "The number is negative and is added to the reward. verl takes min(-(L - (max - buffer))/buffer · factor, 0), \
            which has no floor: where generation stops at max_length the two agree. verl computes it in single precision.",
    sources: &[Source {
        title: "DAPO: An Open-Source LLM Reinforcement Learning System at Scale",
        reference: "arXiv:2503.14476",
        place: "eq. 13, soft overlong punishment",
    }],
    inputs: &[InputSpec::new("length", Domain::Count, &[&["B"]], "tokens of each response")],
    params: &[
        ParamSpec::integer(
            "max_length",
            r"L_{\max}",
            20_480,
            1,
            u32::MAX as i64,
            "length from which the punishment is full (tokens)",
        ),
        ParamSpec::integer(
            "buffer_length",
            r"L_{\mathrm{cache}}",
            4_096,
            1,
            u32::MAX as i64,
            "tokens before it over which the punishment grows",
        ),
        ParamSpec::number("penalty_factor", "f", 1.0, Range::NON_NEGATIVE, "the full punishment, a positive number"),
        ParamSpec::flag("floor", true, "whether the punishment stays at its full value beyond max_length"),
    ],
    defaults: &[],
    outputs: &[OutputSpec::value("penalty", &["B"], "number <= 0 to add to the reward")],
    dialects: &[
        Dialect { name: "paper", note: "-1 beyond the maximum", settings: &[] },
        Dialect { name: "verl-0.9", note: "no floor", settings: &[("floor", Value::Flag(false))] },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_and_errors() {
        let soft = Overlong { max_length: 16, buffer_length: 4, penalty_factor: 2.0, floor: true };
        let all: [f64; 5] = [0, 12, 13, 16, 17].map(|length| overlong(length, soft).unwrap());
        assert_eq!(all, [0.0, 0.0, -0.5, -2.0, -2.0]);
        assert_eq!(all[0].to_bits(), 0);
        assert_eq!(overlong(20, Overlong { floor: false, ..soft }).unwrap(), -4.0);
        let error = |config| overlong(1, config).unwrap_err();
        let legal = "from 1 to max_length";
        assert_eq!(
            error(Overlong { buffer_length: 0, ..soft }),
            Error::OutOfRange { argument: "buffer_length", value: 0.0, legal }
        );
        assert_eq!(
            error(Overlong { buffer_length: 17, ..soft }),
            Error::OutOfRange { argument: "buffer_length", value: 17.0, legal }
        );
        let negative = Overlong { penalty_factor: -1.0, ..soft };
        assert_eq!(error(negative), Error::OutOfRange { argument: "penalty_factor", value: -1.0, legal: ">= 0" });
    }
}
