//! `cargo xtask book`: the formula pages of the book, written from the catalog.

mod page;

use std::path::{Path, PathBuf};

use plumbline_core::spec::Family;

use crate::process::root;

/// Options of `cargo xtask book`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Write nothing; fail where a page differs from the catalog.
    #[arg(long)]
    check: bool,
}

/// One page: its place under `docs/src` and its text.
struct Page {
    path: PathBuf,
    text: String,
}

/// Write the pages, or compare them; true where they are as the catalog says.
pub fn run(arguments: &Arguments) -> Result<bool, String> {
    let source = root().join("docs/src");
    let mut current = true;
    for page in pages() {
        let path = source.join(&page.path);
        if is_current(&path, &page.text) {
            continue;
        }
        if arguments.check {
            println!("{} differs from the catalog; `cargo xtask book` writes it", page.path.display());
            current = false;
        } else {
            let place = |error| format!("{}: {error}", path.display());
            std::fs::create_dir_all(path.parent().unwrap_or(&source)).map_err(place)?;
            std::fs::write(&path, &page.text).map_err(place)?;
            println!("wrote {}", page.path.display());
        }
    }
    Ok(current)
}

fn pages() -> Vec<Page> {
    let mut pages = vec![Page { path: "formulas/index.md".into(), text: page::index() }];
    for family in Family::ALL {
        let path = format!("formulas/{}.md", family.name()).into();
        pages.push(Page { path, text: page::family(family) });
    }
    pages
}

fn is_current(path: &Path, text: &str) -> bool {
    std::fs::read_to_string(path).is_ok_and(|present| present == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formula_pages_are_those_of_the_catalog() {
        for page in pages() {
            let path = root().join("docs/src").join(&page.path);
            assert!(is_current(&path, &page.text), "{}: run `cargo xtask book`", page.path.display());
        }
    }

    #[test]
    fn the_summary_links_every_page_and_nothing_else() {
        let source = root().join("docs/src");
        let summary = std::fs::read_to_string(source.join("SUMMARY.md")).unwrap();
        let mut linked: Vec<String> = summary
            .lines()
            .filter_map(|line| line.split_once("](")?.1.strip_suffix(')'))
            .map(|link| link.trim_start_matches("./").to_owned())
            .collect();
        linked.push("SUMMARY.md".into());
        linked.sort();
        let mut present = Vec::new();
        let mut folders = vec![source.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "md") {
                    present.push(path.strip_prefix(&source).unwrap().to_str().unwrap().replace('\\', "/"));
                }
            }
        }
        present.sort();
        assert_eq!(linked, present);
    }

    #[test]
    fn links_between_pages_lead_to_files() {
        let mut broken = Vec::new();
        for folder in ["", "formulas"] {
            let folder = root().join("docs/src").join(folder);
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_none_or(|extension| extension != "md") {
                    continue;
                }
                // What looks like a link inside a formula is none.
                let text = std::fs::read_to_string(&path).unwrap();
                let prose: String = text.lines().filter(|line| !line.starts_with("\\[ ")).collect();
                for link in prose.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link) {
                    let file = link.split('#').next().unwrap_or_default();
                    if !link.contains("://") && !file.is_empty() && !folder.join(file).exists() {
                        broken.push(format!("{}: {link}", path.display()));
                    }
                }
            }
        }
        assert!(broken.is_empty(), "{broken:#?}");
    }

    #[test]
    fn quoted_code_stands_in_the_file_that_it_is_quoted_from() {
        let mut quotes = 0;
        for entry in std::fs::read_dir(root().join("docs/src")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "md") {
                continue;
            }
            let page = std::fs::read_to_string(&path).unwrap();
            for quote in page.split("<!-- quoted from ").skip(1) {
                let (file, rest) = quote.split_once(" -->\n```rust\n").unwrap();
                let (code, _) = rest.split_once("\n```\n").unwrap();
                let source = std::fs::read_to_string(root().join(file)).unwrap();
                assert!(source.contains(code), "{}: not in {file}:\n{code}", path.display());
                quotes += 1;
            }
        }
        assert!(quotes >= 4, "the worked example quotes the code");
    }
}
