//! Lines of the gateway's file, for mistakes that are found after it was parsed.

use toml::de::DeTable;

/// Returns the line, from 1, of a key of a server, such as `oauth.issuer`, or of what holds it.
pub(super) fn line(text: &str, server: &str, key: &str) -> Option<usize> {
    let root = DeTable::parse(text).ok()?;
    let mut table = root.get_ref().get("server")?.get_ref().as_table()?;
    let mut start = None;
    for part in [server].into_iter().chain(key.split('.')) {
        let Some((found, value)) = table.get_key_value(part) else { break };
        start = Some(found.span().start);
        let Some(inner) = value.get_ref().as_table() else { break };
        table = inner;
    }
    let before = text.get(..start?)?;
    Some(before.matches('\n').count() + 1)
}

/// Returns the key that a problem names first, between backticks.
pub(super) fn key(problem: &str) -> &str {
    let quoted = problem.split('`').nth(1).unwrap_or_default();
    quoted.split(' ').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_lines() {
        let text = "[gateway]\n\n[server.a]\nurl = \"x\"\n[server.a.oauth]\nissuer = \"y\"\n[server.b]\noauth = {\n issuer = 1 }\n";
        assert_eq!(line(text, "a", "url"), Some(4));
        assert_eq!(line(text, "a", "oauth.issuer"), Some(6));
        assert_eq!(line(text, "a", ""), Some(3));
        assert_eq!(line(text, "b", "oauth.issuer"), Some(9));
        assert_eq!(line(text, "c", "url"), None);
        assert_eq!(key("`oauth.issuer` is wrong: `x`"), "oauth.issuer");
        assert_eq!(key("`auth = \"x\"` is wrong"), "auth");
        assert_eq!(key("is wrong"), "");
    }
}
