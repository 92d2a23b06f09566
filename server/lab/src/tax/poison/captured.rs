//! Tools written to match users' requests, and the share of the tool sets that they take. Each attack is tested once
//! from a `standard` MCP server and once from an `untrusted` one, with the same honest tools present.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::json;

use crate::eval::embeddings::Embeddings;
use crate::eval::ranking::{Ranking, Way};
use crate::eval::stock::Stock;
use crate::eval::{self, CatalogServer, LabelledQuery, Progress, Sides};
use crate::tax::report::{Cell, Figure, Table};
use toolgate_config::LimitsConfig;
use toolgate_core::error::Error;
use toolgate_core::mcp_server::TrustTier;
use toolgate_routing::catalog::Hubs;
use toolgate_routing::catalog::plan::text_hash;
use toolgate_routing::packs::{Attached, Packs};
use toolgate_routing::router::query::Options;
use toolgate_routing::shard::snapshot::{Known, Snapshot};
use toolgate_store::{StoredCatalog, ToolRecord};

/// Maximum number of requests that the attacks target, taken at equal steps from those that the honest tools serve.
const REQUESTS: usize = 40;

/// Number of tools that are near every request.
const NEAR_EVERYTHING: usize = 20;

/// Words that are common in all catalogs. They are near to everything, and to nothing in particular.
const TOPICS: &str = "files folders issues tickets pages comments merge requests branches commits pipelines channels \
    messages threads users search list create update delete read write open close assign link schedule time zones";

/// Maximum length in bytes of a request's words in a tool name.
const NAME_MAX: usize = 60;

const COLUMNS: [&str; 7] = [
    "attack",
    "first, standard",
    "first, untrusted",
    "honest places",
    "pushed out, standard",
    "pushed out, untrusted",
    "near everything",
];

/// Input of the measurement: honest tools and users' queries.
pub struct Capture {
    /// Honest MCP servers.
    pub honest: Vec<CatalogServer>,
    /// Users' queries. Only those that the honest tools serve count.
    pub queries: Vec<LabelledQuery>,
    /// Packs with requests for well-known tools; `None` if packs are not used.
    pub packs: Option<Arc<Packs>>,
}

/// MCP server whose tools are written for the requests.
struct Attacker {
    says: &'static str,
    server: CatalogServer,
}

/// Tools of one set as `server/tool`, best first.
type Set = Vec<String>;

impl Capture {
    /// Embeds, routes and counts. Calls `progress` after each embedded batch.
    ///
    /// # Errors
    /// Returns [`Error::EncoderUnavailable`], or an internal error.
    pub async fn run(&self, sides: Sides<'_>, progress: &Progress) -> Result<Table, Error> {
        let asked = self.asked();
        let attackers = attackers(&asked);
        let servers = self.honest.iter().chain(attackers.iter().map(|one| &one.server));
        let servers: Vec<CatalogServer> = servers.cloned().collect();
        let stock = Stock::check(&servers, &LimitsConfig::default());
        let summaries: Vec<&str> =
            stock.catalog.tools.iter().map(|tool| tool.record.summary.as_str()).collect();
        let texts = eval::texts(asked.iter().map(|query| query.text.as_str()));
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let embeddings = Embeddings::of(sides, &summaries, &texts, progress).await?;
        let packs = eval::attached(self.packs.as_deref(), &stock.catalog, sides).await;
        let hubs = self.packs.as_ref().and_then(|packs| packs.hubs(sides.queries.fingerprint()));
        let dimensions = sides.passages.dimensions();
        Routed { stock, embeddings, packs, hubs, dimensions, asked }.table(&attackers)
    }

    /// Returns a sample of the requests that the honest tools serve, or all of them if there are few.
    fn asked(&self) -> Vec<&LabelledQuery> {
        let names: HashSet<&str> = self.honest.iter().map(|server| server.name.as_str()).collect();
        let is_served = |label: &String| {
            label.split_once('/').is_some_and(|(server, _)| names.contains(server))
        };
        let served: Vec<&LabelledQuery> = self
            .queries
            .iter()
            .filter(|query| query.is_labelled() && query.relevant.iter().all(is_served))
            .collect();
        let count = served.len().min(REQUESTS);
        (0..count).map(|place| served[place * served.len() / count]).collect()
    }
}

/// Data from which sets are made.
struct Routed<'a> {
    stock: Stock,
    embeddings: Embeddings,
    packs: Attached,
    hubs: Option<Hubs>,
    dimensions: usize,
    asked: Vec<&'a LabelledQuery>,
}

