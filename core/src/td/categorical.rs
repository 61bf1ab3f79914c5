//! C51: a categorical distribution of returns on fixed atoms.

use crate::Error;
use crate::batch::row_of;
use crate::num::{ExactSum, LogPartition, Real, tree_sum_by};
use crate::spec::{Call, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, evaluate_with};
use crate::td::transition::{
    DISCOUNT, DONE, LOSS, REWARD, WEIGHT, at, ended, finite_row, one_step_target, transitions,
};

/// Z atoms at equal distances from `low` to `high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Support<R> {
    low: R,
    high: R,
    atoms: usize,
}

impl<R: Real> Support<R> {
    /// An error where there are fewer than two atoms or `low ≥ high`.
    pub fn new(low: R, high: R, atoms: usize) -> Result<Self, Error> {
        if low >= high {
            return Err(Error::OutOfRange { argument: "value_min", value: low.to_f64(), legal: "below value_max" });
        }
        if atoms < 2 {
            return Err(Error::ShapeMismatch { argument: "next_probability" });
        }
        Ok(Support { low, high, atoms })
    }

    /// The position of an atom (units of the return).
    pub fn atom(self, index: usize) -> R {
        let last = R::from_count(self.atoms - 1);
        let share = R::from_count(index) / last;
        self.low * (R::one() - share) + self.high * share
    }

    /// How much of the mass at `value` an atom gets: 1 − |value − atom|/distance where that is positive. A value beyond the
    /// support counts as at its end, one on an atom gives it all.
    pub fn share(self, value: R, index: usize) -> R {
        let steps = R::from_count(self.atoms - 1);
        let position =
            ((value.clip(self.low, self.high) - self.low) / (self.high - self.low) * steps).clip(R::zero(), steps);
        (R::one() - (position - R::from_count(index)).abs()).larger(R::zero())
    }
}

/// The mass that one atom has after the backup r + γz: Σ_j p_j · share(r + γz_j, atom). Behind the end of an episode all
/// mass is at r, and `next` is not read.
///
/// ```
/// use plumbline_core::td::categorical::{Support, projected_mass};
/// let support = Support::new(-1.0, 1.0, 3)?;
/// // Atoms −1, 0, 1; reward ½ ends the episode: half the mass on 0, half on 1.
/// assert_eq!(projected_mass(support, None, 0.5, 0.9, 1), 0.5);
/// assert_eq!(projected_mass(support, Some(&[0.0, 0.0, 1.0]), -1.0, 1.0, 1), 1.0);
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn projected_mass<R: Real>(support: Support<R>, next: Option<&[R]>, reward: R, discount: R, index: usize) -> R {
    match next {
        None => support.share(reward, index),
        Some(masses) => tree_sum_by(masses.len(), |atom| {
            at(masses, atom) * support.share(one_step_target(reward, discount, Some(support.atom(atom))), index)
        }),
    }
}

struct Backup<'c, R> {
    support: Support<R>,
    next: &'c [R],
    rewards: &'c [R],
    done: Option<&'c [u8]>,
    discount: R,
}

impl<'c, R: Real> Backup<'c, R> {
    fn new(call: &Call<'c, R>) -> Result<Self, Error> {
        Ok(Backup {
            support: Support::new(call.number("value_min")?, call.number("value_max")?, call.dim("Z"))?,
            next: call.real("next_probability")?,
            rewards: call.finite("reward")?,
            done: call.optional_bytes("done"),
            discount: call.number("discount")?,
        })
    }

    fn next_of(&self, n: usize) -> Result<Option<&'c [R]>, Error> {
        let atoms = self.support.atoms;
        if ended(self.done, n) {
            return Ok(None);
        }
        let row = finite_row("next_probability", self.next, atoms, n)?;
        match row.iter().position(|mass| *mass < R::zero() || *mass > R::one()) {
            Some(atom) => Err(Error::ElementOutOfRange {
                argument: "next_probability",
                index: n * atoms + atom,
                value: at(row, atom).to_f64(),
                legal: "in [0, 1]",
            }),
            None => Ok(Some(row)),
        }
    }

    fn mass(&self, next: Option<&[R]>, n: usize, atom: usize) -> R {
        projected_mass(self.support, next, at(self.rewards, n), self.discount, atom)
    }
}

