//! Hosts of MCP servers: their files, and the entry of a gateway in each.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::{EditError, json, toml_text};

/// Host whose file is edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// Claude Code.
    ClaudeCode,
    /// Claude Desktop, which starts servers and takes no URL.
    ClaudeDesktop,
    /// Cursor.
    Cursor,
    /// Visual Studio Code, in the current project.
    Vscode,
    /// Codex.
    Codex,
    /// Gemini CLI.
    GeminiCli,
    /// opencode.
    Opencode,
    /// Zed.
    Zed,
}

/// Reach of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Every project of the user.
    User,
    /// The current project, for the hosts that have such a file.
    Project,
}

/// Way of a host to the gateway.
#[derive(Debug, Clone)]
pub struct Target {
    /// URL of the gateway.
    pub url: String,
    /// Absolute path of the program, for hosts that start it.
    pub program: String,
    /// Absolute path of gateway.toml, for hosts that start it.
    pub config: String,
}

impl Host {
    /// All hosts.
    pub const ALL: [Self; 8] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::Vscode,
        Self::Codex,
        Self::GeminiCli,
        Self::Opencode,
        Self::Zed,
    ];

    /// The host's file.
    #[must_use]
    pub fn file(self, home: &Path, project: &Path, scope: Scope) -> PathBuf {
        match self {
            Self::ClaudeCode if scope == Scope::Project => project.join(".mcp.json"),
            Self::ClaudeCode => home.join(".claude.json"),
            Self::ClaudeDesktop if cfg!(target_os = "macos") => {
                home.join("Library/Application Support/Claude/claude_desktop_config.json")
            }
            Self::ClaudeDesktop => home.join(".config/Claude/claude_desktop_config.json"),
            Self::Cursor => home.join(".cursor/mcp.json"),
            Self::Vscode => project.join(".vscode/mcp.json"),
            Self::Codex => home.join(".codex/config.toml"),
            Self::GeminiCli => home.join(".gemini/settings.json"),
            Self::Opencode => home.join(".config/opencode/opencode.json"),
            Self::Zed => home.join(".config/zed/settings.json"),
        }
    }

    /// Text that a model of the host is shown of a result, as the gateway's URL says it.
    #[must_use]
    pub fn result_limit(self) -> Option<&'static str> {
        match self {
            Self::Codex => Some("8KiB"),
            Self::GeminiCli | Self::Opencode => Some("32KiB"),
            Self::ClaudeCode => Some("60KiB"),
            _ => None,
        }
    }

    /// The file's text with the gateway's entry.
    ///
    /// # Errors
    /// [`EditError`] if the text can't be edited in place.
    pub fn install(self, text: &str, target: &Target) -> Result<String, EditError> {
        if self == Self::Codex {
            return toml_text::set(text, self.section(), &self.entry(target));
        }
        json::set(text, self.section(), &self.entry(target))
    }

    /// The file's text without the gateway's entry.
    ///
    /// # Errors
    /// [`EditError`] if the text can't be edited in place.
    pub fn remove(self, text: &str) -> Result<String, EditError> {
        if self == Self::Codex {
            return toml_text::remove(text, self.section());
        }
        json::remove(text, self.section())
    }

    /// The file's text without the entry of a server.
    ///
    /// # Errors
    /// [`EditError`] if the text can't be edited in place.
    pub fn take_out(self, text: &str, server: &str) -> Result<String, EditError> {
        if self == Self::Codex {
            return toml_text::take_out(text, self.section(), server);
        }
        json::take_out(text, self.section(), server)
    }

    /// The entry's name in the host's file, such as `mcpServers`.
    #[must_use]
    pub fn section(self) -> &'static str {
        match self {
            Self::Vscode => "servers",
            Self::Codex => "mcp_servers",
            Self::Opencode => "mcp",
            Self::Zed => "context_servers",
            _ => "mcpServers",
        }
    }

    /// Content of the entry, in the language of the host's file.
    #[must_use]
    pub fn entry(self, target: &Target) -> String {
        let url = &target.url;
        let value = match self {
            Self::ClaudeCode | Self::Vscode => json!({"type": "http", "url": url}),
            Self::ClaudeDesktop => json!({
                "command": target.program,
                "args": ["gateway", "--stdio", "--config", target.config],
            }),
            Self::Cursor | Self::Zed => json!({"url": url}),
            Self::Codex => return format!("url = {}", toml::Value::String(url.clone())),
            Self::GeminiCli => json!({"httpUrl": url}),
            Self::Opencode => json!({"type": "remote", "url": url, "enabled": true}),
        };
        value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON_HOSTS: [Host; 7] = [
        Host::ClaudeCode,
        Host::ClaudeDesktop,
        Host::Cursor,
        Host::Vscode,
        Host::GeminiCli,
        Host::Opencode,
        Host::Zed,
    ];

    fn target() -> Target {
        let text = str::to_owned;
        Target { url: text("http://x/mcp"), program: text("/bin/tg"), config: text("/g.toml") }
    }

    fn assert_restored(host: Host, text: &str) {
        let installed = host.install(text, &target()).expect("an edit");
        assert_ne!(installed, text);
        assert_eq!(host.install(&installed, &target()).expect("an edit"), installed, "{host:?}");
        assert_eq!(host.remove(&installed).expect("an edit"), text, "{host:?}: {installed}");
    }

    #[test]
    fn json_files_are_restored_byte_for_byte() {
        for host in JSON_HOSTS {
            let name = host.section();
            assert_restored(host, "{}\n");
            assert_restored(host, "{\n    \"z\": 1,\n    \"a\": [1, 2]\n}\n");
            assert_restored(host, &format!("{{\n  \"{name}\": {{}},\n  \"a\": 1\n}}"));
            let other = "{\n\t\t\"b\": {\"url\": \"y\"}\n\t}";
            assert_restored(host, &format!("{{\n\t\"q\": 1.50,\n\t\"{name}\": {other}\n}}\n"));
        }
    }

    #[test]
    fn entries_have_the_host_s_own_keys() {
        for host in JSON_HOSTS {
            let text = host.install("", &target()).expect("an edit");
            let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            let expected: serde_json::Value =
                serde_json::from_str(&host.entry(&target())).expect("JSON");
            assert_eq!(value[host.section()]["tg"], expected, "{host:?}");
        }
    }

    #[test]
    fn codex_keeps_the_rest_of_its_file() {
        assert_restored(Host::Codex, "model = \"m\" # mine\n\n[mcp_servers.a]\ncommand = \"x\"\n");
        assert_restored(Host::Codex, "");
        let inline = "mcp_servers = { a = { url = \"y\" } }\n";
        assert!(matches!(Host::Codex.install(inline, &target()), Err(EditError::Shape(_))));
        assert!(matches!(Host::Codex.take_out(inline, "a"), Err(EditError::Shape(_))));
        let installed = Host::Codex.install("model = \"m\"\n", &target()).expect("an edit");
        assert_eq!(installed, "model = \"m\"\n\n[mcp_servers.tg]\nurl = \"http://x/mcp\"\n");
    }

    #[test]
    fn a_server_is_taken_out_and_the_others_stay() {
        for host in JSON_HOSTS {
            let name = host.section();
            for (text, left) in [
                (
                    format!(
                        "{{\n  \"{name}\": {{\n    \"a\": {{\"x\": {{\"b\": 1}}}},\n    \"b\": {{}}\n  }}\n}}\n"
                    ),
                    format!("{{\n  \"{name}\": {{\n    \"a\": {{\"x\": {{\"b\": 1}}}}\n  }}\n}}\n"),
                ),
                (
                    format!("{{\"b\": 1, \"{name}\": {{\"b\": {{\"b\": 2}}, \"a\": 3}}}}"),
                    format!("{{\"b\": 1, \"{name}\": {{ \"a\": 3}}}}"),
                ),
                ("{\"b\": 1}".to_owned(), "{\"b\": 1}".to_owned()),
            ] {
                assert_eq!(host.take_out(&text, "b").expect("an edit"), left, "{host:?}");
            }
        }
        let text = "[mcp_servers.b]\nurl = \"x\"\n\n# mine\n[mcp_servers.\"b c\"]\nargs = [\n[\"z\"],\n]\n\n[mcp_servers.\"b c\".env]\nA = \"1\"\n\n[other.b]\nc = 1\n";
        let without_b = Host::Codex.take_out(text, "b").expect("an edit");
        assert_eq!(without_b, text.replace("[mcp_servers.b]\nurl = \"x\"\n\n", "\n"));
        let without_both = Host::Codex.take_out(&without_b, "b c").expect("an edit");
        assert_eq!(without_both, "\n# mine\n\n[other.b]\nc = 1\n");
    }

    #[test]
    fn comments_and_trailing_commas_stay() {
        for host in JSON_HOSTS {
            let name = host.section();
            assert_restored(host, "{ // mine, ö\n}\n");
            assert_restored(host, "// \"tg\": 1\n{\n  \"a\": 1, // the last\n  /* b */\n}\n");
            assert_restored(host, &format!("{{\n  \"{name}\": {{ /* none */ }},\n}}"));
            let other = "{ // \"tg\"\n    \"b\": {\"url\": \"http://y\"}, // why\n  }";
            assert_restored(host, &format!("{{\n  \"q\": 1,\n  \"{name}\": {other},\n}}\n"));
        }
    }

    #[test]
    fn an_entry_between_comments_is_cut_with_its_comma() {
        for (text, left) in [
            (
                "{\"mcpServers\": {\"a\": 1, \"tg\": 2 /* x */}}",
                "{\"mcpServers\": {\"a\": 1 /* x */}}",
            ),
            (
                "{\"mcpServers\": {\"tg\": 2 /* x */, \"a\": 1}}",
                "{\"mcpServers\": { /* x */ \"a\": 1}}",
            ),
            (
                "{\"mcpServers\": {\"a\": 1, // y\n\"tg\": 2}}",
                "{\"mcpServers\": {\"a\": 1 // y\n}}",
            ),
            (
                "{\"mcpServers\": {\"a\": 1, /* \"tg\": */ \"tg\": 2,}}",
                "{\"mcpServers\": {\"a\": 1, /* \"tg\": */}}",
            ),
        ] {
            assert_eq!(Host::Cursor.remove(text).expect(text), left, "{text}");
        }
    }

    #[test]
    fn what_is_no_json_is_refused() {
        let error = Host::Zed.install("{ mine: 1 }", &target()).expect_err("no JSON");
        assert!(matches!(error, EditError::Unreadable(_)));
    }
}
