//! Lookup of tools by the names that models write. Exact names come first, then names without the additions of
//! providers and models. Only tools that the caller may know of are found or suggested.

use crate::shard::snapshot::Snapshot;
use toolgate_core::nearest::nearest;

/// Prefixes that providers put before a function's name, and that models repeat.
const PREFIXES: [&str; 6] =
    ["functions.", "functions/", "functions:", "tools.", "default_api.", "default_api:"];

/// Maximum tools whose names are compared for a suggestion. It bounds the work that a wrong name causes.
const LOOKED_AT: usize = 20_000;

/// Maximum characters of a name that are compared.
const NAME_MAX: usize = 256;

/// Returns the `visible` slots that `name` may mean: at most one for a model-facing name or `server/name`, and possibly
/// several for an MCP name that several servers have.
#[must_use]
pub fn find(snapshot: &Snapshot, name: &str, visible: impl Fn(u32) -> bool) -> Vec<u32> {
    let bare = bare(name);
    for spelling in [name, bare] {
        let exact = snapshot.names.requested(spelling, &snapshot.tools);
        if let Some(slot) = exact.filter(|slot| visible(*slot)) {
            return vec![slot];
        }
    }
    let prefixed = snapshot.names.model_name(&format!("mcp__{bare}"));
    if let Some(slot) = prefixed.filter(|slot| visible(*slot)) {
        return vec![slot];
    }
    let of_that_name = snapshot.names.mcp_name(bare).iter().copied();
    of_that_name.filter(|slot| visible(*slot)).collect()
}

/// Returns the visible tool whose name is nearest to an unknown one.
#[must_use]
pub fn suggest(snapshot: &Snapshot, name: &str, visible: impl Fn(u32) -> bool) -> Option<u32> {
    let name: String = bare(name).chars().take(NAME_MAX).collect();
    // Hidden tools don't count towards the bound: otherwise, suggestions would reveal their existence.
    let all = || (0u32..).take(snapshot.tools.len());
    let slots = || all().filter(|slot| visible(*slot)).take(LOOKED_AT);
    let model_names = slots().map(|slot| &*snapshot.tool(slot).model_name);
    if let Some(near) = nearest(&name, model_names) {
        return snapshot.names.model_name(near);
    }
    let mcp_names = slots().map(|slot| snapshot.tool(slot).id.name.as_str());
    let near = nearest(&name, mcp_names)?;
    snapshot.names.mcp_name(near).iter().copied().find(|slot| visible(*slot))
}

/// Returns the name without white space, quotes, a provider's prefix, and the marks of a chat template.
pub(super) fn bare(name: &str) -> &str {
    let name = name.split("<|").next().unwrap_or_default();
    let mut name = name.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`'));
    for prefix in PREFIXES {
        name = name.strip_prefix(prefix).unwrap_or(name);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_providers_add_is_looked_past() {
        for (written, name) in [
            ("mcp__git__log", "mcp__git__log"),
            ("functions.mcp__git__log", "mcp__git__log"),
            (" `git_log`\n", "git_log"),
            ("default_api:git_log", "git_log"),
            ("functions.git_log<|channel|>commentary", "git_log"),
            ("git.log", "git.log"),
            ("", ""),
        ] {
            assert_eq!(bare(written), name, "{written:?}");
        }
    }
}
