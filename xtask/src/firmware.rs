//! Core without an operating system: images for a Cortex-M4F and a 32-bit RISC-V that compute the golden cases in QEMU, and
//! an example for a small microcontroller.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Subcommand;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SectionKind};
use plumbline_conformance::bits::{self, Group, Set, Table};
use plumbline_conformance::fixture;
use plumbline_core::spec::Family;

use crate::portable::{Toolchain, bundled_linker, debian_source, toolchain};
use crate::process::{cargo, root, succeeds};
use crate::step::{Outcome, Step, debian_packages};

/// Options of `cargo xtask firmware`.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    task: Option<Task>,
}

#[derive(Subcommand)]
enum Task {
    /// Build an image for each family and print the flash and the stack that it takes, as a table of the book.
    Families,
}

/// Run it.
pub fn run(arguments: &Arguments) -> Result<bool, String> {
    if let Some(Task::Families) = arguments.task {
        return families();
    }
    let mut holds = true;
    for step in steps() {
        println!("==> {}", step.name);
        match (step.run)()? {
            Outcome::Passed => {}
            Outcome::Failed => holds = false,
            Outcome::Skipped(missing) => return Err(format!("missing: {missing}")),
        }
    }
    Ok(holds)
}

/// The steps of `cargo xtask test`.
pub fn steps() -> Vec<Step> {
    vec![
        Step::new("bare metal: 32 KiB of flash", small),
        Step::new("bare metal: golden cases on Cortex-M4F", || golden(&ARM)),
        Step::new("bare metal: golden cases on RISC-V", || golden(&RISCV)),
    ]
}

/// A machine that QEMU emulates.
struct Board {
    package: &'static str,
    target: &'static str,
    debian: &'static str,
    emulator: &'static str,
    /// Operations whose golden cases take minutes without hardware for floating point; they are named as not run.
    too_slow: &'static [&'static str],
    arguments: &'static [&'static str],
}

const ARM: Board = Board {
    package: "arm",
    target: "thumbv7em-none-eabihf",
    debian: "qemu-system-arm",
    emulator: "/usr/bin/qemu-system-arm",
    too_slow: &[],
    arguments: &["-M", "mps2-an386", "-nographic", "-semihosting-config", "enable=on,target=native", "-kernel"],
};

const RISCV: Board = Board {
    package: "riscv",
    target: "riscv32imac-unknown-none-elf",
    debian: "qemu-system-misc",
    emulator: "/usr/bin/qemu-system-riscv32",
    too_slow: &["kl.gaussian_fit"],
    arguments: &["-M", "virt", "-bios", "none", "-nographic", "-kernel"],
};

const SMALL: Board = Board { package: "small", ..ARM };

impl Board {
    /// The image, built for all families or for one; `None` where the build fails.
    fn build(&self, toolchain: &Toolchain, cases: &Path, family: Option<Family>) -> Result<Option<PathBuf>, String> {
        let mut command = cargo();
        command.args(["build", "--quiet", "--release", "--manifest-path", "firmware/Cargo.toml"]);
        command.args(["--package", self.package, "--target", self.target]);
        if let Some(family) = family {
            command.args(["--no-default-features", "--features", family.name()]);
        }
        let folder = match toolchain {
            Toolchain::DebianSource => {
                debian_source(&mut command, "core");
                let linker = bundled_linker().ok_or("the compiler in use has no rust-lld")?;
                let variable = self.target.to_uppercase().replace('-', "_");
                command.env(format!("CARGO_TARGET_{variable}_LINKER"), linker);
                "target/debian-source"
            }
            _ => {
                command.args(["--target-dir", "target/firmware"]);
                "target/firmware"
            }
        };
        if !succeeds(command.env("PLUMBLINE_CASES", cases))? {
            return Ok(None);
        }
        Ok(Some(root().join(folder).join(self.target).join("release").join(self.package)))
    }

    /// What the image prints; fails where it does not end well.
    fn emulate(&self, image: &Path) -> Result<String, String> {
        // An image that hangs may not hang the tests.
        let mut command = Command::new("timeout");
        command.arg("600").arg(self.emulator).args(self.arguments).arg(image);
        let output = command.output().map_err(|error| format!("{}: {error}", self.emulator))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() { Ok(text) } else { Err(format!("ended with {}; printed:\n{text}", output.status)) }
    }

    /// What is missing on this machine to build and run.
    fn ready(&self) -> Result<Toolchain, String> {
        debian_packages(&[self.debian], &[self.emulator])?;
        match toolchain(self.target) {
            Toolchain::Missing(how) => Err(how),
            toolchain => Ok(toolchain),
        }
    }
}

/// The parts of an image, in bytes.
struct Sizes {
    code: u64,
    constants: u64,
    memory: u64,
}

