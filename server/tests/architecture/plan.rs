//! The tables of ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// By name, the names that it may use.
pub type Table = BTreeMap<String, BTreeSet<String>>;

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// The table between `<!-- {name}:begin -->` and `<!-- {name}:end -->`.
pub fn table(name: &str) -> Table {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    parse(&text, name).unwrap_or_else(|| panic!("ARCHITECTURE.md has no table {name:?}"))
}

fn parse(text: &str, name: &str) -> Option<Table> {
    let (_, rest) = text.split_once(&format!("<!-- {name}:begin -->"))?;
    let (body, _) = rest.split_once(&format!("<!-- {name}:end -->"))?;
    let rows = body.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| {
        let mut cells = row.trim_matches('|').split('|');
        let first = names(cells.next()?).pop_first()?;
        Some((first, names(cells.next()?)))
    })
    .collect()
}

/// The words in backticks.
fn names(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn tables_are_read() {
    let text = "<!-- x:begin -->\n| a | b |\n|---|---|\n| `one` | - |\n| `two` | `one`, `two` |\n<!-- x:end -->";
    let table = parse(text, "x").unwrap();
    assert!(table["one"].is_empty());
    assert_eq!(table["two"], ["one".to_owned(), "two".to_owned()].into());
    assert!(parse(text, "y").is_none());
}
