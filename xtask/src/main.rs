//! The project's own commands: `cargo xtask help` lists them.

fn main() {
    println!("cargo xtask: no command yet");
}
