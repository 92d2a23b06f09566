//! Findings of the registration scanner in the poisoned tools, in attacks from other sources, and in honest tools. A
//! finding in an honest tool is a false positive.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Family, Poisoned};
use crate::tax::paper;
use crate::tax::report::{Cell, Figure, Table};
use crate::tax::testbed::Testbed;
use toolgate_core::error::Error;
use toolgate_core::identity::ServerName;
use toolgate_core::safety::survey::{Surveyed, ToolFindings, survey};
use toolgate_core::safety::{Scanner, Severity, Tier};
use toolgate_store::{StoredCatalog, StoredServer};

/// Number of testbed tools that are scanned together with the poisoned ones.
const BESIDE: usize = 120;
/// MCP server that attacks from other sources are attributed to.
const ATTACKER: &str = "unknown-vendor";

/// Attack from another source: a description, and its origin.
#[derive(Debug, Clone, Deserialize)]
pub struct Attack {
    /// Source of the description.
    pub source: String,
    /// Kind of the attack.
    pub family: String,
    /// Text of the description.
    pub text: String,
    /// True if it is not an attack, but was written to resemble one.
    #[serde(default)]
    pub honest: bool,
}

/// Catalog of honest tools.
#[derive(Debug, Clone)]
pub struct Honest {
    /// Name in the table.
    pub name: String,
    /// MCP servers of the catalog.
    pub servers: Vec<Surveyed>,
}

/// Scans the 60 poisoned tools together with the testbed, each of `attacks`, and the honest catalogs. Returns the
/// findings.
///
/// # Errors
/// Returns an internal error if the testbed is defective.
pub fn scanned(scanner: &Scanner, attacks: &[Attack], honest: &[Honest]) -> Result<Table, Error> {
    let mut table =
        Table::new("scanned", "What a registration's scan finds", &COLUMNS).saying(SAYS);
    ours(scanner, &mut table)?;
    of_others(scanner, attacks, &mut table);
    for catalog in honest {
        let found = survey(scanner, &catalog.servers);
        push(&mut table, format!("honest: {}", catalog.name), &found.iter().collect::<Vec<_>>());
    }
    Ok(table)
}

const COLUMNS: [&str; 7] = [
    "texts",
    "of them",
    "found",
    "medium or high",
    "high",
    "held back, standard",
    "held back, untrusted",
];

const SAYS: &str = "\
Each tool is registered for the first time. *Held back*: the tool is quarantined, in an MCP server of that tier. Our own \
poisoned tools stand beside the testbed, whose tools some of them imitate; rules were written with some of them in view. \
Attacks of others are put into the description of a tool with an honest name, alone: no rule was written or changed \
with those of the held-out half in view. In honest catalogs each finding is one too many.";

fn ours(scanner: &Scanner, table: &mut Table) -> Result<(), Error> {
    let bed = Testbed::new(paper::SEED, BESIDE)?;
    let tools = Poisoned::all();
    let mut servers: Vec<Surveyed> = super::servers(&tools).into_iter().map(parsed).collect();
    let poisoned = servers.len();
    servers.extend(of_catalog(&bed.catalog));
    let names: Vec<String> = servers[..poisoned].iter().map(|server| server.name.clone()).collect();
    let found = survey(scanner, &servers);
    for (family, name) in Family::ALL {
        let of_family: Vec<_> =
            found.iter().filter(|tool| tool.server == family.server()).collect();
        push(table, format!("ours: {name}"), &of_family);
    }
    let all: Vec<_> = found.iter().filter(|tool| names.contains(&tool.server)).collect();
    push(table, "ours: all".to_owned(), &all);
    let beside: Vec<_> = found.iter().filter(|tool| !names.contains(&tool.server)).collect();
    push(table, "honest: the testbed".to_owned(), &beside);
    Ok(())
}

fn of_others(scanner: &Scanner, attacks: &[Attack], table: &mut Table) {
    let mut rows: Vec<(String, Vec<ToolFindings>)> = Vec::new();
    for attack in attacks {
        let tool = json!({
            "name": "look_up",
            "description": attack.text,
            "inputSchema": {"type": "object"},
        });
        let server =
            Surveyed { name: ATTACKER.to_owned(), description: String::new(), tools: vec![tool] };
        let found = survey(scanner, &[server]);
        let kind = if attack.honest { "honest" } else { "attack" };
        let row = format!("{kind}: {}, {}", attack.source, attack.family);
        match rows.iter_mut().find(|(name, _)| *name == row) {
            Some((_, known)) => known.extend(found),
            None => rows.push((row, found)),
        }
    }
    for (row, found) in rows {
        push(table, row, &found.iter().collect::<Vec<_>>());
    }
}

fn push(table: &mut Table, row: String, found: &[&ToolFindings]) {
    let all = found.len() as u64;
    let worst = |tool: &ToolFindings| tool.findings.first().map(|finding| finding.severity);
    let from = |least: Severity| {
        let count = found.iter().filter(|tool| worst(tool).is_some_and(|worst| worst >= least));
        Figure::Of(count.count() as u64, all).measured()
    };
    let held = |tier: Tier| tier.bar().map_or(Cell::NONE, from);
    table.push(
        row,
        [
            Figure::count(all).measured(),
            from(Severity::Low),
            from(Severity::Medium),
            from(Severity::High),
            held(Tier::Standard),
            held(Tier::Untrusted),
        ],
    );
}

/// Returns the MCP servers of a catalog.
fn of_catalog(catalog: &StoredCatalog) -> Vec<Surveyed> {
    let tools_of = |name: &ServerName| {
        let of_server = catalog.tools.iter().filter(|tool| tool.record.server == *name);
        of_server.map(|tool| parse(&tool.record.definition)).collect()
    };
    let server = |server: &StoredServer| Surveyed {
        name: server.record.name.as_str().to_owned(),
        description: server.record.description.clone(),
        tools: tools_of(&server.record.name),
    };
    catalog.servers.iter().map(server).collect()
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

fn parsed(server: crate::eval::CatalogServer) -> Surveyed {
    Surveyed {
        name: server.name,
        description: server.description,
        tools: server.tools.iter().map(|text| parse(text)).collect(),
    }
}
