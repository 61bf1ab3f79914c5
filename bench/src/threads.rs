//! What a number of threads needs.

use std::time::Duration;

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::clock::Clock;

/// A pool of so many threads.
pub fn pool(threads: usize) -> Result<ThreadPool, String> {
    ThreadPoolBuilder::new().num_threads(threads).build().map_err(|error| error.to_string())
}

/// The time on the processor of the pool's busiest thread: how long the work takes where nothing else runs. A thread that
/// waits for work counts as busy.
pub fn busiest<T: Send>(pool: &ThreadPool, work: impl FnOnce() -> T + Send) -> (T, Duration) {
    let clocks = pool.broadcast(|_| Clock::start());
    let result = pool.install(work);
    let times = pool.broadcast(|thread| clocks.get(thread.index()).map(Clock::elapsed).unwrap_or_default());
    (result, times.into_iter().max().unwrap_or_default())
}
