//! Time on the processor: wall-clock time less the time that this thread waited for a processor, so that other work on the
//! machine does not count as ours.

use std::time::{Duration, Instant};

/// A moment to measure from.
pub struct Clock {
    start: Instant,
    waited: Duration,
}

impl Clock {
    /// Now.
    pub fn start() -> Self {
        Clock { waited: waited(), start: Instant::now() }
    }

    /// Time on the processor since then.
    pub fn elapsed(&self) -> Duration {
        let wall = self.start.elapsed();
        wall.saturating_sub(waited().saturating_sub(self.waited))
    }
}

/// How long this thread has been runnable without running; 0 where the system does not tell (only Linux does).
fn waited() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0);
    Duration::from_nanos(nanoseconds)
}
