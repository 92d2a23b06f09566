//! Lint for packs: it finds tools with too few requests, repeated requests, and requests that name their tool.

use std::collections::{BTreeMap, HashMap};

use super::document::{Mistake, Pack, PackedTool};

/// Minimum requests that a tool should have. Fewer find less (docs/packs.md has measurements).
pub const REQUESTS_MIN: usize = 8;

/// Returns the problems of a pack, by tool.
#[must_use]
pub fn lint(pack: &Pack) -> Vec<Mistake> {
    let mut found = Vec::new();
    let mut tell = |tool: &str, problem: String| {
        found.push(Mistake { tool: tool.to_owned(), problem });
    };
    let mut seen: HashMap<String, &str> = HashMap::new();
    for (name, tool) in &pack.tools {
        let count = tool.lines.all().len();
        if count < REQUESTS_MIN {
            tell(name, format!("has {count} of the {REQUESTS_MIN} requests that it should have"));
        }
        for request in tool.lines.all() {
            let words = words(request);
            if names_tool(name, &words) {
                tell(
                    name,
                    format!("names the tool, which is found by its name anyway: {request:?}"),
                );
            }
            if let Some(other) = seen.insert(words, name) {
                let whose =
                    if other == name { "twice".to_owned() } else { format!("also at {other}") };
                tell(name, format!("{whose}: {request:?}"));
            }
        }
    }
    found.extend(contradictions(&pack.tools));
    found
}

/// Returns a mistake for each request that a tool has both as its own and under `not`.
fn contradictions(tools: &BTreeMap<String, PackedTool>) -> Vec<Mistake> {
    let of_tool = |(name, tool): (&String, &PackedTool)| {
        let own: Vec<String> = tool.lines.all().iter().map(|request| words(request)).collect();
        let both = tool.not.iter().filter(|request| own.contains(&words(request)));
        let problem = |request: &String| format!("both for it and under \"not\": {request:?}");
        let mistake = |request| Mistake { tool: name.clone(), problem: problem(request) };
        both.map(mistake).collect::<Vec<_>>()
    };
    tools.iter().flat_map(of_tool).collect()
}

/// Returns true if a request, normalized by [`words`], contains all words of the tool's name in a row. A name of one
/// word never counts, because people use such words too.
#[must_use]
pub fn names_tool(name: &str, request: &str) -> bool {
    let name = words(name);
    name.contains(' ') && format!(" {request} ").contains(&format!(" {name} "))
}

/// Returns the words of a text in lower case, separated by spaces. Requests with equal words count as the same.
#[must_use]
pub fn words(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packs::Packs;

    #[test]
    fn what_is_wanting_is_told() {
        let text = "servers: [git]\ntools:\n  git_log:\n    terse: [the Git log!, what happened, What happened?]\n    \
                    not: [what happened]\n  status:\n    terse: [what happened, status of it]\n";
        let found = lint(&Pack::parse(text).expect("a pack"));
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        let told = |tool: &str, part: &str| {
            let begin = format!("{tool}: ");
            found.iter().any(|one| one.starts_with(&begin) && one.contains(part))
        };
        assert!(told("git_log", "has 3 of the 8 requests"), "{found:?}");
        assert!(told("git_log", "names the tool") && told("git_log", "twice"), "{found:?}");
        assert!(told("git_log", "both for it and under"), "{found:?}");
        assert!(told("status", "also at git_log"), "{found:?}");
        assert!(!told("status", "names the tool"), "a name of one word: {found:?}");
    }

    #[test]
    fn nothing_is_wanting_in_the_shipped_packs() {
        for pack in Packs::shipped().all() {
            let found = lint(pack);
            assert!(found.is_empty(), "{:?}: {found:#?}", pack.servers);
        }
    }
}
