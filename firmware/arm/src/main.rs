//! The golden cases on a Cortex-M4F. The hashes are printed by semihosting.
#![no_std]
#![no_main]

use core::panic::PanicInfo;

use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hio};
use report::{Console, Memory, Stack};

/// The cases, written by `cargo xtask firmware`.
static CASES: &[u8] = include_bytes!(env!("PLUMBLINE_CASES"));

unsafe extern "C" {
    /// Where the linker script's statics end.
    static mut __sheap: u32;
    /// Where the stack begins.
    static mut _stack_start: u32;
}

#[entry]
fn main() -> ! {
    static mut SINGLES: [f32; 1 << 16] = [0.0; 1 << 16];
    static mut DOUBLES: [f64; 1 << 16] = [0.0; 1 << 16];
    static mut INDICES: [u32; 1 << 16] = [0; 1 << 16];

    let mut memory = Memory { singles: SINGLES, doubles: DOUBLES, indices: INDICES };
    // SAFETY: the linker script puts nothing but the stack between the end of the statics and the stack's start.
    let stack = unsafe { Stack::new(&raw mut __sheap, &raw mut _stack_start) };
    let mut output = hio::hstdout().ok();
    let mut put = |bytes: &[u8]| {
        if let Some(output) = &mut output {
            let _ = output.write_all(bytes);
        }
    };
    let mut console = Console::new(&mut put);
    match report::run(&mut console, CASES, &mut memory, &stack) {
        Ok(()) => debug::exit(debug::EXIT_SUCCESS),
        Err(_) => {
            console.write("a case could not be computed\n");
            debug::exit(debug::EXIT_FAILURE);
        }
    }
    loop {}
}

/// Nothing reaches this: the build looks for the names of what panics.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}
