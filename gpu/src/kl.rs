//! Per-token KL estimates.
#![allow(unsafe_code)]

use plumbline_core::kl::estimator::KlEstimator;
use plumbline_core::spec::Choice;
use plumbline_gpu_kernels::elementwise::KlEstimate;
use plumbline_gpu_kernels::memory::{Number, Pack, Reader};
use plumbline_gpu_kernels::warp::LANES;

use crate::array::Plain;
use crate::{Array, Device, Error};

/// Estimate, derivative and clamps of a KL estimator over `log_prob.length()` tokens, as
/// [`KlEstimator::estimate`] has them; +0 under the mask.
pub fn kl_estimate<D: Device, R: Number + Plain>(
    device: &D,
    estimator: KlEstimator,
    [difference_clamp, value_clamp]: [Option<R>; 2],
    [log_prob, ref_log_prob]: [&Array<D, R>; 2],
    mask: Option<&Array<D, u8>>,
    [kl, d_log_prob]: [&mut Array<D, R>; 2],
) -> Result<(), Error> {
    let count = log_prob.length();
    let kernel = KlEstimate {
        log_prob: log_prob.reader(device),
        ref_log_prob: ref_log_prob.reader(device),
        mask: mask.map_or(Reader::NONE, |mask| mask.reader(device)),
        kl: kl.writer(device),
        d_log_prob: d_log_prob.writer(device),
        count,
        estimator: KlEstimator::MEMBERS.iter().position(|other| *other == estimator).unwrap_or(0) as u32,
        difference_clamp: difference_clamp.unwrap_or(R::infinity()),
        value_clamp: value_clamp.unwrap_or(R::infinity()),
    };
    // SAFETY: the arrays are the device's own and are borrowed until its work is read, which waits for the kernel.
    unsafe { device.launch(device.grid(count.div_ceil(R::Pack::COUNT * LANES)), &kernel) }
}
