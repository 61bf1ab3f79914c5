//! The device: a thread's own value, and the entries that the driver finds by name.
#![allow(unsafe_code)]

use core::arch::nvptx;

use crate::Kernel;
use crate::warp::{LANES, Warp, Word};

/// The warp that this thread belongs to.
struct DeviceWarp {
    lane: usize,
    index: usize,
    count: usize,
}

/// The value of this thread.
#[derive(Clone, Copy)]
struct Own<T>(T);

impl DeviceWarp {
    #[inline(always)]
    fn current() -> Self {
        // SAFETY: reading special registers has no precondition.
        let [thread, width, block, blocks] =
            unsafe { [nvptx::_thread_idx_x(), nvptx::_block_dim_x(), nvptx::_block_idx_x(), nvptx::_grid_dim_x()] }
                .map(|register| register as u32 as usize);
        let warps = width / LANES;
        DeviceWarp { lane: thread % LANES, index: block * warps + thread / LANES, count: blocks * warps }
    }
}

// The intrinsics, and not assembly text: the compiler knows of them that all threads of a warp must come to the same one, and
// neither copies nor moves them into a branch that some threads do not take.
unsafe extern "C" {
    #[link_name = "llvm.nvvm.shfl.sync.down.i32"]
    fn shuffle_down(mask: u32, value: u32, by: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.idx.i32"]
    fn shuffle_from(mask: u32, value: u32, lane: u32, clamp: u32) -> u32;
}

/// All threads of the warp take part.
const ALL: u32 = u32::MAX;
/// No segments inside the warp.
const WHOLE: u32 = 31;

#[inline(always)]
fn shuffle_word_down(value: u32, by: u32) -> u32 {
    // SAFETY: all 32 threads of the warp come here together: kernels branch alike around what warps do as one.
    unsafe { shuffle_down(ALL, value, by, WHOLE) }
}

#[inline(always)]
fn shuffle_word_from(value: u32, lane: u32) -> u32 {
    // SAFETY: as above.
    unsafe { shuffle_from(ALL, value, lane, WHOLE) }
}

impl Warp for DeviceWarp {
    type Each<T: Copy> = Own<T>;

    #[inline(always)]
    fn index(&self) -> usize {
        self.index
    }
    #[inline(always)]
    fn count(&self) -> usize {
        self.count
    }
    #[inline(always)]
    fn each<T: Copy>(&self, mut value: impl FnMut(usize) -> T) -> Own<T> {
        Own(value(self.lane))
    }
    #[inline(always)]
    fn map<A: Copy, T: Copy>(&self, values: Own<A>, mut value: impl FnMut(usize, A) -> T) -> Own<T> {
        Own(value(self.lane, values.0))
    }
    #[inline(always)]
    fn pair<A: Copy, B: Copy>(&self, left: Own<A>, right: Own<B>) -> Own<(A, B)> {
        Own((left.0, right.0))
    }
    #[inline(always)]
    fn shuffle_down<T: Word>(&self, values: Own<T>, by: usize) -> Own<T> {
        let [low, high] = values.0.to_words();
        let high = if T::WIDE { shuffle_word_down(high, by as u32) } else { high };
        Own(T::from_words([shuffle_word_down(low, by as u32), high]))
    }
    #[inline(always)]
    fn broadcast<T: Word>(&self, values: Own<T>, lane: usize) -> T {
        let [low, high] = values.0.to_words();
        let high = if T::WIDE { shuffle_word_from(high, lane as u32) } else { high };
        T::from_words([shuffle_word_from(low, lane as u32), high])
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: ends the kernel with an error that the host sees.
    unsafe { nvptx::trap() }
}

/// The entries: each runs a kernel from its arguments.
macro_rules! entries {
    ($($name:ident: $kernel:ty,)+) => {
        $(
            /// Runs the kernel.
            ///
            /// # Safety
            /// The arrays are what their constructors ask for, and the blocks have whole warps.
            #[unsafe(no_mangle)]
            #[allow(improper_ctypes_definitions, reason = "a formula without settings has no size on either side")]
            pub unsafe extern "ptx-kernel" fn $name(arguments: $kernel) {
                arguments.run(&DeviceWarp::current());
            }
        )+
    };
}

/// Both number types of each kernel.
macro_rules! both {
    ($($single:ident, $double:ident: $kernel:ident in $room:ident,)+) => {
        entries! { $($single: crate::$room::$kernel<f32>, $double: crate::$room::$kernel<f64>,)+ }
    };
}

/// The entries of the formulas: `R` of their lists is the number type.
mod single {
    use super::DeviceWarp;
    use crate::Kernel;
    type R = f32;

    macro_rules! elementwise {
        ($($single:ident, $double:ident: $formula:ty, $inputs:literal, $outputs:literal;)+) => {
            entries! { $($single: crate::elementwise::Map<R, $formula, $inputs, $outputs>,)+ }
        };
    }
    crate::elementwise_formulas! { elementwise }

    macro_rules! scan {
        ($($single:ident, $double:ident: $scan:ty, $outputs:literal;)+) => {
            entries! { $($single: crate::scan::Scan<R, $scan, $outputs>,)+ }
        };
    }
    crate::scans! { scan }
}

/// The same in double precision.
mod double {
    use super::DeviceWarp;
    use crate::Kernel;
    type R = f64;

    macro_rules! elementwise {
        ($($single:ident, $double:ident: $formula:ty, $inputs:literal, $outputs:literal;)+) => {
            entries! { $($double: crate::elementwise::Map<R, $formula, $inputs, $outputs>,)+ }
        };
    }
    crate::elementwise_formulas! { elementwise }

    macro_rules! scan {
        ($($single:ident, $double:ident: $scan:ty, $outputs:literal;)+) => {
            entries! { $($double: crate::scan::Scan<R, $scan, $outputs>,)+ }
        };
    }
    crate::scans! { scan }
}

both! {
    bellman_backup_f32, bellman_backup_f64: Backup in bellman,
    bellman_state_values_f32, bellman_state_values_f64: StateValues in bellman,
    bellman_action_values_f32, bellman_action_values_f64: ActionValues in bellman,
    kl_estimate_f32, kl_estimate_f64: KlEstimate in elementwise,
    policy_count_f32, policy_count_f64: Count in policy,
    policy_total_f32, policy_total_f64: Total in policy,
    policy_weigh_f32, policy_weigh_f64: Weigh in policy,
    policy_sequence_tiles_f32, policy_sequence_tiles_f64: SequenceTiles in policy,
    policy_sequence_rows_f32, policy_sequence_rows_f64: SequenceRows in policy,
    policy_tiles_f32, policy_tiles_f64: Tiles in policy,
    policy_rows_f32, policy_rows_f64: Rows in policy,
    policy_spread_f32, policy_spread_f64: Spread in policy,
    policy_add_f32, policy_add_f64: Add in policy,
    policy_finish_f32, policy_finish_f64: Finish in policy,
}
