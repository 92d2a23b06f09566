//! Record of the tools that were added amid a conversation, and where.

use serde_json::{Value, json};

use super::listing::{Change, Kept};
use super::{Api, Strategy};

const VERSION: u64 = 1;

/// Record of what earlier turns added to a conversation. It rides with the caller as JSON. Without it, or if the
/// conversation was changed before an addition, tools are added anew and the provider's cache is lost once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Way that the additions were rendered for; `None` before the first turn.
    pub(super) way: Option<Way>,
    /// Additions, in the order of the conversation.
    pub(super) additions: Vec<Addition>,
    /// Listing that `tools` have; `None` if there is none, or if it is too long to be remembered.
    pub(super) listed: Option<Kept>,
}

/// API and strategy that decide how an addition is rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Way {
    pub api: Api,
    pub strategy: Strategy,
}

impl Way {
    /// Returns the way of an addition after so many messages: before all of them, tools stand in `tools`.
    pub(super) fn at(self, after: usize) -> Self {
        if after == 0 { Self { strategy: Strategy::Cut, ..self } } else { self }
    }
}

/// Tools that were added at one place of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Addition {
    /// Number of the agent's messages before the addition; 0 for tools that stand in `tools`.
    pub after: usize,
    /// Digest of these messages.
    pub digest: u64,
    /// Added tools.
    pub tools: Vec<Added>,
    /// Change of the tools that can be found, as it was told there.
    pub change: Change,
}

/// A tool that was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Added {
    /// Name that the model sees.
    pub name: String,
    /// Digest of the definition that the model saw.
    pub definition: u64,
    /// True if the tool was added only because its earlier addition was lost. It is not added anew a second time, so
    /// that a host that rewrites its history all the time doesn't gather tools.
    pub anew: bool,
}

impl Ledger {
    /// Returns the names of the tools that were added and stay.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let tools = self.additions.iter().flat_map(|addition| &addition.tools);
        tools.map(|tool| tool.name.as_str())
    }

    /// Returns the approximate bytes in use.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let tool = |tool: &Added| size_of::<Added>() + tool.name.len();
        let addition = |addition: &Addition| {
            let tools: usize = addition.tools.iter().map(tool).sum();
            size_of::<Addition>() + tools + addition.change.memory_bytes()
        };
        let additions: usize = self.additions.iter().map(addition).sum();
        size_of::<Self>() + additions + self.listed.as_ref().map_or(0, Kept::memory_bytes)
    }

    /// Returns the ledger as JSON, for [`Ledger::from_json`].
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Some(way) = self.way else { return json!({ "version": VERSION }) };
        let additions: Vec<Value> = self.additions.iter().map(Addition::to_json).collect();
        let mut json = json!({
            "version": VERSION,
            "api": way.api.name(),
            "strategy": way.strategy.name(),
            "additions": additions,
        });
        if let Some(listed) = &self.listed {
            json["listed"] = listed.to_json();
        }
        json
    }

    /// Reads a ledger. Entries that can't be read are left out, and those of another version too.
    #[must_use]
    pub fn from_json(json: &Value) -> Self {
        let way = || {
            let api = json["api"].as_str().and_then(Api::named)?;
            let strategy = json["strategy"].as_str().and_then(Strategy::named)?;
            Some(Way { api, strategy })
        };
        let Some(way) = way().filter(|_| json["version"] == VERSION) else {
            return Self::default();
        };
        let additions = items(&json["additions"]).filter_map(Addition::from_json).collect();
        Self { way: Some(way), additions, listed: Kept::from_json(&json["listed"]) }
    }
}

impl Addition {
    fn to_json(&self) -> Value {
        let tools: Vec<Value> = self.tools.iter().map(Added::to_json).collect();
        let mut json = json!({ "after": self.after, "digest": hex(self.digest), "tools": tools });
        if !self.change.is_empty() {
            json["change"] = self.change.to_json();
        }
        json
    }

    fn from_json(json: &Value) -> Option<Self> {
        Some(Self {
            after: usize::try_from(json["after"].as_u64()?).ok()?,
            digest: from_hex(&json["digest"])?,
            tools: items(&json["tools"]).filter_map(Added::from_json).collect(),
            change: Change::from_json(&json["change"]),
        })
    }
}

impl Added {
    fn to_json(&self) -> Value {
        let mut json = json!({ "name": self.name, "definition": hex(self.definition) });
        if self.anew {
            json["anew"] = true.into();
        }
        json
    }

    fn from_json(json: &Value) -> Option<Self> {
        Some(Self {
            name: json["name"].as_str()?.to_owned(),
            definition: from_hex(&json["definition"])?,
            anew: json["anew"] == true,
        })
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Writes a digest as text, because numbers of JSON are exact only below 2^53 in many languages.
fn hex(digest: u64) -> String {
    format!("{digest:016x}")
}

fn from_hex(json: &Value) -> Option<u64> {
    u64::from_str_radix(json.as_str()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger() -> Ledger {
        let tool = |anew| Added { name: "a".into(), definition: u64::MAX, anew };
        let tools = vec![tool(false), tool(true)];
        Ledger {
            way: Some(Way { api: Api::Gemini, strategy: Strategy::Envelope }),
            additions: vec![Addition { after: 3, digest: 7, tools, change: Change::default() }],
            listed: Some(Kept::default()),
        }
    }

    #[test]
    fn a_ledger_survives_as_json() {
        for ledger in [ledger(), Ledger::default()] {
            let text = ledger.to_json().to_string();
            let read: Value = serde_json::from_str(&text).expect("it is JSON");
            assert_eq!(Ledger::from_json(&read), ledger);
        }
    }

    #[test]
    fn what_a_ledger_holds_is_counted() {
        let small = ledger();
        let mut large = ledger();
        large.additions[0].tools[0].name = "a".repeat(1_000);
        assert!(small.memory_bytes() < 1_000, "{}", small.memory_bytes());
        assert_eq!(large.memory_bytes() - small.memory_bytes(), 999);
        large.additions.extend_from_within(..);
        assert!(large.memory_bytes() > 2_000);
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        for bad in [json!(null), json!([]), json!("x"), json!({ "version": 1, "api": "other" })] {
            assert_eq!(Ledger::from_json(&bad), Ledger::default(), "{bad}");
        }
        let mut later = ledger().to_json();
        later["version"] = 2.into();
        assert_eq!(Ledger::from_json(&later), Ledger::default());
        let mut broken = ledger().to_json();
        broken["additions"][0]["tools"][0]["definition"] = "not hex".into();
        assert_eq!(Ledger::from_json(&broken).additions[0].tools.len(), 1);
        broken["additions"][0]["after"] = (-1).into();
        assert_eq!(Ledger::from_json(&broken).additions, []);
    }
}
