//! The project's own commands: `cargo xtask help` lists them.

mod adapters;
mod bench;
mod bits;
mod book;
mod capi;
mod coverage;
mod export_fixtures;
mod features;
mod firmware;
mod gpu;
mod instructions;
mod mutants;
mod node;
mod portable;
mod process;
mod python;
mod site;
mod step;
mod sweep;
mod test;
mod vectors;
mod wasm;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The project's own commands. Each exits with 0 where what it checks holds, 1 where it does not, 2 for bad usage.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_version_flag = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything that must hold before a change lands: format, lints, documentation, no_std builds, all tests.
    Test(test::Arguments),
    /// What there is of each operation (file, golden cases, gradient check, page) and what is missing.
    Coverage(coverage::Arguments),
    /// Run the pinned libraries again and show how the golden files differ from what they give.
    ExportFixtures(export_fixtures::Arguments),
    /// Every mistake of the collection as an implementation, diagnosed: detected, named, false alarms.
    Mutants(mutants::Arguments),
    /// Compare all pairs of points of the diagnosis's space and pick the cases that tell apart what the chosen ones do not.
    Vectors(vectors::Arguments),
    /// Write the formula pages of the book from the catalog.
    Book(book::Arguments),
    /// Write the C header, or install the C library.
    Capi(capi::Arguments),
    /// Compile the kernels for graphics processors.
    Gpu(gpu::Arguments),
    /// Build and run the images without an operating system, or measure what each family takes of flash and stack.
    Firmware(firmware::Arguments),
    /// Count the instructions of ten kernels and compare with the baseline (needs valgrind and gcc).
    Instructions(instructions::Arguments),
    /// Measure core beside other libraries' functions and the machine's limits.
    Bench(bench::Arguments),
    /// Run the adapters of real libraries and write their verdicts as a page of the book (gigabytes of libraries).
    Adapters(adapters::Arguments),
    /// Build the Python wheel, with the program inside, into target/wheels.
    Wheel(python::Arguments),
    /// Compare the f32 exponential and logarithm with a correctly rounded oracle on all 2^32 inputs (minutes; needs a C
    /// compiler).
    Sweep(sweep::Arguments),
    /// Build the npm package: the catalog as WebAssembly, with and without vector instructions, and its types.
    Wasm(wasm::Arguments),
    /// Build the calculator: a static page in target/site.
    Site(site::Arguments),
    /// Show the calculator on this machine.
    Serve(site::ServeArguments),
}

fn main() -> ExitCode {
    let holds = match Arguments::parse().command {
        Command::Test(arguments) => test::run(&arguments),
        Command::Coverage(arguments) => coverage::run(&arguments),
        Command::ExportFixtures(arguments) => export_fixtures::run(&arguments),
        Command::Mutants(arguments) => mutants::run(&arguments),
        Command::Vectors(arguments) => vectors::run(&arguments),
        Command::Book(arguments) => book::run(&arguments),
        Command::Capi(arguments) => capi::run(&arguments),
        Command::Gpu(arguments) => gpu::run(&arguments),
        Command::Firmware(arguments) => firmware::run(&arguments),
        Command::Instructions(arguments) => instructions::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Adapters(arguments) => adapters::run(&arguments),
        Command::Wheel(arguments) => python::run(&arguments),
        Command::Sweep(arguments) => sweep::run(&arguments),
        Command::Wasm(arguments) => wasm::run(&arguments),
        Command::Site(arguments) => site::run(&arguments),
        Command::Serve(arguments) => site::serve(&arguments),
    };
    match holds {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("cargo xtask: {message}");
            ExitCode::from(1)
        }
    }
}
