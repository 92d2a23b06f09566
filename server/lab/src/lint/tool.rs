//! A tool as the rules see it: its record, its definition, and the sentences of its description.

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
    /// Its MCP server, as the file names it.
    pub server: &'a str,
    /// Its MCP name.
    pub name: &'a str,
    /// What a store would hold.
    pub record: &'a ToolRecord,
    /// Its MCP definition.
    pub definition: Definition,
    /// What its description says.
    pub sentences: Vec<String>,
}

impl<'a> Tool<'a> {
    /// Every tool of a catalog, in its order.
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

    /// As labels and rankings name it.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}/{}", self.server, self.name)
    }
}

/// The terms that the index of words makes of an English text, repeats included.
pub(super) fn terms(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    terms::each(text, Languages::ENGLISH, |term| found.push(term.to_owned()));
    found
}

/// Each of them once.
pub fn distinct_terms(text: &str) -> HashSet<String> {
    terms(text).into_iter().collect()
}

#[cfg(test)]
pub(crate) mod samples {
    use serde_json::{Value, json};

    use crate::eval::CatalogServer;
    use crate::eval::stock::Stock;
    use toolgate_config::LimitsConfig;

    /// An MCP server of tools with a name, a description and an input schema.
    pub(crate) fn server(name: &str, tools: &[(&str, &str, Value)]) -> CatalogServer {
        let tool = |(name, description, schema): &(&str, &str, Value)| {
            let tool = json!({"name": name, "description": description, "inputSchema": schema});
            tool.to_string().into()
        };
        let tools = tools.iter().map(tool).collect();
        CatalogServer { name: name.to_owned(), description: String::new(), tools }
    }

    /// The catalog of one server `s` of tools without parameters.
    pub(crate) fn stock(tools: &[(&str, &str)]) -> Stock {
        let schema = || json!({"type": "object"});
        let tools: Vec<_> =
            tools.iter().map(|(name, description)| (*name, *description, schema())).collect();
        Stock::check(&[server("s", &tools)], &LimitsConfig::default())
    }
}
