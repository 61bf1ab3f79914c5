//! `cargo xtask wasm`: the npm package.

mod check;
mod interface;
mod module;
mod package;
mod size;

use plumbline_core::catalog;

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
    /// Build no package; build a module for each family alone and say how large it is.
    #[arg(long, conflicts_with = "families")]
    sizes: bool,
}

/// Build the package; true where its modules keep to their sizes.
pub fn run(arguments: &Arguments) -> Result<bool, String> {
    if arguments.sizes {
        return size::families_within_budget(&catalog_families());
    }
    build(&arguments.families)?;
    println!("{FOLDER}");
    size::within_budget(&arguments.families)
}

/// The names of all families, as cargo's features have them.
fn catalog_families() -> Vec<&'static str> {
    let mut families: Vec<&str> = catalog::operations().map(|operation| operation.family.name()).collect();
    families.dedup();
    families
}
