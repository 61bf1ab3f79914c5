//! Time on the processor of this thread, so that other work on the machine does not count as ours.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// A moment to measure from.
pub struct Clock(Timespec);

impl Clock {
    /// Now.
    pub fn start() -> Self {
        Clock(clock_gettime(ClockId::ThreadCPUTime))
    }

    /// Time on the processor since then.
    pub fn elapsed(&self) -> Duration {
        let now = Clock::start().0;
        let nanoseconds = (now.tv_sec - self.0.tv_sec) * 1_000_000_000 + (now.tv_nsec - self.0.tv_nsec);
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0))
    }
}
