//! Programs that the gateway may start: `[gateway.spawn]`.

use std::path::Path;

use serde::Deserialize;

/// Programs that may be started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SpawnConfig {
    /// Names or paths of programs; a path may end with `/*`. Absent: those that the file's servers name.
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
