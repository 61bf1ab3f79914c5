//! The fuzzers' committed corpora, replayed: what was found once stays mended, on the stable toolchain.

use std::path::Path;

#[path = "../../fuzz/src/readers.rs"]
mod readers;

#[path = "../../fuzz/src/operation.rs"]
mod operation;

fn replay(target: &str, run: fn(&[u8]), least: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= least, "{target} has {} files", files.len());
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        run(&bytes);
        // Cut off anywhere, and with a byte changed, it must hold too.
        for cut in (0..bytes.len()).step_by(bytes.len() / 8 + 1) {
            run(&bytes[..cut]);
            let mut changed = bytes.clone();
            changed[cut] ^= 0x15;
            run(&changed);
        }
    }
}

#[test]
fn greetings() {
    replay("protocol_start", readers::protocol_start, 4);
}

#[test]
fn answers() {
    replay("protocol_answer", readers::protocol_answer, 6);
}

#[test]
fn batches() {
    replay("batch_file", readers::batch_file, 6);
}

#[test]
fn known_deviations() {
    replay("known_file", readers::known_file, 3);
}

/// Bytes of a xorshift generator: each operation about 200 times.
#[test]
fn operations() {
    replay(
        "operation",
        |bytes| {
            operation::operation(bytes);
        },
        4,
    );
    let mut evaluated = std::collections::BTreeSet::new();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..40_000 {
        let bytes: Vec<u8> = (0..96)
            .flat_map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.to_le_bytes()
            })
            .collect();
        evaluated.extend(operation::operation(&bytes));
    }
    // The others want what chance seldom gives: rows that sum to 1, starts that do not decrease.
    assert!(evaluated.len() > 160, "only {} operations were evaluated", evaluated.len());
}
