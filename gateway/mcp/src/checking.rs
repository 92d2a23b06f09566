//! All mistakes of a gateway's file at once, each with its line.

use std::ops::Range;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use crate::config::{Config, ConfigError, GatewayConfig, ServerConfig};

/// Mistake in a gateway's file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    /// Line of the file, from 1.
    pub line: usize,
    /// The problem, and a remedy.
    pub problem: String,
}

/// Returns all mistakes in the text of a gateway's file, in the order of their lines. Nothing is started. Where the text is
/// no TOML, only mistakes of its form are told.
#[must_use]
pub fn mistakes(text: &str) -> Vec<Mistake> {
    let (document, malformed) = DeTable::parse_recoverable(text);
    let mut check = Check { text, found: Vec::new() };
    if malformed.is_empty() {
        check.document(document);
    }
    for error in malformed {
        check.add(&error.span().unwrap_or_default(), error.message());
    }
    check.found.sort();
    check.found
}

struct Check<'t> {
    text: &'t str,
    found: Vec<Mistake>,
}

impl<'t> Check<'t> {
    fn add(&mut self, at: &Range<usize>, problem: &str) {
        let before = self.text.as_bytes().get(..at.start).unwrap_or(self.text.as_bytes());
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        self.found.push(Mistake { line, problem: problem.to_owned() });
    }

    /// Checks each key by itself, then what the good ones say together.
    fn document(&mut self, document: Spanned<DeTable<'t>>) {
        let mut good = DeTable::new();
        let mut gateway_at = 0..0;
        let mut sound = Vec::new();
        for (key, value) in document.into_inner() {
            let at = value.span();
            let value = match (&**key.get_ref(), value.into_inner()) {
                ("gateway", DeValue::Table(table)) => {
                    gateway_at = key.span();
                    DeValue::Table(self.sifted::<GatewayConfig>(table))
                }
                ("server", DeValue::Table(table)) => {
                    DeValue::Table(self.servers(table, &mut sound))
                }
                (_, value) => {
                    self.sifted::<Config>([(key, Spanned::new(at, value))].into_iter().collect());
                    continue;
                }
            };
            good.insert(key, Spanned::new(at, value));
        }
        // Each key is good by itself, so that this fails for nothing that was not told.
        let Ok(config) = Config::deserialize(Deserializer::from(Spanned::new(0..0, good))) else {
            return;
        };
        if let Some(problem) = config.gateway.problem() {
            self.add(&gateway_at, &problem);
        }
        for (name, at) in sound {
            let server = config.server.get(&name).filter(|server| !server.disabled);
            if let Some(Err(error)) = server.map(|server| config.entry(&name, server)) {
                self.add_located(&at, error);
            }
        }
    }

    /// Adds a mistake of a server at the key that it names, or at the server.
    fn add_located(&mut self, at: &Range<usize>, error: ConfigError) {
        match error.located(self.text) {
            ConfigError::Server { server, problem, line: Some(line) } => {
                self.found.push(Mistake { line, problem: format!("server.{server}: {problem}") });
            }
            error => self.add(at, &error.to_string()),
        }
    }

    /// Returns the servers with the keys that are good. `sound` takes the name and the place of those without a mistake.
    fn servers(
        &mut self,
        servers: DeTable<'t>,
        sound: &mut Vec<(String, Range<usize>)>,
    ) -> DeTable<'t> {
        let mut good = DeTable::new();
        for (key, value) in servers {
            let at = value.span();
            let DeValue::Table(table) = value.into_inner() else {
                self.add(&key.span(), "a server is a table: [server.NAME]");
                continue;
            };
            let before = self.found.len();
            let table = self.sifted::<ServerConfig>(table);
            if self.found.len() == before {
                sound.push((key.get_ref().to_string(), key.span()));
            }
            good.insert(key, Spanned::new(at, DeValue::Table(table)));
        }
        good
    }

    /// Returns the keys of a table that are good for `T`, each by itself, and adds the mistakes of the others.
    fn sifted<T: DeserializeOwned>(&mut self, table: DeTable<'t>) -> DeTable<'t> {
        let mut good = DeTable::new();
        for (key, value) in table {
            let one: DeTable<'t> = [(key.clone(), value.clone())].into_iter().collect();
            match T::deserialize(Deserializer::from(Spanned::new(0..0, one))) {
                Ok(_) => drop(good.insert(key, value)),
                Err(error) => {
                    let at = error.span().unwrap_or_else(|| key.span());
                    self.add(&at, error.message());
                }
            }
        }
        good
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_mistakes_are_told_with_their_lines() {
        let text = r#"[gateway]
listen = "0.0.0.0:1"
colour = 1
result_limit = "1KB"

[server.a]
command = "uvx"
trust = "blind"

[server.b]
url = "ftp://x"

[server.c__d]
command = ["x"]

[server.e]

[servers.f]
command = ["x"]
"#;
        let told: Vec<(usize, String)> =
            mistakes(text).into_iter().map(|mistake| (mistake.line, mistake.problem)).collect();
        let wanted = [
            (1, "public_url"),
            (3, "unknown field `colour`"),
            (4, "no size"),
            (7, "invalid type: string"),
            (8, "unknown variant `blind`"),
            (11, "`url` must begin with https://"),
            (13, "\"__\""),
            (16, "either `command` or `url`"),
            (18, "unknown field `servers`"),
        ];
        assert_eq!(told.len(), wanted.len(), "{told:?}");
        for ((line, problem), (wanted_line, part)) in told.iter().zip(wanted) {
            assert!(*line == wanted_line && problem.contains(part), "{part}: {line}: {problem}");
        }
    }

    #[test]
    fn a_file_without_a_mistake_and_one_that_is_no_toml() {
        assert_eq!(mistakes("[server.a]\ncommand = [\"x\"]\n"), []);
        let told = mistakes("[gateway]\nlisten = \n[server.a\n");
        assert!(!told.is_empty() && told.iter().all(|mistake| mistake.line > 1), "{told:?}");
    }
}
