#![no_main]

#[path = "../src/readers.rs"]
mod readers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::known_file(bytes));