/// The image's sizes; an error that names them where there are symbols of panics, unwinding or an allocator.
fn inspect(image: &Path) -> Result<Sizes, String> {
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", image.display());
    let bytes = fs::read(image).map_err(|error| told(&error))?;
    let file = object::File::parse(bytes.as_slice()).map_err(|error| told(&error))?;
    let names: Vec<&str> = file.symbols().filter_map(|symbol| symbol.name().ok()).collect();
    if names.len() < 20 {
        return Err(told(&"has no symbols to look at"));
    }
    let unwanted = ["panicking", "unwind", "_fail", "__rust_alloc", "__rdl_", "__rg_", "malloc"];
    let found: Vec<&str> = names.into_iter().filter(|name| unwanted.iter().any(|word| name.contains(word))).collect();
    if !found.is_empty() {
        return Err(told(&format!("what panics, unwinds or allocates is left: {}", found.join(", "))));
    }
    let mut sizes = Sizes { code: 0, constants: 0, memory: 0 };
    for section in file.sections() {
        match (section.kind(), section.name().unwrap_or_default()) {
            (SectionKind::Text, _) => sizes.code += section.size(),
            (SectionKind::ReadOnlyData | SectionKind::ReadOnlyString, _) | (_, ".vector_table") => {
                sizes.constants += section.size();
            }
            (SectionKind::Data | SectionKind::UninitializedData, _) => sizes.memory += section.size(),
            _ => {}
        }
    }
    Ok(sizes)
}

/// The golden cases of the operations with this family, or of all.
fn groups(family: Option<Family>) -> Result<Vec<Group>, String> {
    let files = fixture::embedded().map_err(|error| error.to_string())?;
    let mut groups = bits::cases(&files, &[Set::Golden], "");
    groups.retain(|group| family.is_none_or(|family| group.operation.family == family));
    Ok(groups)
}

fn write_cases(name: &str, groups: &[Group]) -> Result<(PathBuf, u64), String> {
    let folder = root().join("target/firmware");
    let path = folder.join(format!("{name}.cases"));
    let block = bits::pack::pack(groups)?;
    fs::create_dir_all(&folder).and_then(|()| fs::write(&path, &block)).map_err(|error| error.to_string())?;
    Ok((path, block.len() as u64))
}

/// All golden cases on a board, with the hashes of the committed table.
fn golden(board: &Board) -> Result<Outcome, String> {
    let toolchain = match board.ready() {
        Ok(toolchain) => toolchain,
        Err(how) => return Ok(Outcome::Skipped(how)),
    };
    let mut groups = groups(None)?;
    groups.retain(|group| !board.too_slow.contains(&group.operation.id));
    let (cases, packed) = write_cases(board.package, &groups)?;
    let Some(image) = board.build(&toolchain, &cases, None)? else { return Ok(Outcome::Failed) };
    let judged = inspect(&image).and_then(|sizes| Ok((sizes, board.emulate(&image)?)));
    let (sizes, text) = match judged {
        Ok(judged) => judged,
        Err(message) => {
            println!("{message}");
            return Ok(Outcome::Failed);
        }
    };
    let constants = sizes.constants - packed;
    println!("code {} bytes, constants {constants} and {packed} of cases, memory {}", sizes.code, sizes.memory);
    let mut lines = Table::embedded()?.compare_lines(&text, "");
    lines.missing.retain(|name| !board.too_slow.iter().any(|slow| name.starts_with(slow)));
    board.too_slow.iter().for_each(|slow| println!("{slow} is not run here"));
    for (what, names) in [("differs", &lines.differ), ("is missing", &lines.missing)] {
        names.iter().for_each(|name| println!("{name} {what}"));
    }
    println!("{} hashes equal, {} differ, {} missing", lines.equal, lines.differ.len(), lines.missing.len());
    Ok(Outcome::of(lines.equal > 0 && lines.differ.is_empty() && lines.missing.is_empty()))
}

/// Policy evaluation and Q-learning: the linker script holds the limits, the program checks its numbers.
fn small() -> Result<Outcome, String> {
    let toolchain = match SMALL.ready() {
        Ok(toolchain) => toolchain,
        Err(how) => return Ok(Outcome::Skipped(how)),
    };
    let Some(image) = SMALL.build(&toolchain, Path::new(""), None)? else { return Ok(Outcome::Failed) };
    match inspect(&image).and_then(|sizes| Ok((sizes, SMALL.emulate(&image)?))) {
        Ok((sizes, text)) => {
            print!("{text}");
            println!("flash {} bytes, statics {}", sizes.code + sizes.constants, sizes.memory);
            Ok(Outcome::Passed)
        }
        Err(message) => {
            println!("{message}");
            Ok(Outcome::Failed)
        }
    }
}

/// A table of the flash and the stack of each family, by images that hold nothing else.
fn families() -> Result<bool, String> {
    let toolchain = ARM.ready()?;
    println!("| family | operations | code | constants | stack |\n|---|---:|---:|---:|---:|");
    for family in Family::ALL {
        let groups = groups(Some(family))?;
        let (cases, packed) = write_cases(family.name(), &groups)?;
        let Some(image) = ARM.build(&toolchain, &cases, Some(family))? else { return Ok(false) };
        let sizes = inspect(&image)?;
        let text = ARM.emulate(&image)?;
        let stack = text.lines().filter_map(|line| line.strip_prefix("stack ")?.split(' ').nth(1)?.parse::<u64>().ok());
        let stack = stack.max().ok_or("the image printed no depth of the stack")?;
        let kib = |bytes: u64| format!("{:.1}", bytes as f64 / 1024.0);
        let constants = kib(sizes.constants - packed);
        println!("| {} | {} | {} | {constants} | {} |", family.name(), groups.len(), kib(sizes.code), kib(stack));
    }
    Ok(true)
}
