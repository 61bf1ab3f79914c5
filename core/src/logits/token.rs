//! What a policy's update needs of its logits, in one walk over the rows: the log-probability of each sampled token, the entropy
//! of each row, and the gradient of both. Nothing is computed that [`super::token_logprob`] and [`super::entropy`] do not define;
//! the probabilities of a row are computed once for both.

use super::row::SoftmaxRow;
use super::{entropy, token_logprob};
use crate::Error;
use crate::batch::{cut, row_of};
use crate::engine::{Engine, Portable};
use crate::num::{BLOCK, Real, RowSum};

/// N rows of logits and the token that was sampled from each.
#[derive(Clone, Copy, Debug)]
pub struct TokenLogits<'a, R> {
    /// [N, V]; −∞ excludes an entry.
    pub logits: &'a [R],
    /// V.
    pub width: usize,
    /// The sampled entry of each row, \[N\].
    pub action: &'a [u32],
    /// 0 where a row is absent, \[N\].
    pub mask: Option<&'a [u8]>,
    /// τ, above 0.
    pub temperature: R,
    /// Upstream gradient of each log-probability, \[N\]; without it all are 1.
    pub log_prob_cotangent: Option<&'a [R]>,
    /// Upstream gradient of each entropy, \[N\]; without it all are 1.
    pub entropy_cotangent: Option<&'a [R]>,
}

/// Where the results go; each is optional. Absent rows hold 0.
#[derive(Debug, Default)]
pub struct TokenOutputs<'a, R> {
    /// log π of each sampled token, \[N\] (nats).
    pub log_prob: Option<&'a mut [R]>,
    /// Entropy of each row, \[N\] (nats).
    pub entropy: Option<&'a mut [R]>,
    /// Gradient of Σ c·log π + Σ c_H·H by the logits, [N, V]: the sum of the two operations' gradients.
    pub d_logits: Option<&'a mut [R]>,
}

