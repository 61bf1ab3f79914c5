//! The checklist: which formulas the project promises.

use crate::process::root;

/// One promised formula.
pub struct Line {
    /// The heading it stands under.
    pub section: String,
    /// What it is.
    pub name: String,
    /// The operations that it asks for.
    pub ids: Vec<String>,
}

/// Read `xtask/checklist.txt`: headings in brackets, then lines `name: id id …`.
pub fn read() -> Result<Vec<Line>, String> {
    let path = root().join("xtask/checklist.txt");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut section = String::new();
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(heading) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = heading.into();
            continue;
        }
        let wrong = || format!("xtask/checklist.txt:{}: expected `name: id …`, found `{line}`", number + 1);
        let (name, ids) = line.split_once(": ").ok_or_else(wrong)?;
        let ids: Vec<String> = ids.split_whitespace().map(str::to_owned).collect();
        if ids.is_empty() {
            return Err(wrong());
        }
        lines.push(Line { section: section.clone(), name: name.into(), ids });
    }
    Ok(lines)
}
