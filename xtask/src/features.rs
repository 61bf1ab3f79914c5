//! Core with the operations of one family alone, as an embedder builds it, and with none.

use plumbline_core::spec::Family;

use crate::process::{cargo, succeeds};
use crate::step::{Outcome, Step};

/// The step of `cargo xtask test`.
pub fn steps() -> Vec<Step> {
    vec![Step::new("each family by itself", check)]
}

fn check() -> Result<Outcome, String> {
    let mut holds = true;
    for features in Family::ALL.into_iter().map(|family| family.name()).chain([""]) {
        let mut command = cargo();
        command.args(["check", "--quiet", "--package", "plumbline-core", "--no-default-features"]);
        if !succeeds(command.args(["--features", features]))? {
            println!("core does not build with the features `{features}` alone");
            holds = false;
        }
    }
    Ok(Outcome::of(holds))
}
