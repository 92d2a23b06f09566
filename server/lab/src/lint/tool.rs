//! Tool with everything that the rules need: its record, its definition and the sentences of its description.

use std::collections::HashSet;

use super::sentences::sentences;
use crate::eval::stock::Stock;
use toolgate_routing::catalog::definition::Definition;
use toolgate_routing::shard::words::language::Languages;
use toolgate_routing::shard::words::terms;
use toolgate_store::{StoredTool, ToolRecord};

/// One tool of a catalog.
#[derive(Debug)]
pub struct Tool<'a> {
    /// Name of the MCP server in the file.
    pub server: &'a str,
    /// MCP name of the tool.
    pub name: &'a str,
    /// Record that a store would hold.
    pub record: &'a ToolRecord,
    /// MCP definition of the tool.
    pub definition: Definition,
    /// Sentences of the description.
    pub sentences: Vec<String>,
}

impl<'a> Tool<'a> {
    /// Returns every tool of a catalog, in its order.
    #[must_use]
    pub fn all(stock: &'a Stock) -> Vec<Self> {
        let tool = |stored: &'a StoredTool| Self::new(stock, &stored.record);
        stock.catalog.tools.iter().map(tool).collect()
    }

    fn new(stock: &'a Stock, record: &'a ToolRecord) -> Self {
        let definition = Definition::parse(&record.definition);
        let definition = definition.expect("the check that made the record parsed it");
        Self {
            server: stock.names.in_file(&record.server),
            name: record.name.as_str(),
            record,
            sentences: sentences(definition.description()),
            definition,
        }
    }

    /// Returns the name that labels and rankings use: `server/tool`.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}/{}", self.server, self.name)
    }
}

/// Returns the terms that the word index makes of an English text, including repeats.
pub(super) fn terms(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    terms::each(text, Languages::ENGLISH, |term| found.push(term.to_owned()));
    found
}

/// Returns the distinct terms of an English text.
pub fn distinct_terms(text: &str) -> HashSet<String> {
    terms(text).into_iter().collect()
}

#[cfg(test)]
pub(crate) mod samples {
    use serde_json::{Value, json};

    use crate::eval::CatalogServer;
    use crate::eval::stock::Stock;
    use toolgate_config::LimitsConfig;

    /// Returns an MCP server with these tools, each given as name, description and input schema.
    pub(crate) fn server(name: &str, tools: &[(&str, &str, Value)]) -> CatalogServer {
        let tool = |(name, description, schema): &(&str, &str, Value)| {
            let tool = json!({"name": name, "description": description, "inputSchema": schema});
            tool.to_string().into()
        };
        let tools = tools.iter().map(tool).collect();
        CatalogServer { name: name.to_owned(), description: String::new(), tools }
    }

    /// Returns the catalog of one server `s`, whose tools have no parameters.
    pub(crate) fn stock(tools: &[(&str, &str)]) -> Stock {
        let schema = || json!({"type": "object"});
        let tools: Vec<_> =
            tools.iter().map(|(name, description)| (*name, *description, schema())).collect();
        Stock::check(&[server("s", &tools)], &LimitsConfig::default())
    }
}
