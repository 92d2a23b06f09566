//! The gateway itself among the servers of hosts' files.

use crate::{ENTRY, Place};

/// Base URL of a gateway with its defaults.
const DEFAULT: &str = "http://127.0.0.1:7080";

/// Path of the gateway's faces below its base URL.
const FACES: &str = "/mcp";

/// Returns whether an entry of a host's file is a gateway: by its name and path, as `install` writes them, or by the base URL of
/// one of `own`.
pub(crate) fn is_gateway(name: &str, place: &Place, own: &[String]) -> bool {
    match place {
        Place::Url { url, .. } => {
            let Some(address) = Address::of(url) else { return false };
            let is_installed = name == ENTRY && is_face(address.path);
            let bases = own.iter().map(String::as_str).chain([DEFAULT]);
            is_installed || bases.filter_map(Address::of).any(|base| base.has(&address))
        }
        Place::Command { words, .. } => {
            words.first().is_some_and(|program| {
                let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
                name == "toolgate" || name == "toolgate.exe"
            }) && words.iter().any(|word| word == "gateway")
        }
    }
}

/// Parts of a URL.
struct Address<'a> {
    host: String,
    port: &'a str,
    path: &'a str,
}

impl<'a> Address<'a> {
    fn of(url: &'a str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let rest = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port),
            _ => (authority, if scheme.eq_ignore_ascii_case("https") { "443" } else { "80" }),
        };
        let host = host.to_ascii_lowercase();
        // All of them are this machine.
        let is_here = host.starts_with("127.")
            || matches!(&*host, "localhost" | "[::1]" | "0.0.0.0" | "[::]");
        let host = if is_here { "localhost".to_owned() } else { host };
        Some(Self { host, port, path: path.trim_end_matches('/') })
    }

    /// Returns whether another is a face below this base URL.
    fn has(&self, other: &Self) -> bool {
        let is_there = self.host == other.host && self.port == other.port;
        is_there && other.path.strip_prefix(self.path).is_some_and(is_face)
    }
}

fn is_face(path: &str) -> bool {
    path.strip_prefix(FACES).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_gateway_is_known_by_name_and_by_address() {
        let own = ["http://0.0.0.0:9100".to_owned(), "https://gw.example/tools/".to_owned()];
        for (name, url, is_one) in [
            ("tg", "http://127.0.0.1:9000/mcp?limit=8KiB", true),
            ("tg", "https://gw.other/mcp/all", true),
            ("tg", "https://telegram.example/api", false),
            ("notes", "http://127.0.0.1:9000/mcp", false),
            ("notes", "http://localhost:7080/mcp", true),
            ("notes", "http://127.0.0.1:7080/mcpx", false),
            ("notes", "http://[::1]:9100/mcp/s/git", true),
            ("notes", "https://GW.example/tools/mcp?limit=none", true),
            ("notes", "https://gw.example/mcp", false),
            ("notes", "nothing", false),
        ] {
            let place = Place::Url { url: url.to_owned(), headers: BTreeMap::new() };
            assert_eq!(is_gateway(name, &place, &own), is_one, "{name} {url}");
        }
    }
}