fn evaluate_projection<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let backup = Backup::new(call)?;
    let count = transitions(call, "reward")?;
    let mut output = call.output("target_probability");
    for n in 0..count {
        let next = backup.next_of(n)?;
        for atom in 0..backup.support.atoms {
            crate::batch::set(&mut output, n * backup.support.atoms + atom, backup.mass(next, n, atom));
        }
    }
    Ok(())
}

fn evaluate_loss<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let backup = Backup::new(call)?;
    let count = transitions(call, "reward")?;
    let atoms = backup.support.atoms;
    let logits = call.finite("logit")?;
    let weights = call.optional_finite("importance_weight")?;
    let mut outputs = ["target_probability", "cross_entropy", "d_logit"].map(|name| call.output(name));
    let [targets, entropies, gradient] = &mut outputs;
    let mut total = ExactSum::new();
    for n in 0..count {
        let next = backup.next_of(n)?;
        let row = row_of(logits, atoms, n);
        let partition = LogPartition::new(row, R::one()).ok_or(Error::ShapeMismatch { argument: "logit" })?;
        let log_prob = |atom: usize| partition.log_prob(at(row, atom));
        let weight = weights.map_or(R::one(), |weights| at(weights, n));
        let weighted = |part: R| if weight == R::zero() { R::zero() } else { weight * part };
        let entropy = -tree_sum_by(atoms, |atom| {
            let mass = backup.mass(next, n, atom);
            // An atom without mass asks for no logarithm.
            if mass == R::zero() { R::zero() } else { mass * log_prob(atom) }
        });
        let mass_sum = tree_sum_by(atoms, |atom| backup.mass(next, n, atom));
        total.add(weighted(entropy));
        crate::batch::set(entropies, n, entropy);
        for atom in 0..atoms {
            let mass = backup.mass(next, n, atom);
            crate::batch::set(targets, n * atoms + atom, mass);
            let slope = mass_sum * log_prob(atom).exp() - mass;
            crate::batch::set(gradient, n * atoms + atom, weighted(slope) / R::from_count(count));
        }
    }
    call.write("loss", total.value::<R>() / R::from_count(count));
    Ok(())
}

const C51: Source = Source {
    title: "A Distributional Perspective on Reinforcement Learning",
    reference: "arXiv:1707.06887",
    place: "Eq. 7 and Algorithm 1",
};
const NEXT: InputSpec = InputSpec::new(
    "next_probability",
    Domain::Probability,
    &[&["N", "Z"]],
    "distribution over the atoms at the next state and its greedy action (target network), constants",
);
const VALUE_MIN: ParamSpec =
    ParamSpec::number("value_min", r"V_{\min}", -10.0, Range::ANY, "position of the first atom (units of the return)");
const VALUE_MAX: ParamSpec =
    ParamSpec::number("value_max", r"V_{\max}", 10.0, Range::ANY, "position of the last atom (units of the return)");
