//! What the firmware images have in common: compute the cases that are packed into flash, print the hash of each
//! operation's results, and measure how deep the stack went.
//!
//! What is printed is compared by `plumbline bits --compare`; lines that begin with `stack` hold a family and bytes.
#![no_std]

mod console;
mod stack;

pub use console::Console;
pub use stack::Stack;

use plumbline_bits::pack::Pack;
use plumbline_bits::run::{self, Trouble};
use plumbline_bits::{Digest, Hash};
use plumbline_core::spec::Operation;

/// Memory for the inputs and outputs of one case.
pub struct Memory<'a> {
    /// Numbers in single precision.
    pub singles: &'a mut [f32],
    /// Numbers in double precision.
    pub doubles: &'a mut [f64],
    /// Indices.
    pub indices: &'a mut [u32],
}

/// Compute all cases of a block. The cases of an operation stand together.
pub fn run(console: &mut Console<'_>, block: &[u8], memory: &mut Memory<'_>, stack: &Stack) -> Result<(), Trouble> {
    let mut current: Option<Results> = None;
    stack.paint();
    for case in Pack::new(block)? {
        let case = case?;
        let operation = run::operation_of(&case)?;
        let results = match &mut current {
            Some(results) if results.operation.id == operation.id => results,
            _ => {
                if let Some(results) = current.take() {
                    results.print(console);
                    if results.operation.family != operation.family {
                        print_stack(console, results.operation, stack);
                    }
                }
                current.insert(Results { operation, singles: Digest::new(), doubles: Digest::new() })
            }
        };
        run::case(&case, operation, memory.singles, memory.indices, &mut results.singles)?;
        run::case(&case, operation, memory.doubles, memory.indices, &mut results.doubles)?;
    }
    if let Some(results) = current {
        results.print(console);
        print_stack(console, results.operation, stack);
    }
    Ok(())
}

/// Print how deep the stack went, and begin again.
fn print_stack(console: &mut Console<'_>, operation: &Operation, stack: &Stack) {
    console.write("stack ");
    console.write(operation.family.name());
    console.write(" ");
    console.write_number(stack.deepest());
    console.write("\n");
    stack.paint();
}

struct Results {
    operation: &'static Operation,
    singles: Digest,
    doubles: Digest,
}

impl Results {
    fn print(&self, console: &mut Console<'_>) {
        for (dtype, digest) in [(" golden f32 ", &self.singles), (" golden f64 ", &self.doubles)] {
            console.write(self.operation.id);
            console.write(dtype);
            let Hash(hash) = digest.clone().finish();
            console.write_hash(hash);
            console.write("\n");
        }
    }
}
