//! Crates depend only on those that the plan allows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::Table;

use crate::plan::{root, table};

/// The manifests of this repository, by crate.
fn manifests() -> BTreeMap<String, Table> {
    let mut found = Vec::new();
    collect(&root(), 4, &mut found);
    let mut manifests = BTreeMap::new();
    for path in found {
        let manifest: Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
        if let Some(package) = manifest.get("package") {
            manifests.insert(package["name"].as_str().unwrap().to_owned(), manifest);
        }
    }
    manifests
}

fn collect(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let skipped = name.starts_with('.') || name == "target" || name == "node_modules";
        if path.is_dir() && depth > 0 && !skipped {
            collect(&path, depth - 1, found);
        } else if name == "Cargo.toml" {
            found.push(path);
        }
    }
}

/// The names under every table of dependencies, those for some targets only included.
fn dependencies(manifest: &Table) -> Vec<String> {
    let of = |table: &Table| {
        let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
        let tables = kinds.iter().filter_map(|kind| table.get(*kind)?.as_table().cloned());
        tables.flat_map(|names| names.into_iter().map(|(name, _)| name)).collect::<Vec<_>>()
    };
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let of_targets = targets.into_iter().flatten().filter_map(|(_, value)| value.as_table());
    of(manifest).into_iter().chain(of_targets.flat_map(of)).collect()
}

#[test]
fn dependencies_follow_the_plan() {
    let (plan, manifests) = (table("crates"), manifests());
    let planned: Vec<_> = plan.keys().collect();
    assert_eq!(manifests.keys().collect::<Vec<_>>(), planned, "crates here and in ARCHITECTURE.md");
    for (name, manifest) in &manifests {
        let ours = dependencies(manifest).into_iter().filter(|other| manifests.contains_key(other));
        for other in ours {
            assert!(plan[name].contains(&other), "{name} may not depend on {other}");
        }
    }
}

#[test]
fn every_kind_of_dependency_is_seen() {
    let text = "[dependencies]\na = \"1\"\n[dev-dependencies.b]\nversion = \"1\"\n[target.x.dependencies]\nc = \"1\"";
    assert_eq!(dependencies(&text.parse().unwrap()), ["a", "b", "c"]);
}
