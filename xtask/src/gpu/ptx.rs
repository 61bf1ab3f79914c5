//! The committed PTX and the record beside it.
//!
//! Another version of the compiler gives other PTX with the same meaning: which registers, which order. Then the texts cannot
//! be compared, and the check says so; what the committed text computes is checked by executing it in any case.

use std::fs;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::portable::{self, Toolchain};
use crate::process::{cargo, output_of, program, root, succeeds};
use crate::step::Outcome;

const TARGET: &str = "nvptx64-nvidia-cuda";
/// The oldest architecture whose warps exchange values as the kernels do: newer ones take its PTX too.
const ARCHITECTURE: &str = "sm_70";

/// What is recorded beside the PTX.
#[derive(PartialEq)]
struct Record {
    compiler: String,
    sha256: String,
}

/// Where the PTX stands.
pub fn folder() -> PathBuf {
    root().join("gpu/ptx")
}

impl Record {
    fn of(ptx: &str, compiler: &str) -> Self {
        let hash = Sha256::digest(ptx.as_bytes());
        Record { compiler: compiler.into(), sha256: hash.iter().map(|byte| format!("{byte:02x}")).collect() }
    }

    fn read() -> Result<Self, String> {
        let path = folder().join("plumbline.txt");
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.map(str::to_owned).ok_or_else(|| format!("{} has no line `{name}`", path.display()))
        };
        Ok(Record { compiler: field("compiler")?, sha256: field("sha256")? })
    }

    fn text(&self) -> String {
        format!("compiler: {}\narchitecture: {ARCHITECTURE}\nsha256: {}\n", self.compiler, self.sha256)
    }
}

fn committed() -> Result<String, String> {
    let path = folder().join("plumbline.ptx");
    fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Compile the kernels. The compiler is the packaged one, whose source of the standard library lies beside it.
fn compile() -> Result<Result<(String, String), String>, String> {
    if let Toolchain::Missing(how) = portable::source_toolchain() {
        return Ok(Err(how));
    }
    let path = root().join("target/debian-source/plumbline.ptx");
    let mut command = cargo();
    command.args(["rustc", "--quiet", "--profile", "ptx", "--package", "plumbline-gpu-kernels", "--target", TARGET]);
    portable::debian_source(&mut command, "core");
    // A freestanding module has nobody else who compares memory.
    command.arg("-Zbuild-std-features=compiler-builtins-mem");
    command.args(["--crate-type", "staticlib", "--"]);
    command.arg(format!("--emit=asm={}", path.display())).arg(format!("-Ctarget-cpu={ARCHITECTURE}"));
    if !succeeds(&mut command)? {
        return Err("the kernels do not compile".into());
    }
    let compiler = output_of(program(portable::DEBIAN_COMPILER).arg("--version"));
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Ok((text, compiler.ok_or("the compiler does not tell its version")?)))
}

/// Write PTX and record.
pub fn write() -> Result<bool, String> {
    let (ptx, compiler) = compile()?.map_err(|how| format!("missing; {how}"))?;
    let put = |name: &str, text: &str| {
        let path = folder().join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    put("plumbline.ptx", &ptx)?;
    put("plumbline.txt", &Record::of(&ptx, &compiler).text())?;
    println!("{} entries, {} bytes", ptx.matches(".entry").count(), ptx.len());
    Ok(true)
}

/// Whether record, PTX and source agree.
pub fn check() -> Result<Outcome, String> {
    let (record, ptx) = (Record::read()?, committed()?);
    if Record::of(&ptx, &record.compiler) != record {
        println!("gpu/ptx/plumbline.ptx is not the text whose hash stands beside it");
        return Ok(Outcome::Failed);
    }
    let (now, compiler) = match compile()? {
        Ok(made) => made,
        Err(how) => return Ok(Outcome::Skipped(how)),
    };
    if now == ptx {
        println!("{} bytes, equal", ptx.len());
        return Ok(Outcome::Passed);
    }
    if compiler != record.compiler {
        println!("not compared: the text was made by {}, here is {compiler}", record.compiler);
        return Ok(Outcome::Passed);
    }
    let line = now.lines().zip(ptx.lines()).position(|(now, then)| now != then).map_or(0, |line| line + 1);
    println!("the kernels' source gives other PTX from line {line} on: run `cargo xtask gpu ptx` and commit gpu/ptx");
    Ok(Outcome::Failed)
}

/// The same as a command.
pub fn check_aloud() -> Result<bool, String> {
    match check()? {
        Outcome::Passed => Ok(true),
        Outcome::Failed => Ok(false),
        Outcome::Skipped(how) => Err(format!("missing; {how}")),
    }
}