impl<R: Real> TokenLogits<'_, R> {
    /// Fill the outputs.
    ///
    /// ```
    /// use plumbline_core::logits::token::{TokenLogits, TokenOutputs};
    /// let batch = TokenLogits {
    ///     logits: &[0.0, 0.0],
    ///     width: 2,
    ///     action: &[1],
    ///     mask: None,
    ///     temperature: 1.0,
    ///     log_prob_cotangent: None,
    ///     entropy_cotangent: None,
    /// };
    /// let (mut log_prob, mut entropy, mut d_logits) = ([0.0], [0.0], [0.0; 2]);
    /// let mut outputs = TokenOutputs {
    ///     log_prob: Some(&mut log_prob), entropy: Some(&mut entropy), d_logits: Some(&mut d_logits),
    /// };
    /// batch.evaluate(&mut outputs)?;
    /// assert_eq!((log_prob, entropy), ([-core::f64::consts::LN_2], [core::f64::consts::LN_2]));
    /// assert_eq!(d_logits, [-0.5, 0.5]);
    /// # Ok::<(), plumbline_core::Error>(())
    /// ```
    pub fn evaluate(&self, outputs: &mut TokenOutputs<'_, R>) -> Result<(), Error> {
        self.evaluate_by(Portable, outputs)
    }

    /// [`evaluate`](Self::evaluate) with the passes called by an engine.
    pub fn evaluate_by(&self, engine: impl Engine, outputs: &mut TokenOutputs<'_, R>) -> Result<(), Error> {
        let count = self.action.len();
        let check = |argument, expected: usize, got: Option<usize>| match got {
            Some(got) if got != expected => Err(Error::LengthMismatch { argument, expected, got }),
            _ => Ok(()),
        };
        let slots = count.saturating_mul(self.width);
        check("logits", slots, Some(self.logits.len()))?;
        check("mask", count, self.mask.map(<[u8]>::len))?;
        check("log_prob_cotangent", count, self.log_prob_cotangent.map(<[R]>::len))?;
        check("entropy_cotangent", count, self.entropy_cotangent.map(<[R]>::len))?;
        check("log_prob", count, outputs.log_prob.as_deref().map(<[R]>::len))?;
        check("entropy", count, outputs.entropy.as_deref().map(<[R]>::len))?;
        check("d_logits", slots, outputs.d_logits.as_deref().map(<[R]>::len))?;
        let views = TokenOutputs {
            log_prob: outputs.log_prob.as_deref_mut(),
            entropy: outputs.entropy.as_deref_mut(),
            d_logits: outputs.d_logits.as_deref_mut(),
        };
        self.walk(engine, 0..count, views)
    }

    fn walk(
        &self,
        engine: impl Engine,
        rows: core::ops::Range<usize>,
        outputs: TokenOutputs<'_, R>,
    ) -> Result<(), Error> {
        if rows.len() > 1 && engine.divides(rows.len().saturating_mul(self.width)) {
            let half = rows.len() / 2;
            let middle = rows.start.saturating_add(half);
            let (log_prob, log_prob_from) = cut(outputs.log_prob, half);
            let (entropy, entropy_from) = cut(outputs.entropy, half);
            let (d_logits, d_logits_from) = cut(outputs.d_logits, half.saturating_mul(self.width));
            let first = TokenOutputs { log_prob, entropy, d_logits };
            let second = TokenOutputs { log_prob: log_prob_from, entropy: entropy_from, d_logits: d_logits_from };
            let (first, second) = engine
                .both(|| self.walk(engine, rows.start..middle, first), || self.walk(engine, middle..rows.end, second));
            return first.and(second);
        }
        let mut log_probs = outputs.log_prob.into_iter().flatten();
        let mut entropies = outputs.entropy.into_iter().flatten();
        let mut gradients = outputs.d_logits.map(|gradient| gradient.chunks_mut(self.width.max(1)));
        for row in rows {
            let gradient = gradients.as_mut().and_then(Iterator::next);
            let [log_prob, entropy] = self.row(engine, row, gradient)?;
            if let Some(slot) = log_probs.next() {
                *slot = log_prob;
            }
            if let Some(slot) = entropies.next() {
                *slot = entropy;
            }
        }
        Ok(())
    }

    /// Log-probability and entropy of one row, and the gradient.
    fn row(&self, engine: impl Engine, row: usize, gradient: Option<&mut [R]>) -> Result<[R; 2], Error> {
        if self.mask.is_some_and(|mask| mask.get(row).is_none_or(|byte| *byte == 0)) {
            if let Some(gradient) = gradient {
                gradient.fill(R::zero());
            }
            return Ok([R::zero(); 2]);
        }
        let index = self.action.get(row).copied().unwrap_or(0);
        let action = index as usize;
        if action >= self.width {
            let legal = "below the number of entries";
            return Err(Error::ElementOutOfRange { argument: "action", index: row, value: f64::from(index), legal });
        }
        let cotangent = |argument, values: Option<&[R]>| match values.and_then(|values| values.get(row).copied()) {
            None => Ok(R::one()),
            Some(value) if value.is_finite() => Ok(value),
            Some(_) => Err(Error::NonFinite { argument, index: row }),
        };
        let of_log_prob = cotangent("log_prob_cotangent", self.log_prob_cotangent)?;
        let of_entropy = cotangent("entropy_cotangent", self.entropy_cotangent)?;
        let logits = row_of(self.logits, self.width, row);
        let offset = row.saturating_mul(self.width);
        let softmax = SoftmaxRow::judge_by(engine, "logits", offset, logits, self.temperature)?;
        let log_prob = token_logprob::token_logprob(&softmax, action);
        let Some(gradient) = gradient else {
            return Ok([log_prob, softmax.sum_by(engine, entropy::term)]);
        };
        // The probabilities wait in the gradient's buffer until the entropy is known.
        let entropy = engine.run((&softmax, &mut *gradient), |(softmax, gradient)| {
            let mut sum = RowSum::new();
            for (logits, slots) in softmax.logits().chunks(BLOCK).zip(gradient.chunks_mut(BLOCK)) {
                let mut block = [R::zero(); BLOCK];
                for ((term, slot), logit) in block.iter_mut().zip(slots).zip(logits) {
                    let log_prob = softmax.log_prob(*logit);
                    let probability = log_prob.exp();
                    *slot = probability;
                    *term = if probability == R::zero() { R::zero() } else { entropy::term(probability, log_prob) };
                }
                sum.push(&block);
            }
            sum.value()
        });
        let sampled = log_prob != R::neg_infinity();
        let own = gradient.get(action).copied().unwrap_or(R::zero());
        engine.run((&softmax, &mut *gradient), move |(softmax, gradient)| {
            let slope = entropy::slope(entropy);
            let temperature = softmax.partition().temperature();
            for (slot, logit) in gradient.iter_mut().zip(softmax.logits()) {
                let (probability, log_prob) = (*slot, softmax.log_prob(*logit));
                let first = of_log_prob * token_logprob::slope(probability, log_prob) / temperature;
                let second = of_entropy * slope(probability, log_prob) / temperature;
                let first = if sampled { first } else { R::zero() };
                *slot = if *logit == R::neg_infinity() { R::zero() } else { first + second };
            }
        });
        if let (true, Some(slot)) = (sampled, gradient.get_mut(action)) {
            let second = of_entropy * entropy::slope(entropy)(own, log_prob) / self.temperature;
            *slot = token_logprob::own_gradient(&softmax, log_prob, of_log_prob) + second;
        }
        Ok([log_prob, entropy])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logits::entropy::{entropy, write_entropy_gradient};
    use crate::logits::token_logprob::{token_logprob, write_token_logprob_gradient};
    use std::vec;

    /// Halves at every row.
    #[derive(Clone, Copy)]
    struct Halves;

    impl Engine for Halves {
        fn run<B, T>(self, block: B, stage: impl FnOnce(B) -> T) -> T {
            stage(block)
        }
        fn divides(self, _numbers: usize) -> bool {
            true
        }
    }

    fn compare(engine: impl Engine) {
        let (rows, width, temperature) = (7, 300, 0.75f32);
        let mut logits: vec::Vec<f32> =
            (0..rows * width).map(|index| (index * 7919 % 1009) as f32 / 100.0 - 5.0).collect();
        let action: vec::Vec<u32> = (0..rows).map(|row| (row * 61 % width) as u32).collect();
        let mask = [1, 1, 0, 1, 1, 1, 1];
        logits[2 * width] = f32::NAN;
        logits[3 * width + 5] = f32::NEG_INFINITY;
        logits[4 * width + action[4] as usize] = f32::NEG_INFINITY;
        logits[5 * width + 7] = 500.0;
        let weights: vec::Vec<f32> = (0..rows).map(|row| row as f32 - 2.5).collect();
        let others: vec::Vec<f32> = (0..rows).map(|row| 0.25 * row as f32).collect();
        let batch = TokenLogits {
            logits: &logits,
            width,
            action: &action,
            mask: Some(&mask),
            temperature,
            log_prob_cotangent: Some(&weights),
            entropy_cotangent: Some(&others),
        };
        let (mut log_prob, mut entropies, mut d_logits) = (vec![9.0; rows], vec![9.0; rows], vec![9.0; rows * width]);
        let mut outputs = TokenOutputs {
            log_prob: Some(&mut log_prob),
            entropy: Some(&mut entropies),
            d_logits: Some(&mut d_logits),
        };
        batch.evaluate_by(engine, &mut outputs).unwrap();
        for row in 0..rows {
            let gradient = &d_logits[row * width..(row + 1) * width];
            if mask[row] == 0 {
                assert_eq!((log_prob[row].to_bits(), entropies[row].to_bits()), (0, 0));
                assert!(gradient.iter().all(|slot| slot.to_bits() == 0));
                continue;
            }
            let softmax = SoftmaxRow::new(&logits[row * width..(row + 1) * width], temperature).unwrap();
            let expected = entropy(&softmax);
            assert_eq!(log_prob[row].to_bits(), token_logprob(&softmax, action[row] as usize).to_bits());
            assert_eq!(entropies[row].to_bits(), expected.to_bits());
            let (mut first, mut second) = (vec![0.0; width], vec![0.0; width]);
            write_token_logprob_gradient(&softmax, action[row] as usize, weights[row], &mut first);
            write_entropy_gradient(&softmax, expected, others[row], &mut second);
            for ((slot, first), second) in gradient.iter().zip(first).zip(second) {
                assert_eq!(slot.to_bits(), (first + second).to_bits(), "row {row}");
            }
        }
        let mut far = action.clone();
        (far[3], far[5]) = (300, 301);
        let error = TokenLogits { action: &far, ..batch }.evaluate_by(engine, &mut TokenOutputs::default());
        let legal = "below the number of entries";
        assert_eq!(error, Err(Error::ElementOutOfRange { argument: "action", index: 3, value: 300.0, legal }));
    }

    #[test]
    fn the_numbers_are_those_of_the_two_operations() {
        compare(Portable);
        compare(Halves);
    }
}
