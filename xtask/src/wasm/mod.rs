//! `cargo xtask wasm`: the npm package.

mod check;
mod interface;
mod module;
mod package;
mod size;

pub use check::steps;
pub use module::TARGET;
use package::FOLDER;
pub use package::build;

/// Options of `cargo xtask wasm`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only these families' operations, separated by commas; by default all.
    #[arg(long, value_name = "FAMILY", value_delimiter = ',')]
    families: Vec<String>,
}

/// Build the package; true where its modules keep to their sizes.
pub fn run(arguments: &Arguments) -> Result<bool, String> {
    build(&arguments.families)?;
    println!("{FOLDER}");
    size::within_budget(&arguments.families)
}
