//! Catalog as a store would hold it, made from catalog files. Every tool goes through the product's own check. Refused
//! tools are kept with the reason, never dropped silently.

use std::collections::{HashMap, HashSet};

use toolgate_config::LimitsConfig;
use toolgate_core::identity::ServerName;
use toolgate_routing::catalog::check::{Rejection, ToolCheck, ToolSettings, Work};
use toolgate_store::{ServerRecord, StoredCatalog, StoredServer, StoredTool, ToolRecord};

use super::catalog_file::CatalogServer;

/// Tool that the product would not store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// MCP server of the tool, by its name in the file.
    pub server: String,
    /// Name of the tool, and the reason.
    pub rejection: Rejection,
}

/// Server whose name the product does not allow. An operator would have to choose another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renamed {
    /// Name in the file, which answers use.
    pub from: String,
    /// Name under which it is ranked.
    pub to: ServerName,
}

/// Names of MCP servers in the files.
#[derive(Debug, Clone, Default)]
pub struct ServerNames(HashMap<ServerName, String>);

impl ServerNames {
    /// Returns the name in the file.
    #[must_use]
    pub fn in_file<'a>(&'a self, name: &'a ServerName) -> &'a str {
        self.0.get(name).map_or(name.as_str(), String::as_str)
    }
}

/// Catalog as a store would hold it, with what the check changed.
#[derive(Debug, Clone, Default)]
pub struct Stock {
    /// Catalog at its first revision.
    pub catalog: StoredCatalog,
    /// Tools that are not in the catalog.
    pub rejected: Vec<Rejected>,
    /// Servers that are in the catalog under other names.
    pub renamed: Vec<Renamed>,
    /// Server names that answers use.
    pub names: ServerNames,
}

impl Stock {
    /// Checks each tool separately, as a registration does.
    #[must_use]
    pub fn check(servers: &[CatalogServer], limits: &LimitsConfig) -> Self {
        let mut stock = Self::default();
        (stock.catalog.revision, stock.catalog.pool_floor) = (1, 1);
        let mut taken: HashSet<String> = HashSet::new();
        let legal = |server: &CatalogServer| ServerName::parse(&server.name).is_ok();
        let mut names: HashSet<String> =
            servers.iter().filter(|server| legal(server)).map(|s| s.name.clone()).collect();
        for server in servers {
            let name = stock.name(server, &mut names);
            stock.add(server, name, limits, &mut taken);
        }
        // A store orders tools by server, then by name.
        let key = |t: &StoredTool| (t.record.server.clone(), t.record.name.clone());
        stock.catalog.tools.sort_by_cached_key(key);
        stock
    }

    fn name(&mut self, server: &CatalogServer, taken: &mut HashSet<String>) -> ServerName {
        let name = ServerName::parse(&server.name).unwrap_or_else(|_| {
            let to = legal_name(&server.name, taken);
            self.renamed.push(Renamed { from: server.name.clone(), to: to.clone() });
            to
        });
        self.names.0.insert(name.clone(), server.name.clone());
        name
    }

    fn add(
        &mut self,
        server: &CatalogServer,
        name: ServerName,
        limits: &LimitsConfig,
        taken: &mut HashSet<String>,
    ) {
        let settings: HashMap<String, ToolSettings> = HashMap::new();
        let check = ToolCheck {
            server: &name,
            settings: &settings,
            limits,
            is_trusted: false,
            work: Work::default(),
        };
        let before = self.catalog.tools.len();
        for (index, text) in server.tools.iter().enumerate() {
            let checked = check.check(index, text);
            match checked.and_then(|record| unless_taken(index, record, taken)) {
                Ok(record) => self.catalog.tools.push(StoredTool { record, summary_revision: 1 }),
                Err(rejection) => {
                    self.rejected.push(Rejected { server: server.name.clone(), rejection });
                }
            }
        }
        let tool_count = u32::try_from(self.catalog.tools.len() - before).unwrap_or(u32::MAX);
        let description = server.description.clone();
        let record = ServerRecord { description, ..ServerRecord::new(name) };
        let stored = StoredServer { record, revision: 1, updated_ms: 0, tool_count };
        self.catalog.servers.push(stored);
    }
}

/// Returns the record unless its model-facing name is taken. A repeated tool has the same model-facing name too, so one
/// rule finds both.
fn unless_taken(
    index: usize,
    record: ToolRecord,
    taken: &mut HashSet<String>,
) -> Result<ToolRecord, Rejection> {
    if taken.insert(record.model_name.clone()) {
        return Ok(record);
    }
    let problem = format!("another tool is already {:?} to the model", record.model_name);
    let name = record.name.as_str().to_owned();
    Err(Rejection { name, field: format!("tools[{index}].name"), problem })
}

/// Returns a legal name close to `name` that no other server has.
fn legal_name(name: &str, taken: &mut HashSet<String>) -> ServerName {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let swapped: String = name.chars().map(|c| if is_legal(c) { c } else { '-' }).collect();
    let mut stem = swapped.replace("__", "_-");
    stem.truncate(56);
    let numbered = (2..).map(|number: u64| format!("{stem}-{number}"));
    let candidates = [stem.clone()].into_iter().chain(numbered);
    candidates
        .filter_map(|candidate| ServerName::parse(&candidate).ok())
        .find(|candidate| taken.insert(candidate.as_str().to_owned()))
        .expect("there are more numbers than servers, and the stem is legal before any of them")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str, tools: &[&str]) -> CatalogServer {
        let tools = tools.iter().map(|tool| (*tool).into()).collect();
        CatalogServer { name: name.to_owned(), description: String::new(), tools }
    }

    const A: &str = r#"{"name": "a", "inputSchema": {"type": "object"}}"#;
    const B: &str = r#"{"name": "b", "inputSchema": {"type": "object"}}"#;

    #[test]
    fn refused_tools_are_kept_with_their_reason() {
        let bad = r#"{"name": "bad", "inputSchema": {"type": 3}}"#;
        let servers = [server("s", &[B, bad, A, A])];
        let stock = Stock::check(&servers, &LimitsConfig::default());
        let names: Vec<_> = stock.catalog.tools.iter().map(|t| t.record.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let rejected: Vec<_> = stock
            .rejected
            .iter()
            .map(|r| (r.rejection.name.as_str(), r.rejection.field.as_str()))
            .collect();
        assert_eq!(rejected, [("bad", "tools[1].inputSchema"), ("a", "tools[3].name")]);
        assert_eq!(stock.catalog.servers[0].tool_count, 2);
    }

    #[test]
    fn illegal_server_names_give_way_and_answers_keep_them() {
        let long = "x".repeat(70);
        let names = ["api.video", "api-video", "", "a__b___c", long.as_str()];
        let servers: Vec<_> = names.iter().map(|name| server(name, &[A])).collect();
        let stock = Stock::check(&servers, &LimitsConfig::default());
        assert_eq!(stock.catalog.tools.len(), names.len());
        let renamed: Vec<_> =
            stock.renamed.iter().map(|r| (r.from.as_str(), r.to.as_str())).collect();
        let cut = "x".repeat(56);
        let wanted = [
            ("api.video", "api-video-2"),
            ("", "-2"),
            ("a__b___c", "a_-b_-_c"),
            (long.as_str(), cut.as_str()),
        ];
        assert_eq!(renamed, wanted);
        for record in &stock.catalog.servers {
            assert!(names.contains(&stock.names.in_file(&record.record.name)));
        }
    }
}
