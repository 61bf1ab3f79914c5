//! Node.js and npm.

use crate::process::{output_of, program};
use crate::step::debian_packages;

/// The oldest version that the npm package supports.
const OLDEST: u32 = 18;

/// Whether Node.js and npm are there, after installing Debian's where that is allowed; otherwise what to install.
pub fn available() -> Result<(), String> {
    if usable() {
        return Ok(());
    }
    debian_packages(&["nodejs", "npm"], &["/usr/bin/node", "/usr/bin/npm"])?;
    if usable() { Ok(()) } else { Err(format!("install Node.js {OLDEST} or newer, with npm")) }
}

fn usable() -> bool {
    let version = output_of(program("node").arg("--version")).unwrap_or_default();
    let major = version.trim_start_matches('v').split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
    major >= OLDEST && output_of(program("npm").arg("--version")).is_some()
}