impl Routed<'_> {
    fn table(&self, attackers: &[Attacker]) -> Result<Table, Error> {
        let before = self.sets(attackers, None)?;
        let says = self.says(attackers);
        let mut table =
            Table::new("captured", "What written-for tools take", &COLUMNS).saying(says);
        let asked = self.asked.len() as u64;
        let honest = before.iter().map(Vec::len).sum::<usize>() as u64;
        for attacker in attackers {
            let believed =
                self.sets(attackers, Some((&attacker.server.name, TrustTier::Unspecified)))?;
            let untrusted =
                self.sets(attackers, Some((&attacker.server.name, TrustTier::Untrusted)))?;
            let first =
                |after: &[Set]| Figure::Of(firsts(after, &attacker.server.name), asked).measured();
            let pushed_out = |after: &[Set]| Figure::count(pushed_out(&before, after)).measured();
            let cells = [
                first(&believed),
                first(&untrusted),
                Figure::count(honest).measured(),
                pushed_out(&believed),
                pushed_out(&untrusted),
                self.hubs_of(&attacker.server.name),
            ];
            table.push(attacker.says, cells);
        }
        Ok(table)
    }

    /// Returns the sets for the requests, with no attacker or with one of this tier next to the honest tools.
    fn sets(
        &self,
        attackers: &[Attacker],
        present: Option<(&str, TrustTier)>,
    ) -> Result<Vec<Set>, Error> {
        let absent: HashSet<&str> = attackers
            .iter()
            .map(|one| one.server.name.as_str())
            .filter(|name| present.is_none_or(|(present, _)| present != *name))
            .collect();
        let mut catalog: StoredCatalog = self.stock.catalog.clone();
        catalog.tools.retain(|tool| !absent.contains(tool.record.server.as_str()));
        catalog.servers.retain(|server| !absent.contains(server.record.name.as_str()));
        for server in &mut catalog.servers {
            if let Some((name, tier)) = present
                && server.record.name.as_str() == name
            {
                server.record.trust_tier = tier;
            }
        }
        let known = Known { embeddings: self.embeddings.vectors(), packs: &self.packs };
        let snapshot = Snapshot::build_with(catalog, known, self.dimensions)?;
        snapshot.build_graph();
        let ranking = Ranking {
            embeddings: &self.embeddings,
            names: &self.stock.names,
            options: &Options::default(),
            clauses: true,
            way: Way::Router,
            memory: None,
        };
        let answers = ranking.answer(&snapshot, &self.asked)?;
        Ok(answers.into_iter().map(|answer| answer.set.tools).collect())
    }

    /// Counts the tools of an MCP server that a registration reports as near everything.
    fn hubs_of(&self, server: &str) -> Cell {
        let Some(hubs) = &self.hubs else { return Cell::NONE };
        let vectors = self.vectors(|of| of == server);
        let all = vectors.len() as u64;
        let near = vectors.iter().filter(|vector| hubs.is_one(vector)).count() as u64;
        Figure::Of(near, all).measured()
    }

    /// Returns the summary embeddings of the wanted MCP servers.
    fn vectors(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<&Vec<f32>> {
        let tools = self.stock.catalog.tools.iter().map(|tool| &tool.record);
        let tools = tools.filter(|record| is_wanted(record.server.as_str()));
        let vector =
            |record: &ToolRecord| self.embeddings.vectors().get(&text_hash(&record.summary));
        tools.filter_map(vector).collect()
    }

    /// Describes how near honest tools are to everybody's requests. Returns an empty text if that is unknown.
    fn says_nearness(&self, is_attacker: impl Fn(&str) -> bool) -> String {
        let Some(hubs) = &self.hubs else { return String::new() };
        let near = self.vectors(|server| !is_attacker(server));
        let near: Vec<f32> = near.iter().map(|vector| hubs.nearness(vector)).collect();
        let count = near.len().max(1) as f32;
        let mean = near.iter().sum::<f32>() / count;
        let spread = near.iter().map(|one| (one - mean).powi(2)).sum::<f32>() / count;
        let most = near.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        format!(
            " *Near everything*: tools that a registration tells of as such. The mean overlap of honest tools with everybody's \
             requests is {mean:.4}, its standard deviation {:.4}, the highest {most:.4}.",
            spread.sqrt()
        )
    }

    fn says(&self, attackers: &[Attacker]) -> String {
        let is_attacker = |name: &str| attackers.iter().any(|one| one.server.name == name);
        let servers = self.stock.catalog.servers.iter();
        let servers = servers.filter(|one| !is_attacker(one.record.name.as_str())).count();
        let tools = self.stock.catalog.tools.iter();
        let tools = tools.filter(|one| !is_attacker(one.record.server.as_str())).count();
        format!(
            "{} requests that are served by the {tools} honest tools of {servers} MCP servers; beside these, one MCP server \
             whose tools are written for these very requests. Route's defaults and this encoder; nothing is scanned. \
             *First*: requests for which a tool of the attacker's comes first. *Honest places*: places in the sets \
             without it. *Pushed out*: of those, the places that are lost. A tier that is not trusted is there so that \
             the second figure is less than the first.{}",
            self.asked.len(),
            self.says_nearness(is_attacker)
        )
    }
}

