//! Keys that take effect while the server runs, and the comparison of two configurations.

use super::key::Key;
use super::settings::Settings;

/// Keys and whole sections that take effect at once on SIGHUP.
const LIVE: [&str; 15] = [
    "deferral",
    "log.level",
    "server.max_concurrent_calls",
    "server.max_concurrent_calls_per_tenant",
    "limits.calls_per_second_per_tenant",
    "limits.max_intents",
    "limits.max_intent_size",
    "limits.max_state_size",
    "limits.max_messages_size",
    "limits.max_tools_per_registration",
    "limits.max_schema_size",
    "limits.max_schema_nesting",
    "limits.max_tools_per_tenant",
    "limits.max_servers_per_tenant",
    "log.intents",
];

impl Key {
    /// Returns true if a new value takes effect on SIGHUP. Other keys take effect at the next start.
    #[must_use]
    pub fn is_live(&self) -> bool {
        LIVE.iter().any(|live| *live == self.name || *live == self.section())
    }
}

impl Settings {
    /// Returns the keys whose values differ in `other`, in the order of the table.
    #[must_use]
    pub fn differing(&self, other: &Self) -> Vec<&'static Key> {
        let both = self.iter().zip(other.iter());
        let differing = both.filter(|(one, other)| !one.value.is(&other.value));
        differing.map(|(one, _)| one.key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::KEYS;
    use super::super::{Config, FlagValue, Inputs};
    use super::*;

    fn with(flags: &[(&str, &str)]) -> Settings {
        let flag = |(key, value): &(&str, &str)| FlagValue {
            flag: String::new(),
            key: (*key).to_owned(),
            value: (*value).to_owned(),
        };
        let flags = flags.iter().map(flag).collect();
        let environment = [("HOME".to_owned(), "/home/somebody".to_owned())].into();
        let inputs = Inputs { flags, environment, ..Inputs::default() };
        Config::parse(&inputs).expect("a configuration").settings
    }

    #[test]
    fn every_live_name_is_a_key_or_a_section() {
        for live in LIVE {
            let is_known = KEYS.iter().any(|key| key.name == live || key.section() == live);
            assert!(is_known, "{live}");
        }
    }

    #[test]
    fn what_differs_is_named_and_secrets_are_compared() {
        let key = |begins: &str| format!("{begins}{}=", "A".repeat(42));
        let one = key("A");
        let other = key("Q");
        let before = with(&[("handle.key", one.as_str()), ("log.level", "info")]);
        let after = with(&[("handle.key", other.as_str()), ("log.level", "debug")]);
        let names: Vec<_> = before.differing(&after).iter().map(|key| key.name).collect();
        assert_eq!(names, ["handle.key", "log.level"]);
        assert!(before.differing(&before.clone()).is_empty());
    }
}
