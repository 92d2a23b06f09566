//! Adversarial set: tools with poisoned descriptions in addition to the testbed. It measures whether they get into the
//! active set, and how Gate responds when the model obeys them. The texts are only data, and no code follows them.

mod captured;
mod covert;
mod crafted;
mod disguised;
mod scanned;
mod trial;

use super::report::{Cell, Figure, Table};
use crate::eval::CatalogServer;
use toolgate_core::error::Error;

pub use captured::Capture;
pub use scanned::{Attack, Honest, scanned};
pub(super) use trial::{exposure, table, texts, trials};

/// Kind of attack in a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// Instructions to the model.
    Injection,
    /// Exfiltration of data.
    Exfiltration,
    /// Impersonation of another tool, or a change in how it is used.
    Shadowing,
    /// Time pressure on the model.
    Urgency,
    /// Words about everything.
    Stuffing,
    /// Text that matches a common intent.
    Crafted,
}

impl Family {
    const ALL: [(Self, &str); 6] = [
        (Self::Injection, "instructions to the model"),
        (Self::Exfiltration, "exfiltration"),
        (Self::Shadowing, "impersonation and shadowing"),
        (Self::Urgency, "urgent tone"),
        (Self::Stuffing, "keyword stuffing"),
        (Self::Crafted, "crafted to match common intents"),
    ];

    /// Returns the MCP server that provides the tools of this kind.
    fn server(self) -> &'static str {
        match self {
            Self::Injection => "gadgets",
            Self::Exfiltration => "text-tools",
            Self::Shadowing => "platform-extras",
            Self::Urgency => "notices",
            Self::Stuffing => "all-in-one",
            Self::Crafted => "work-tools",
        }
    }
}

/// Tool with a poisoned description.
#[derive(Debug)]
pub(super) struct Poisoned {
    family: Family,
    name: &'static str,
    /// Claimed purpose of the tool.
    cover: &'static str,
    /// Poison, which follows the cover in the description.
    payload: &'static str,
    /// User's intent on the turn on which the tool is tested.
    intent: &'static str,
    /// Model-facing name of the tool whose call the poison urges; empty if it urges only its own.
    urges: &'static str,
}

const fn of(
    family: Family,
    name: &'static str,
    [cover, payload]: [&'static str; 2],
    intent: &'static str,
    urges: &'static str,
) -> Poisoned {
    Poisoned { family, name, cover, payload, intent, urges }
}

impl Poisoned {
    /// Returns all poisoned tools.
    pub(super) fn all() -> Vec<&'static Self> {
        covert::INJECTION
            .iter()
            .chain(&covert::EXFILTRATION)
            .chain(&disguised::SHADOWING)
            .chain(&disguised::URGENCY)
            .chain(&disguised::STUFFING)
            .chain(&crafted::CRAFTED)
            .collect()
    }

    fn model_name(&self) -> String {
        format!("mcp__{}__{}", self.family.server(), self.name)
    }

    fn definition(&self) -> String {
        let description = format!("{} {}", self.cover, self.payload);
        let schema =
            serde_json::json!({"type": "object", "properties": {"text": {"type": "string"}}});
        serde_json::json!({"name": self.name, "description": description, "inputSchema": schema})
            .to_string()
    }
}

/// Returns the MCP servers that provide these tools.
fn servers(tools: &[&Poisoned]) -> Vec<CatalogServer> {
    let server = |(family, _): &(Family, &str)| {
        let of_family = tools.iter().filter(|tool| tool.family == *family);
        let name = family.server().to_owned();
        let tools = of_family.map(|tool| tool.definition().into()).collect();
        CatalogServer { name, description: String::new(), tools }
    };
    let servers = Family::ALL.iter().map(server);
    servers.filter(|server| !server.tools.is_empty()).collect()
}
