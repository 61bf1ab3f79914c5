//! The C library: its header, its installation, and what shows that both work from C and C++.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Subcommand;

use crate::process::{cargo, program, root, succeeds};
use crate::step::{Outcome, Step, debian_packages};

/// Options of `cargo xtask capi`.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Write capi/include/plumbline.h from the source.
    Header,
    /// Build the libraries and install them with the header and the files for pkg-config and CMake.
    Install {
        /// Where `include/` and `lib/` go.
        #[arg(long, value_name = "DIR")]
        prefix: PathBuf,
    },
}

/// Run it.
pub fn run(arguments: &Arguments) -> Result<bool, String> {
    match &arguments.command {
        Task::Header => succeeds(
            cargo()
                .args(["test", "--quiet", "--package", "plumbline-capi", "--test", "header"])
                .env("PLUMBLINE_WRITE_HEADER", "1"),
        ),
        Task::Install { prefix } => install(prefix),
    }
}

/// The steps of `cargo xtask test`.
pub fn steps() -> Vec<Step> {
    vec![Step::new("C library", check)]
}

const PACKAGES: [&str; 6] = ["gcc", "g++", "make", "cmake", "pkg-config", "valgrind"];
const NEEDED: [&str; 6] =
    ["/usr/bin/gcc", "/usr/bin/g++", "/usr/bin/make", "/usr/bin/cmake", "/usr/bin/pkg-config", "/usr/bin/valgrind"];

/// The system's libraries that the static library needs.
pub const NATIVE: &str = "-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc";

/// Build the libraries and install them.
pub fn install(prefix: &Path) -> Result<bool, String> {
    if !succeeds(cargo().args(["build", "--quiet", "--release", "--package", "plumbline-capi"]))? {
        return Ok(false);
    }
    let told = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let folder = |name: &str| {
        let path = prefix.join(name);
        fs::create_dir_all(&path).map_err(|error| told(&path, error)).map(|()| path)
    };
    let copy = |from: PathBuf, to: PathBuf| fs::copy(&from, &to).map_err(|error| told(&from, error)).map(|_| ());

    let version = env!("CARGO_PKG_VERSION");
    let (major, minor) = (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));
    let (include, library) = (folder("include")?, folder("lib")?);
    copy(root().join("capi/include/plumbline.h"), include.join("plumbline.h"))?;
    copy(root().join("target/release/libplumbline.a"), library.join("libplumbline.a"))?;
    let shared = format!("libplumbline.so.{version}");
    copy(root().join("target/release/libplumbline.so"), library.join(&shared))?;
    for link in [format!("libplumbline.so.{major}.{minor}"), "libplumbline.so".to_owned()] {
        let path = library.join(link);
        // A link of an earlier installation gives way.
        let _ = fs::remove_file(&path);
        std::os::unix::fs::symlink(&shared, &path).map_err(|error| told(&path, error))?;
    }
    let package = |template: &str, folder: PathBuf| {
        let from = root().join("capi/package").join(template);
        let text = fs::read_to_string(&from).map_err(|error| told(&from, error))?;
        let text = text
            .replace("@VERSION@", version)
            .replace("@MAJOR@", major)
            .replace("@MINOR@", minor)
            .replace("@SONAME@", &format!("{major}.{minor}"))
            .replace("@NATIVE@", NATIVE);
        let to = folder.join(template.trim_end_matches(".in"));
        fs::write(&to, text).map_err(|error| told(&to, error))
    };
    package("plumbline.pc.in", folder("lib/pkgconfig")?)?;
    package("plumbline-config.cmake.in", folder("lib/cmake/plumbline")?)?;
    package("plumbline-config-version.cmake.in", folder("lib/cmake/plumbline")?)?;
    Ok(true)
}

/// Everything that the chapter on C promises, from an installation in the target folder.
fn check() -> Result<Outcome, String> {
    if let Err(how) = debian_packages(&PACKAGES, &NEEDED) {
        return Ok(Outcome::Skipped(how));
    }
    let place = root().join("target/capi");
    // Nothing of an earlier run may stand in for what is missing now.
    let _ = fs::remove_dir_all(&place);
    let prefix = place.join("prefix");
    if !install(&prefix)? {
        return Ok(Outcome::Failed);
    }
    let mut holds = true;
    let mut expect = |what: &str, command: &mut Command| -> Result<(), String> {
        let quiet = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        if quiet.status.success() {
            println!("ok      {what}");
        } else {
            holds = false;
            println!("FAILED  {what}");
            println!("{}{}", String::from_utf8_lossy(&quiet.stdout), String::from_utf8_lossy(&quiet.stderr));
        }
        Ok(())
    };
    let include = format!("-I{}", prefix.join("include").display());
    let library = prefix.join("lib");
    let archive = library.join("libplumbline.a");
    for (language, compiler, standard, source) in
        [("C", "gcc", "-std=c11", "grpo.c"), ("C++", "g++", "-std=c++17", "threads.cpp")]
    {
        let source = root().join("capi/examples").join(source);
        let compile = |to: &Path, flags: &[&str]| {
            let mut command = program(compiler);
            command.args([standard, "-pedantic", "-Wall", "-Wextra", "-Werror", "-g", &include]).args(flags);
            command.arg(&source).arg(&archive).args(NATIVE.split(' ')).arg("-o").arg(to);
            command
        };
        let plain = place.join(format!("plain-{compiler}"));
        expect(&format!("{language} example compiles without a warning"), &mut compile(&plain, &[]))?;
        let mut valgrind = program("valgrind");
        valgrind.args(["--quiet", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=all"]);
        expect(&format!("{language} example under valgrind"), valgrind.arg(&plain))?;
        let sanitized = place.join(format!("sanitized-{compiler}"));
        let flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
        expect(&format!("{language} example compiles with sanitizers"), &mut compile(&sanitized, &flags))?;
        expect(&format!("{language} example with sanitizers"), &mut program(&sanitized.display().to_string()))?;
    }

    let by_package = place.join("by-pkg-config");
    let line = format!(
        "gcc -std=c11 -Wall -Wextra -Werror capi/examples/grpo.c $(pkg-config --cflags --libs plumbline) -o {}",
        by_package.display()
    );
    let packages = library.join("pkgconfig");
    let mut compile = program("sh");
    expect("a program found the library by pkg-config", compile.args(["-c", &line]).env("PKG_CONFIG_PATH", packages))?;
    let mut run = program(&by_package.display().to_string());
    expect("and runs with the shared library", run.env("LD_LIBRARY_PATH", &library))?;

    let build = place.join("cmake").display().to_string();
    let found = format!("-DCMAKE_PREFIX_PATH={}", prefix.display());
    let mut configure = program("cmake");
    expect(
        "a project found the library by CMake",
        configure.args(["-S", "capi/examples/consumer", "-B", &build, &found]),
    )?;
    expect("and builds", program("cmake").args(["--build", &build]))?;
    expect("and its tests pass", program("ctest").args(["--test-dir", &build, "--output-on-failure"]))?;

    let mut verify = cargo();
    verify.args(["run", "--quiet", "--package", "plumbline-conformance", "--", "verify", "--backend", "c"]);
    expect(
        "golden values through the installed library",
        verify.env("PLUMBLINE_LIBRARY", library.join("libplumbline.so")),
    )?;
    Ok(Outcome::of(holds))
}
