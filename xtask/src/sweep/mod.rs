//! `cargo xtask sweep`: the f32 exponential and logarithm on all 2³² inputs against a correctly rounded oracle.
//!
//! The oracle (CORE-MATH) is C, so it is an optional dependency: without it this command starts itself again in an
//! optimised build that has it.

#[cfg(feature = "oracle")]
mod exhaustive;

/// Options of `cargo xtask sweep`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Threads (default: all processors).
    #[arg(long)]
    threads: Option<usize>,
}

/// Run the sweep; true where no input differs.
pub fn run(arguments: &Arguments) -> Result<bool, String> {
    #[cfg(feature = "oracle")]
    return exhaustive::run(arguments.threads);
    #[cfg(not(feature = "oracle"))]
    {
        let mut command = crate::process::cargo();
        command.args(["run", "--quiet", "--release", "--package", "xtask", "--features", "oracle", "--", "sweep"]);
        if let Some(threads) = arguments.threads {
            command.args(["--threads", &threads.to_string()]);
        }
        crate::process::succeeds(&mut command)
    }
}
