//! Synthetic testbed of MCP servers. Each tool combines a verb with an object. Each definition is as long as in the
//! paper, and the preconditions follow the paper's examples.

mod definition;
mod domains;
mod verbs;
mod wider;

use std::collections::HashMap;

use crate::eval::CatalogServer;
use crate::eval::stock::Stock;
use crate::random::Random;
use toolgate_config::LimitsConfig;
use toolgate_core::error::Error;
use toolgate_core::identity::{ServerName, ToolId, ToolName};
use toolgate_core::precondition::Precondition;
use toolgate_store::StoredCatalog;

pub(super) use domains::{Domain, PAPER};
pub(super) use verbs::{Effect, Verb};

/// Milestone that tools with irreversible effects require.
pub(super) const CONFIRMED: &str = "plan_confirmed";

/// Name prefixes of tools that read. One of these tools must have been called before an edit.
const READING: [&str; 6] = ["search_", "list_", "get_", "query_", "read_", "fetch_"];

/// MCP servers whose tools that read need no authentication.
const PUBLIC: [&str; 2] = ["filesystem", "web"];

/// Tool of the testbed.
#[derive(Debug)]
pub(super) struct BedTool {
    /// MCP server of the tool.
    pub(super) domain: &'static Domain,
    /// Action of the tool.
    pub(super) verb: &'static Verb,
    /// Object of the action.
    object: &'static str,
    /// Model-facing name.
    pub(super) model_name: String,
}

/// Catalog, and additional facts about its tools.
#[derive(Debug)]
pub(super) struct Testbed {
    /// Tools, server by server.
    pub(super) tools: Vec<BedTool>,
    /// Catalog as a store would hold it.
    pub(super) catalog: StoredCatalog,
}

impl Testbed {
    /// Creates the paper's testbed, or the first `tools` tools of a larger one that begins with it. A smaller testbed
    /// has tools of all six servers.
    ///
    /// # Errors
    /// Returns [`Error::Internal`] if the product's own check rejects a tool.
    pub(super) fn new(seed: u64, tools: usize) -> Result<Self, Error> {
        let mut random = Random::new(seed);
        let mut known = Vec::new();
        let mut servers = Vec::new();
        for (domain, wanted) in shares(tools) {
            let mut texts = Vec::new();
            for (object, verb) in pairs(domain).take(wanted) {
                let tool = BedTool::new(domain, verb, object)?;
                let names = (tool.name(), tool.model_name.as_str());
                let text = definition::write(domain, verb, object, &names.0, names.1, &mut random)?;
                texts.push(text.into());
                known.push(tool);
            }
            let name = domain.server.to_owned();
            servers.push(CatalogServer { name, description: String::new(), tools: texts });
        }
        let catalog = check(&servers, &known)?;
        Ok(Self { tools: known, catalog })
    }
}

impl BedTool {
    fn new(
        domain: &'static Domain,
        verb: &'static Verb,
        object: &'static str,
    ) -> Result<Self, Error> {
        let mut tool = Self { domain, verb, object, model_name: String::new() };
        let name = ToolName::parse(&tool.name())?;
        tool.model_name = ToolId { server: ServerName::parse(domain.server)?, name }.model_name();
        Ok(tool)
    }

    /// Returns the MCP name.
    pub(super) fn name(&self) -> String {
        let object = if self.verb.of_many { plural(self.object) } else { self.object.to_owned() };
        format!("{}_{}", self.verb.name, object.replace(' ', "_"))
    }

    /// Returns the condition for showing or calling the tool.
    pub(super) fn precondition(&self) -> Option<Precondition> {
        let server = self.domain.server;
        let signed_in = |what: &str| Precondition::IsAuthenticated(format!("{server}:{what}"));
        match self.verb.effect {
            Effect::Reads if PUBLIC.contains(&server) => None,
            Effect::Reads => Some(signed_in("read")),
            Effect::Writes => Some(signed_in("write")),
            Effect::Edits => {
                let read = READING.map(|prefix| Precondition::HasPriorToolOutput(prefix.into()));
                Some(Precondition::All(vec![signed_in("write"), Precondition::Any(read.into())]))
            }
            Effect::Destroys => {
                let confirmed = Precondition::MilestoneReached(CONFIRMED.into());
                Some(Precondition::All(vec![signed_in("write"), confirmed]))
            }
        }
    }

    /// Returns a random phrase in which users ask for the tool.
    pub(super) fn intent(&self, random: &mut Random, topics: &[&str]) -> String {
        let phrase = fill(random.pick::<&str>(self.verb.phrases), self.domain, self.object);
        let place = random.pick::<&str>(self.domain.places);
        phrase.replace("{place}", place).replace("{topic}", random.pick::<&str>(topics))
    }
}

/// Returns the catalog without preconditions.
pub(super) fn without_preconditions(catalog: &StoredCatalog) -> StoredCatalog {
    let mut catalog = catalog.clone();
    catalog.tools.iter_mut().for_each(|tool| tool.record.precondition = None);
    catalog
}

