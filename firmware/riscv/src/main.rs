//! The golden cases on a 32-bit RISC-V without floating point. The hashes are printed by QEMU's serial port.
#![no_std]
#![no_main]

use core::panic::PanicInfo;

use report::{Console, Memory, Stack};

/// The cases, written by `cargo xtask firmware`.
static CASES: &[u8] = include_bytes!(env!("PLUMBLINE_CASES"));

/// The transmit register of the board's serial port.
const SERIAL_PORT: *mut u8 = 0x1000_0000 as *mut u8;
/// The board's register that ends the emulation.
const TEST_DEVICE: *mut u32 = 0x10_0000 as *mut u32;
const ENDED_WELL: u32 = 0x5555;
const ENDED_BADLY: u32 = 0x1_3333;

unsafe extern "C" {
    static mut _bss_end: u32;
    static mut _stack_start: u32;
}

// The processor starts here: a stack, zeros where zeros are promised, then `main`.
core::arch::global_asm!(
    ".section .init, \"ax\"",
    ".global _start",
    "_start:",
    "    la sp, _stack_start",
    "    la t0, _bss_start",
    "    la t1, _bss_end",
    "1:  bgeu t0, t1, 2f",
    "    sw zero, 0(t0)",
    "    addi t0, t0, 4",
    "    j 1b",
    "2:  tail main",
);

static mut SINGLES: [f32; 1 << 16] = [0.0; 1 << 16];
static mut DOUBLES: [f64; 1 << 16] = [0.0; 1 << 16];
static mut INDICES: [u32; 1 << 16] = [0; 1 << 16];

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    // SAFETY: this function runs once, on the only core, so these are the only references.
    let mut memory = unsafe {
        Memory {
            singles: &mut *(&raw mut SINGLES),
            doubles: &mut *(&raw mut DOUBLES),
            indices: &mut *(&raw mut INDICES),
        }
    };
    // SAFETY: the linker script puts nothing but the stack between the end of the statics and the stack's start.
    let stack = unsafe { Stack::new(&raw mut _bss_end, &raw mut _stack_start) };
    let mut put = |bytes: &[u8]| {
        for byte in bytes {
            // SAFETY: the address is the board's serial port, which takes a byte at any time in QEMU.
            unsafe { SERIAL_PORT.write_volatile(*byte) };
        }
    };
    let mut console = Console::new(&mut put);
    match report::run(&mut console, CASES, &mut memory, &stack) {
        Ok(()) => end(ENDED_WELL),
        Err(_) => {
            console.write("a case could not be computed\n");
            end(ENDED_BADLY)
        }
    }
}

fn end(how: u32) -> ! {
    // SAFETY: the address is the board's device that ends the emulation.
    unsafe { TEST_DEVICE.write_volatile(how) };
    loop {}
}

/// Nothing reaches this: the build looks for the names of what panics.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    end(ENDED_BADLY)
}
