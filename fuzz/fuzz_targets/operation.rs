#![no_main]

#[path = "../src/operation.rs"]
mod operation;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    operation::operation(bytes);
});
