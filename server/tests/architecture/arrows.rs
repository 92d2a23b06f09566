//! Modules of the server import only what the plan allows, and the wire stays at the edge.

use crate::plan::{Table, root, table};
use crate::source::{Source, imports, is_word, read};

/// Crates of the wire.
const WIRE: [&str; 9] = [
    "tonic",
    "prost",
    "prost_types",
    "prost_reflect",
    "tonic_types",
    "tonic_health",
    "tonic_reflection",
    "tonic_web",
    "toolgate_proto",
];

/// Folders, and the one module in each that may name the wire.
const EDGES: [(&str, &[&str]); 2] =
    [("server/src", &["api"]), ("encoder-worker/src", &["worker", "api"])];

fn sources() -> Vec<Source> {
    read(&root().join("server/src"))
}

#[test]
fn imports_follow_the_plan() {
    let (allowed, mut wrong) = (table("arrows"), Vec::new());
    for source in sources() {
        let module = source.module();
        let Some(top) = module.first() else { continue };
        let Some(may) = allowed.get(top) else {
            wrong.push(format!("{}: the plan has no row for `{top}`", source.path.display()));
            continue;
        };
        let named = imports(&source.code(), &module);
        let known = named.iter().filter(|name| allowed.contains_key(*name));
        for name in known.filter(|name| *name != top && !may.contains(*name)) {
            wrong.push(format!("{}: `{top}` may not import `{name}`", source.path.display()));
        }
    }
    assert!(wrong.is_empty(), "ARCHITECTURE.md, arrows:\n{}", wrong.join("\n"));
}

#[test]
fn the_plan_names_what_is_there_and_has_no_cycle() {
    let plan = table("arrows");
    let there: Vec<_> =
        sources().iter().filter_map(|source| source.module().first().cloned()).collect();
    for (module, may) in &plan {
        assert!(there.contains(module), "the plan has `{module}`, the server does not");
        for name in may {
            assert!(plan.contains_key(name), "`{module}` may import `{name}`, which has no row");
        }
    }
    assert!(settles(&plan), "the arrows of ARCHITECTURE.md run in a circle");
}

/// Takes away, again and again, what depends on nothing that is left.
fn settles(plan: &Table) -> bool {
    let mut left = plan.clone();
    loop {
        let free: Vec<_> = left
            .iter()
            .filter(|(module, may)| {
                may.iter().all(|name| name == *module || !left.contains_key(name))
            })
            .map(|(module, _)| module.clone())
            .collect();
        if free.is_empty() {
            return left.is_empty();
        }
        left.retain(|module, _| !free.contains(module));
    }
}

#[test]
fn the_wire_stays_at_the_edge() {
    let mut wrong = Vec::new();
    for (folder, edge) in EDGES {
        for source in read(&root().join(folder)) {
            let module = source.module();
            let module: Vec<&str> = module.iter().map(String::as_str).collect();
            if module.starts_with(edge) {
                continue;
            }
            let code = source.code();
            let words: Vec<&str> = code.split(|c| !is_word(c)).collect();
            for name in WIRE.iter().filter(|name| words.contains(name)) {
                wrong.push(format!("{folder}/{} names {name}", source.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn circles_are_seen() {
    let row = |module: &str, may: &[&str]| {
        (module.to_owned(), may.iter().map(|name| (*name).to_owned()).collect())
    };
    assert!(settles(&[row("a", &["b"]), row("b", &["b"])].into()));
    assert!(!settles(&[row("a", &["b"]), row("b", &["c"]), row("c", &["a"])].into()));
}
