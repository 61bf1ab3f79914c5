//! `cargo xtask site` and `cargo xtask serve`: the calculator, a static page over the npm package.

use std::fs;
use std::process::Command;

use crate::node;
use crate::portable::{self, Toolchain};
use crate::process::{cargo, program, root, succeeds};
use crate::step::{Outcome, Step, debian_packages};
use crate::wasm;

/// Where the page is built.
pub const FOLDER: &str = "target/site";

const SOURCE: &str = "site";
const CHROMIUM: &str = "/usr/bin/chromium";
/// A browser without any fonts would measure and show nothing.
const FONT: &str = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf";

/// Options of `cargo xtask site`.
#[derive(clap::Args)]
pub struct Arguments {}

/// Options of `cargo xtask serve`.
#[derive(clap::Args)]
pub struct ServeArguments {
    /// The port to listen on.
    #[arg(long, default_value_t = 8712)]
    port: u16,
}

/// Build the package and the page; true where that worked.
pub fn run(_: &Arguments) -> Result<bool, String> {
    node::available()?;
    let built = install()? && build()?;
    if built {
        println!("{FOLDER}: any static server shows it, from any folder; cargo xtask serve opens it here");
    }
    Ok(built)
}

/// Show the built page until interrupted; it is built first where there is none.
pub fn serve(arguments: &ServeArguments) -> Result<bool, String> {
    node::available()?;
    let there = root().join(FOLDER).join("index.html").exists();
    if !there && !run(&Arguments {})? {
        return Ok(false);
    }
    println!("http://localhost:{}/", arguments.port);
    let port = arguments.port.to_string();
    succeeds(&mut npm(&["exec", "--offline", "--", "vite", "preview", "--strictPort", "--port", &port]))
}

/// The page built, then opened in a headless browser: every operation, the form, paste, links, without a network.
pub fn steps() -> Vec<Step> {
    vec![Step::new("calculator in Chromium", test)]
}

fn test() -> Result<Outcome, String> {
    if let Err(missing) = node::available() {
        return Ok(Outcome::Skipped(missing));
    }
    if let Err(missing) = debian_packages(&["chromium", "fonts-dejavu-core"], &[CHROMIUM, FONT]) {
        return Ok(Outcome::Skipped(missing));
    }
    if let Toolchain::Missing(how) = portable::toolchain(wasm::TARGET) {
        return Ok(Outcome::Skipped(how));
    }
    let command = ["build", "--quiet", "--package", "plumbline-conformance", "--bin", "plumbline"];
    Ok(Outcome::of(
        succeeds(cargo().args(command))?
            && install()?
            && build()?
            && succeeds(npm(&["test"]).env("PLUMBLINE_CHROMIUM", CHROMIUM).env("NO_COLOR", "1"))?,
    ))
}

/// Bring what the lock file names, where that has not been done since it changed.
fn install() -> Result<bool, String> {
    let changed = |path: &str| fs::metadata(root().join(SOURCE).join(path)).and_then(|file| file.modified()).ok();
    let installed = changed("node_modules/.package-lock.json");
    if installed.is_some() && installed >= changed("package-lock.json") {
        return Ok(true);
    }
    succeeds(&mut npm(&["ci", "--no-audit", "--no-fund", "--loglevel=error"]))
}

fn build() -> Result<bool, String> {
    wasm::build(&[])?;
    succeeds(&mut npm(&["run", "--silent", "build"]))
}

fn npm(arguments: &[&str]) -> Command {
    let mut command = program("npm");
    command.args(["--prefix", SOURCE]).args(arguments);
    command
}
