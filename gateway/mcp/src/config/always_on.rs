//! The always-on set: `always_on` of the section `[gateway]`.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};

/// Word for a set that the gateway chooses.
const AUTO: &str = "auto";

/// Tools that every host sees, as `server__tool`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlwaysOn {
    /// Those that the file names.
    Named(Vec<String>),
    /// Those that were called most before the gateway's start.
    Auto,
}

impl Default for AlwaysOn {
    fn default() -> Self {
        Self::Named(Vec::new())
    }
}

impl<'de> Deserialize<'de> for AlwaysOn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Written)
    }
}

/// Reader of what a file says.
struct Written;

impl<'de> Visitor<'de> for Written {
    type Value = AlwaysOn;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of tools, each `server__tool`, or \"auto\"")
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<AlwaysOn, E> {
        if word == AUTO {
            return Ok(AlwaysOn::Auto);
        }
        Err(E::invalid_value(de::Unexpected::Str(word), &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<AlwaysOn, A::Error> {
        let mut named = Vec::new();
        while let Some(tool) = list.next_element()? {
            named.push(tool);
        }
        Ok(AlwaysOn::Named(named))
    }
}

#[cfg(test)]
mod tests {
    use super::super::GatewayConfig;
    use super::*;

    #[test]
    fn the_set_is_named_or_chosen_by_one_gateway() {
        let read = |text: &str| toml::from_str::<GatewayConfig>(text);
        let set = |text: &str| read(text).map(|gateway| gateway.always_on);
        assert_eq!(set(""), Ok(AlwaysOn::Named(Vec::new())));
        let named = AlwaysOn::Named(vec!["git__log".to_owned()]);
        assert_eq!(set("always_on = [\"git__log\"]"), Ok(named));
        assert_eq!(set("always_on = \"auto\""), Ok(AlwaysOn::Auto));
        for wrong in ["\"most\"", "3", "[3]"] {
            let problem = set(&format!("always_on = {wrong}")).expect_err(wrong).to_string();
            assert!(wrong == "[3]" || problem.contains("or \"auto\""), "{problem}");
        }
        let shared = "always_on = \"auto\"\nreplica_url = \"http://10.0.0.1:7080\"";
        let problem = read(shared).expect("settings").problem().expect("a problem");
        assert!(problem.contains("name the tools"), "{problem}");
    }
}
