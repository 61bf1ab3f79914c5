//! `plumbline bits` from outside.

use assert_cmd::Command;

fn plumbline(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("plumbline").unwrap().args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_changed_bit_is_named() {
    let table = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/bits.txt")).unwrap();
    let row = table.lines().find(|line| line.starts_with("kl.k1 seeded ")).unwrap();
    let mut words: Vec<&str> = row.split(' ').collect();
    words[6] = "0123456789abcdef";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bits.txt");
    std::fs::write(&path, table.replace(row, &words.join(" "))).unwrap();
    let path = path.to_str().unwrap();
    let (code, text, _) = plumbline(&["bits", "--filter", "kl.k1", "--set", "seeded", "--table", path]);
    assert_eq!(code, 1);
    let line = text.lines().find(|line| line.starts_with("kl.k1 ")).unwrap();
    assert!(line.ends_with("NUMERIC RESULT DIFFERS in f64"), "{line}");
    let (code, text, _) = plumbline(&["bits", "--filter", "kl.k1", "--set", "seeded"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.trim_end().ends_with("2 rows, 0 differ from the table, 0 skipped (backend core)"), "{text}");
}

#[test]
fn a_pack_is_computed_to_the_same_hashes_without_files() {
    use plumbline_bits::pack::Pack;
    use plumbline_bits::{Digest, run};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cases.bin");
    let (code, _, words) = plumbline(&["bits", "--filter", "kl.", "--pack", path.to_str().unwrap(), "--set", "golden"]);
    assert_eq!((code, words.as_str()), (0, ""));
    let block = std::fs::read(&path).unwrap();
    let (mut reals, mut indices) = (vec![0.0f64; 4096], vec![0; 256]);
    let mut printed = String::new();
    let mut current: Option<(&str, Digest)> = None;
    for case in Pack::new(&block).unwrap() {
        let case = case.unwrap();
        if current.as_ref().is_none_or(|(operation, _)| *operation != case.operation)
            && let Some((operation, digest)) = current.replace((case.operation, Digest::new()))
        {
            printed += &format!("{operation} golden f64 {}\n", digest.finish());
        }
        let operation = run::operation_of(&case).unwrap();
        let (_, digest) = current.as_mut().unwrap();
        run::case(&case, operation, &mut reals, &mut indices, digest).unwrap();
    }
    let (operation, digest) = current.unwrap();
    printed += &format!("{operation} golden f64 {}\n", digest.finish());
    let path = folder.path().join("printed.txt");
    std::fs::write(&path, &printed).unwrap();
    let path = path.to_str().unwrap();
    let (code, text, _) = plumbline(&["bits", "--compare", path, "--filter", "kl."]);
    assert_eq!(
        (code, text.as_str()),
        (0, format!("{} hashes equal, 0 differ, 0 missing\n", printed.lines().count()).as_str())
    );
    let (code, text, _) = plumbline(&["bits", "--compare", path]);
    assert_eq!(code, 1);
    assert!(text.contains("logits.entropy golden f64 is missing"));
    let (code, _, words) = plumbline(&["bits", "--compare", "/nowhere"]);
    assert_eq!(code, 2);
    assert!(words.starts_with("plumbline: /nowhere: "), "{words}");
}