/// Returns the number of sets whose first tool is from this MCP server.
fn firsts(sets: &[Set], server: &str) -> u64 {
    let is_theirs = |tool: &String| tool.split_once('/').is_some_and(|(of, _)| of == server);
    sets.iter().filter(|set| set.first().is_some_and(is_theirs)).count() as u64
}

/// Returns the number of tools in the earlier sets that the corresponding later sets lack.
fn pushed_out(before: &[Set], after: &[Set]) -> u64 {
    let lost = |(was, is): (&Set, &Set)| was.iter().filter(|tool| !is.contains(tool)).count();
    before.iter().zip(after).map(lost).sum::<usize>() as u64
}

fn attackers(asked: &[&LabelledQuery]) -> [Attacker; 3] {
    let words: Vec<&str> = TOPICS.split_whitespace().collect();
    let near_everything = (0..NEAR_EVERYTHING).map(|turn| {
        let turned: Vec<&str> =
            words.iter().cycle().skip(turn).take(words.len()).copied().collect();
        tool(&format!("assistant_{turn}"), &format!("Helps with {}.", turned.join(", ")))
    });
    let described =
        asked.iter().enumerate().map(|(at, query)| tool(&format!("do_{at}"), &query.text));
    let named = asked.iter().enumerate();
    let named = named.map(|(at, query)| tool(&format!("{}_{at}", name_of(&query.text)), "Helps."));
    [
        Attacker {
            says: "a tool for each request, described by its words",
            server: server("suite-of-requests", described),
        },
        Attacker {
            says: "a name for each request, no description",
            server: server("suite-of-names", named),
        },
        Attacker {
            says: "20 tools of the words that all catalogs share",
            server: server("suite-of-topics", near_everything),
        },
    ]
}

/// Returns a request's words as a tool name.
fn name_of(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut name = words.collect::<Vec<_>>().join("_");
    name.truncate(NAME_MAX);
    name
}

fn server(name: &str, tools: impl Iterator<Item = Box<str>>) -> CatalogServer {
    CatalogServer { name: name.to_owned(), description: String::new(), tools: tools.collect() }
}

fn tool(name: &str, description: &str) -> Box<str> {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    json!({"name": name, "description": description, "inputSchema": schema}).to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str, relevant: &[&str]) -> LabelledQuery {
        let relevant = relevant.iter().map(|label| (*label).to_owned()).collect();
        LabelledQuery { text: text.to_owned(), relevant, ..LabelledQuery::default() }
    }

    #[test]
    fn attacks_are_written_for_the_requests_that_honest_tools_serve() {
        let honest = vec![server("git", [tool("log", "Shows commits.")].into_iter())];
        let queries = vec![
            query("what's new since Friday?", &["git/log"]),
            query("book a table", &["tables/book"]),
            query("tell a joke", &[]),
            query("log and book", &["git/log", "tables/book"]),
        ];
        let capture = Capture { honest, queries, packs: None };
        let asked = capture.asked();
        assert_eq!(asked.len(), 1);
        let attackers = attackers(&asked);
        let stock = Stock::check(
            &attackers.iter().map(|one| one.server.clone()).collect::<Vec<_>>(),
            &LimitsConfig::default(),
        );
        assert!(stock.rejected.is_empty(), "{:?}", stock.rejected);
        assert_eq!(stock.catalog.tools.len(), 1 + 1 + NEAR_EVERYTHING);
        assert!(attackers[1].server.tools[0].contains("\"what_s_new_since_friday_0\""));
    }

    #[test]
    fn what_is_taken_is_counted_place_by_place() {
        let set = |tools: &[&str]| tools.iter().map(|tool| (*tool).to_owned()).collect::<Set>();
        let before = [set(&["a/x", "a/y"]), set(&["a/z"]), set(&[])];
        let after = [set(&["evil/1", "a/x"]), set(&["a/z", "evil/2"]), set(&["evil/3"])];
        assert_eq!(pushed_out(&before, &after), 1);
        assert_eq!(firsts(&after, "evil"), 2);
        assert_eq!(firsts(&after, "evi"), 0);
    }
}