const TARGET_PROBABILITY: OutputSpec =
    OutputSpec::value("target_probability", &["N", "Z"], "the backed-up distribution on the atoms");

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "td.categorical_projection",
        family: Family::TemporalDifference,
        title: "Categorical projection (C51)",
        summary: "The distribution of r + γZ, shared out between the two nearest atoms.",
        formula: r"m_i = \sum_j \Big[1 - \frac{|[r + \gamma(1-d)z_j]_{V_{\min}}^{V_{\max}} - z_i|}{\Delta z}\Big]_0^1\,p_j(s', a^*)",
        gradient: "",
        notes: "Written as a triangle of width Δz about each atom, so that mass that lands on an atom stays there (the form with \
                floor and ceiling loses it where both are equal). Mass beyond the ends goes to the end atoms. No dialects.",
        sources: &[C51],
        inputs: &[NEXT, REWARD, DONE],
        params: &[DISCOUNT, VALUE_MIN, VALUE_MAX],
        defaults: &[],
        outputs: &[TARGET_PROBABILITY],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_projection),
    },
    Operation {
        id: "td.c51",
        family: Family::TemporalDifference,
        title: "Categorical DQN (C51)",
        summary: "Cross-entropy of the predicted distribution of returns against the projected backup.",
        formula: r"L = -\frac1N\sum w\sum_i m_i\log p_i(s, a),\quad p = \mathrm{softmax}(\ell)",
        gradient: r"\partial L/\partial \ell_i = \frac{w}{N}\Big(p_i\sum_j m_j - m_i\Big)",
        notes: "The target m is a constant. The logits are those of the action that was taken. No dialects.",
        sources: &[C51],
        inputs: &[
            InputSpec::new(
                "logit",
                Domain::Logit,
                &[&["N", "Z"]],
                "logits over the atoms of the action that was taken",
            ),
            NEXT,
            REWARD,
            DONE,
            WEIGHT,
        ],
        params: &[DISCOUNT, VALUE_MIN, VALUE_MAX],
        defaults: &[],
        outputs: &[
            LOSS,
            TARGET_PROBABILITY,
            OutputSpec::value("cross_entropy", &["N"], "loss of each transition, without weight (nats)"),
            OutputSpec::gradient("d_logit", "logit", &["N", "Z"], "derivative of the loss by each logit"),
        ],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_loss),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;
    use proptest::prelude::*;

    fn project(next: &[f64], reward: f64, done: u8) -> std::vec::Vec<f64> {
        Case::new(SPECS, "td.categorical_projection")
            .real("next_probability", &[1, 3], next)
            .real("reward", &[1], &[reward])
            .mask("done", &[1], &[done])
            .number("discount", 0.5)
            .number("value_min", -1.0)
            .number("value_max", 1.0)
            .get("target_probability")
            .unwrap()
    }

    #[test]
    fn mass_is_kept_on_atoms_between_them_and_beyond() {
        // On an atom; between; beyond both ends; behind the end.
        assert_eq!(project(&[0.0, 1.0, 0.0], 0.0, 0), [0.0, 1.0, 0.0]);
        assert_eq!(project(&[0.0, 1.0, 0.0], 0.25, 0), [0.0, 0.75, 0.25]);
        assert_eq!(project(&[0.5, 0.0, 0.5], 0.0, 0), [0.25, 0.5, 0.25]);
        assert_eq!(project(&[0.0, 0.0, 1.0], 7.0, 0), [0.0, 0.0, 1.0]);
        assert_eq!(project(&[f64::NAN; 3], 0.0, 1), [0.0, 1.0, 0.0]);
        let reversed = Support::new(1.0, 1.0, 3);
        assert_eq!(reversed, Err(Error::OutOfRange { argument: "value_min", value: 1.0, legal: "below value_max" }));
    }

    proptest! {
        #[test]
        fn mass_sums_to_one_and_gradient_is_that_of_the_loss(
            weights in proptest::array::uniform3(0.01..1.0f64),
            logits in proptest::array::uniform3(-3.0..3.0f64),
            reward in -3.0..3.0f64,
        ) {
            let sum: f64 = weights.iter().sum();
            let next = weights.map(|weight| weight / sum);
            prop_assert!((project(&next, reward, 0).iter().sum::<f64>() - 1.0).abs() <= 1e-15 * 4.0);
            Case::new(SPECS, "td.c51")
                .real("logit", &[1, 3], &logits)
                .real("next_probability", &[1, 3], &next)
                .real("reward", &[1], &[reward])
                .number("value_min", -1.5)
                .number("value_max", 2.0)
                .check_gradient("logit");
        }
    }
}
