//! Bradley–Terry strengths from a table of wins, by maximum likelihood.

use crate::Error;
use crate::num::{Real, tree_sum_by};
use crate::spec::{
    Call, Dialect, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, evaluate_with,
};

/// How the iteration ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit<R> {
    /// Sweeps that were made.
    pub sweeps: usize,
    /// Largest change of a log-strength in the last one.
    pub residual: R,
}

/// The maximum-likelihood strengths γ of K players, P(i beats j) = γ_i/(γ_i + γ_j), from `wins[i][j]`, how often i beat j.
///
/// The minorise–maximise iteration γ_i ← W_i / Σ_{j≠i} (w_ij + w_ji)/(γ_i + γ_j), W_i = Σ_j w_ij, cyclic, of Hunter, "MM
/// algorithms for generalized Bradley–Terry models", Annals of Statistics 32 (2004), Eq. (3), which never lowers the
/// likelihood; then divided so that the geometric mean is 1. It stops when no log-strength moved by more than `tolerance`
/// (or eight units in the last place of 1, where that is more). The maximum exists exactly where no player set has beaten all
/// others without a loss (Ford 1957): a player without a win or without a loss is [`Error::ElementOutOfRange`] on `wins`, any
/// other such split ends in [`Error::NoConvergence`]. The diagonal is not read.
///
/// ```
/// use plumbline_core::preference::bradley_terry_fit::bradley_terry_fit;
/// // 3 wins to 1: γ₁/γ₂ = 3.
/// let mut strength = [0.0f64; 2];
/// bradley_terry_fit(&[0.0, 3.0, 1.0, 0.0], 1e-13, 100, &mut strength).unwrap();
/// assert!((strength[0] - 1.7320508075688772).abs() < 1e-12);
/// ```
pub fn bradley_terry_fit<R: Real>(
    wins: &[R],
    tolerance: R,
    max_iterations: usize,
    strength: &mut [R],
) -> Result<Fit<R>, Error> {
    let players = strength.len();
    if wins.len() != players * players {
        return Err(Error::LengthMismatch { argument: "wins", expected: players * players, got: wins.len() });
    }
    if players < 2 {
        return Err(Error::GroupTooSmall { index: 0, size: players, needed: 2 });
    }
    let won =
        |i: usize, j: usize| if i == j { R::zero() } else { wins.get(i * players + j).copied().unwrap_or(R::zero()) };
    for i in 0..players {
        for j in 0..players {
            let (index, value) = (i * players + j, won(i, j));
            if !value.is_finite() {
                return Err(Error::NonFinite { argument: "wins", index });
            }
            if value < R::zero() {
                let value = value.to_f64();
                return Err(Error::ElementOutOfRange { argument: "wins", index, value, legal: ">= 0" });
            }
        }
        for total in [tree_sum_by(players, |j| won(i, j)), tree_sum_by(players, |j| won(j, i))] {
            if total == R::zero() {
                let legal = "at least one win and one loss of every player";
                return Err(Error::ElementOutOfRange { argument: "wins", index: i * players, value: 0.0, legal });
            }
        }
    }
    strength.fill(R::one());
    let tolerance = tolerance.larger(R::from_f64(8.0) * R::epsilon());
    let mut residual = R::infinity();
    for sweep in 1..=max_iterations {
        residual = R::zero();
        for i in 0..players {
            let own = strength.get(i).copied().unwrap_or(R::one());
            let share = tree_sum_by(players, |j| {
                let games = won(i, j) + won(j, i);
                if games == R::zero() { games } else { games / (own + strength.get(j).copied().unwrap_or(R::one())) }
            });
            let next = tree_sum_by(players, |j| won(i, j)) / share;
            residual = residual.larger((next / own).ln().abs());
            if let Some(slot) = strength.get_mut(i) {
                *slot = next;
            }
        }
        // Only ratios matter; dividing by the geometric mean keeps them in range.
        let log_mean =
            tree_sum_by(players, |i| strength.get(i).map_or(R::zero(), |value| value.ln())) / R::from_count(players);
        let scale = log_mean.exp();
        for value in strength.iter_mut() {
            *value /= scale;
        }
        if residual <= tolerance {
            return Ok(Fit { sweeps: sweep, residual });
        }
    }
    Err(Error::NoConvergence { argument: "max_iterations", residual: residual.to_f64() })
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let wins = call.finite("wins")?;
    let (tolerance, limit) = (call.number("tolerance")?, call.integer("max_iterations")?);
    // The strengths are iterated in the caller's buffer: nothing is allocated.
    let strength = call.workspace("strength")?;
    let fit = bradley_terry_fit(wins, tolerance, limit, strength)?;
    let log_strength = call.output("log_strength");
    if let Some(log_strength) = log_strength {
        for (slot, value) in log_strength.iter_mut().zip(strength.iter()) {
            *slot = value.ln();
        }
    }
    call.write("residual", fit.residual);
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "preference.bradley_terry_fit",
    family: Family::Preference,
    title: "Bradley–Terry maximum likelihood",
    summary: "Strengths of K players from a table of wins, by the MM iteration.",
    formula: r"\gamma_i \leftarrow \frac{\sum_j w_{ij}}{\sum_{j \ne i} (w_{ij} + w_{ji})/(\gamma_i + \gamma_j)},\quad \prod_i \gamma_i = 1",
    gradient: "",
    notes: "Every player needs a win and a loss; where some group of players beats all others without a loss the maximum does not \
            exist and the iteration ends in an error. The output `strength` must be among those asked for. Its precision is about \
            tolerance / (1 - rate of convergence). Neither verl nor TRL has it.",
    sources: &[Source {
        title: "MM algorithms for generalized Bradley-Terry models",
        reference: "Hunter, Annals of Statistics 32 (2004)",
        place: "Eq. (3)",
    }],
    inputs: &[InputSpec::new(
        "wins",
        Domain::NonNegative,
        &[&["K", "K"]],
        "row i, column j: how often player i beat player j (fractions for draws are legal); the diagonal is not read",
    )],
    params: &[
        ParamSpec::number(
            "tolerance",
            r"\epsilon",
            1e-15,
            Range::POSITIVE,
            "largest change of a log-strength in the last sweep; less than 8 units in the last place of 1 counts as that",
        ),
        ParamSpec::integer("max_iterations", "", 10_000, 1, 1_000_000_000, "most sweeps that are made"),
    ],
    defaults: &[],
    outputs: &[
        OutputSpec::value("strength", &["K"], "strengths with geometric mean 1").workspace(),
        OutputSpec::value("log_strength", &["K"], "their logarithms: scores of a Bradley-Terry model with mean 0"),
        OutputSpec::value("residual", &[], "largest change of a log-strength in the last sweep"),
    ],
    dialects: &[Dialect { name: "paper", note: "as written", settings: &[] }],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_wins_equal_wins() {
        let wins = [0.0f64, 4.0, 2.0, 1.0, 0.0, 5.0, 3.0, 2.0, 0.0];
        let mut strength = [0.0; 3];
        bradley_terry_fit(&wins, 1e-14, 1000, &mut strength).unwrap();
        for i in 0..3 {
            let won: f64 = (0..3).filter(|j| *j != i).map(|j| wins[i * 3 + j]).sum();
            let expected: f64 = (0..3)
                .filter(|j| *j != i)
                .map(|j| (wins[i * 3 + j] + wins[j * 3 + i]) * strength[i] / (strength[i] + strength[j]))
                .sum();
            assert!((won - expected).abs() < 1e-12);
        }
        assert!((strength.iter().product::<f64>() - 1.0).abs() < 1e-14);
    }

    #[test]
    fn no_maximum_is_an_error() {
        // The first player never loses.
        let result = bradley_terry_fit(&[0.0f64, 3.0, 0.0, 0.0], 1e-9, 100, &mut [0.0; 2]);
        assert!(matches!(result, Err(Error::ElementOutOfRange { argument: "wins", .. })));
        // Players 0 and 1 beat 2 and 3 without a loss, and each other in turn.
        let wins = [0.0f64, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0];
        let result = bradley_terry_fit(&wins, 1e-9, 200, &mut [0.0; 4]);
        assert!(matches!(result, Err(Error::NoConvergence { .. })));
        assert!(matches!(bradley_terry_fit(&[0.0f64], 1e-9, 9, &mut [0.0]), Err(Error::GroupTooSmall { .. })));
    }
}
