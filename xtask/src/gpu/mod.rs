//! `cargo xtask gpu …`: the kernels' code for the device.

mod assemble;
mod driverless;
mod ptx;

use crate::step::Step;

/// Options of `cargo xtask gpu`.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Compile the kernels to PTX and write it to gpu/ptx, with its hash and the compiler that made it.
    Ptx {
        /// Only say whether what stands there is what the source gives.
        #[arg(long)]
        check: bool,
    },
    /// Assemble the PTX for five architectures and write down what each kernel takes of registers and memory.
    Ptxas,
}

/// Run a command.
pub fn run(arguments: &Arguments) -> Result<bool, String> {
    match arguments.command {
        Command::Ptx { check: true } => ptx::check_aloud(),
        Command::Ptx { check: false } => ptx::write(),
        Command::Ptxas => assemble::write(),
    }
}

/// The steps of `cargo xtask test`.
pub fn steps() -> Vec<Step> {
    vec![
        Step::new("PTX is what the kernels give", ptx::check),
        Step::new("PTX assembles for five architectures", assemble::check),
        Step::new("CUDA without a driver", driverless::check),
    ]
}
