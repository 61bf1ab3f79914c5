//! A step of `cargo xtask test`.

use std::path::Path;
use std::process::Command;

use crate::process::{cargo, program, succeeds, unattended};

/// How a step ended.
pub enum Outcome {
    /// What it checks holds.
    Passed,
    /// It does not.
    Failed,
    /// Says what is missing on this machine, as the command that brings it.
    Skipped(String),
}

impl Outcome {
    /// Passed or failed.
    pub fn of(holds: bool) -> Self {
        if holds { Outcome::Passed } else { Outcome::Failed }
    }
}

/// A check with a name. An error ends the whole run: it is for what no check can foresee.
pub struct Step {
    /// Its name in the summary.
    pub name: String,
    /// The check.
    pub run: Box<dyn Fn() -> Result<Outcome, String>>,
}

impl Step {
    /// A step.
    pub fn new(name: impl Into<String>, run: impl Fn() -> Result<Outcome, String> + 'static) -> Self {
        Step { name: name.into(), run: Box::new(run) }
    }

    /// A step that is one call of cargo.
    pub fn cargo(name: &str, arguments: impl Fn(&mut Command) -> &mut Command + 'static) -> Self {
        Step::new(name, move || Ok(Outcome::of(succeeds(arguments(&mut cargo()))?)))
    }
}

/// Whether all `needed` files are there, after installing Debian's `packages` where that is allowed (unattended, as root).
/// Otherwise the command that installs them, or that names them where there is no Debian.
pub fn debian_packages(packages: &[&str], needed: &[&str]) -> Result<(), String> {
    let present = || needed.iter().all(|path| Path::new(path).exists());
    if present() {
        return Ok(());
    }
    if !Path::new("/etc/debian_version").exists() {
        return Err(format!("install {}", packages.join(", ")));
    }
    let apt = |arguments: &[&str]| {
        succeeds(program("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive")).unwrap_or(false)
    };
    let mut install = vec!["install", "-y", "-qq", "--no-install-recommends"];
    install.extend(packages);
    if unattended() && apt(&["update", "-qq"]) && apt(&install) && present() {
        return Ok(());
    }
    Err(format!("apt-get install -y --no-install-recommends {}", packages.join(" ")))
}
