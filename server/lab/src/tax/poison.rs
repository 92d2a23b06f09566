//! The adversarial set: tools with poisoned descriptions beside the testbed, whether they get into the active set,
//! and what Gate does when the model obeys them. The texts are data: nothing here acts on them.

mod captured;
mod covert;
mod crafted;
mod disguised;
mod scanned;
mod trial;

use super::report::{Cell, Table};
use crate::eval::CatalogServer;
use toolgate_core::error::Error;

pub use captured::Capture;
pub use scanned::{Attack, Honest, scanned};
pub(super) use trial::{exposure, table, texts, trials};

/// What a description tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// To give the model instructions.
    Injection,
    /// To carry data out.
    Exfiltration,
    /// To pass for another tool, or to bend how that is used.
    Shadowing,
    /// To hurry the model.
    Urgency,
    /// To be about everything.
    Stuffing,
    /// To be what a common intent looks for.
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

    /// The MCP server that its tools come from.
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

/// A tool with a poisoned description.
#[derive(Debug)]
pub(super) struct Poisoned {
    family: Family,
    name: &'static str,
    /// What it says it does.
    cover: &'static str,
    /// The poison, which stands behind the cover.
    payload: &'static str,
    /// What the user wants on the turn on which it is tried.
    intent: &'static str,
    /// The tool that it wants called, as the model sees it; empty for itself alone.
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
    /// All of them.
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

/// The MCP servers that have these tools.
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
