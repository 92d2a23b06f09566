//! Programs that the gateway may start: `[gateway.spawn]`.

use std::path::Path;

use serde::Deserialize;

/// Programs that may be started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SpawnConfig {
    /// Names or paths of programs; a path may end with `/*`. It holds for servers of hosts' files too. Absent: those that the
    /// servers of the files name.
    pub allow: Option<Vec<String>>,
}

impl SpawnConfig {
    pub(super) fn allows(&self, program: &str) -> bool {
        let Some(allow) = &self.allow else { return true };
        allow.iter().any(|allowed| match allowed.strip_suffix("/*") {
            Some(folder) => Path::new(program).parent() == Some(Path::new(folder)),
            None => allowed == program,
        })
    }

    /// Returns the programs for people.
    pub(super) fn shown(&self) -> String {
        let allow = self.allow.as_deref().unwrap_or_default();
        if allow.is_empty() { "it is empty".to_owned() } else { format!("{allow:?}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_allowed_by_name_or_folder() {
        let spawn = SpawnConfig { allow: Some(vec!["npx".into(), "/opt/mcp/*".into()]) };
        assert!(spawn.allows("npx") && spawn.allows("/opt/mcp/server"));
        for program in ["node", "/opt/mcp/a/b", "/opt/mcp", "/opt/mcp/../sh", "./npx"] {
            assert!(!spawn.allows(program), "{program}");
        }
    }
}