/// Returns the number of tools of each server, which add up to `tools`.
fn shares(tools: usize) -> Vec<(&'static Domain, usize)> {
    let published: usize = PAPER.iter().map(Domain::tools).sum();
    if tools < published {
        // Rounding the running sum makes the parts add up to the whole.
        let mut before = 0;
        let share = |domain: &'static Domain| {
            let upto = |count: usize| count * tools / published;
            let here = upto(before + domain.tools()) - upto(before);
            before += domain.tools();
            (domain, here)
        };
        return PAPER.iter().map(share).collect();
    }
    let whole = PAPER.iter().map(|domain| (domain, domain.tools()));
    let mut left = tools - published;
    let further = wider::WIDER.iter().map_while(|domain| {
        let wanted = left.min(domain.tools());
        left -= wanted;
        (wanted > 0).then_some((domain, wanted))
    });
    whole.chain(further).collect()
}

/// Pairs objects with verbs in an order in which the first few pairs have some of each.
fn pairs(domain: &'static Domain) -> impl Iterator<Item = (&'static str, &'static Verb)> {
    let objects = domain.objects;
    let verbs = domain.verbs;
    let pair = move |n: usize| {
        let row = n / verbs.len();
        let column = n % verbs.len();
        (objects[(row + column) % objects.len()], verbs[column])
    };
    (0..domain.tools()).map(pair)
}

/// Runs the product's own check, then adds the preconditions.
fn check(servers: &[CatalogServer], known: &[BedTool]) -> Result<StoredCatalog, Error> {
    let mut stock = Stock::check(servers, &LimitsConfig::default());
    if let Some(refused) = stock.rejected.first() {
        let what = &refused.rejection;
        let problem = format!("testbed: {}: {}: {}", refused.server, what.name, what.problem);
        return Err(Error::internal(problem));
    }
    let by_name: HashMap<&str, &BedTool> =
        known.iter().map(|tool| (tool.model_name.as_str(), tool)).collect();
    for tool in &mut stock.catalog.tools {
        let known = by_name.get(tool.record.model_name.as_str());
        tool.record.precondition = known.and_then(|known| known.precondition());
    }
    Ok(stock.catalog)
}

/// Fills the words for the object and the server into a text.
fn fill(text: &str, domain: &Domain, object: &str) -> String {
    let many = plural(object);
    text.replace("{one}", object).replace("{many}", &many).replace("{of}", domain.of)
}

fn plural(one: &str) -> String {
    match one.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o']) => format!("{stem}ies"),
        _ if one.ends_with("ch") || one.ends_with('s') => format!("{one}es"),
        _ => format!("{one}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use toolgate_routing::catalog::summary::SUMMARY_TOKENS_MAX;

    #[test]
    fn each_definition_has_the_papers_tokens_exactly() {
        let bed = Testbed::new(42, 120).expect("the testbed");
        for (domain, (tools, tokens)) in
            PAPER.iter().zip([(30, 520), (10, 180), (20, 410), (15, 290), (10, 220), (35, 470)])
        {
            let of =
                |tool: &&toolgate_store::StoredTool| tool.record.server.as_str() == domain.server;
            let found: Vec<_> = bed.catalog.tools.iter().filter(of).collect();
            assert_eq!(found.len(), tools, "{}", domain.server);
            for tool in found {
                assert_eq!(tool.record.schema_tokens, tokens, "{}", tool.record.model_name);
                assert!(tool.record.summary.len() > 40, "{}", tool.record.summary);
                assert!(tool.record.summary_tokens <= SUMMARY_TOKENS_MAX + 20);
            }
        }
        let all: u32 = bed.catalog.tools.iter().map(|tool| tool.record.schema_tokens).sum();
        assert_eq!((bed.tools.len(), all), (120, 48_600));
    }

    #[test]
    fn a_seed_names_one_testbed() {
        let texts = |seed| {
            let bed = Testbed::new(seed, 120).expect("the testbed");
            bed.catalog.tools.into_iter().map(|t| t.record.definition).collect::<Vec<_>>()
        };
        assert_eq!(texts(42), texts(42));
        assert_ne!(texts(42), texts(43));
    }

    #[test]
    fn larger_and_smaller_ones_are_of_the_size_asked_for() {
        for tools in [12, 30, 60, 130, 240] {
            let bed = Testbed::new(42, tools).expect("the testbed");
            assert_eq!(bed.tools.len(), tools);
            let names: BTreeSet<_> = bed.tools.iter().map(|tool| &tool.model_name).collect();
            assert_eq!(names.len(), bed.tools.len());
        }
        assert_eq!(wider::WIDER.iter().map(Domain::tools).sum::<usize>(), 840);
    }

    #[test]
    fn every_kind_of_precondition_is_there() {
        let bed = Testbed::new(42, 120).expect("the testbed");
        let having = |wanted: &str| {
            let tools = bed.catalog.tools.iter();
            let texts =
                tools.filter_map(|tool| Some(tool.record.precondition.as_ref()?.to_string()));
            texts.filter(|text| text.contains(wanted)).count()
        };
        let counts = ["is_authenticated", "has_prior_tool_output", CONFIRMED].map(having);
        assert!(counts.iter().all(|count| *count > 10), "{counts:?}");
        assert!(bed.catalog.tools.iter().any(|tool| tool.record.precondition.is_none()));
    }

    #[test]
    fn words_have_plurals() {
        let many = ["directory", "branch", "survey", "issue", "access key"].map(plural);
        assert_eq!(many, ["directories", "branches", "surveys", "issues", "access keys"]);
    }
}
