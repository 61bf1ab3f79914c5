#![no_main]

#[path = "../src/readers.rs"]
mod readers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::protocol_start(bytes));
