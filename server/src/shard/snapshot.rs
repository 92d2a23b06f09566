//! One tenant's catalog at one revision, parsed and indexed. Immutable: readers share it, a change makes
//! a new one.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use tracing::error;

use super::names::NameIndex;
use super::requirements::{Group, Grouping};
use super::tool::Tool;
use super::{IndexOptions, VectorIndex, WordIndex};
use crate::catalog::plan::text_hash;
use crate::error::Error;
use crate::identity::ServerName;
use crate::precondition::Requirement;
use crate::store::{ContentHash, RemovedTool, Revision, ServerRecord, StoredCatalog, StoredServer};

/// An MCP server that is announced.
#[derive(Debug, Clone)]
pub struct PendingServer {
    /// Its name.
    pub name: ServerName,
    /// What its tools will ask of the state at least.
    pub requirement: Requirement,
}

/// A tenant's shard at one revision.
#[derive(Debug)]
pub struct Snapshot {
    /// The catalog revision.
    pub revision: Revision,
    /// The tools by slot: the summary pool's order.
    pub tools: Vec<Tool>,
    /// Tools by name.
    pub names: NameIndex,
    /// Slots by MCP server, ascending.
    pub servers: BTreeMap<ServerName, Vec<u32>>,
    /// Tools by what they ask of the state.
    pub groups: Vec<Group>,
    /// By slot, what deferring the tool saves: tokens of its definition, 0 for one that is never deferred.
    pub deferrable_tokens: Box<[u32]>,
    /// Slots of the tools that are never deferred.
    pub always_load: Vec<u32>,
    /// The dense index; `None` while the embeddings can't be had.
    exact: Option<VectorIndex>,
    /// The same with its graph, once that is built: a large shard is served before.
    with_graph: OnceLock<VectorIndex>,
    /// The index of words.
    pub words: WordIndex,
    /// MCP servers whose tools are not registered yet, by name.
    pub pending: Vec<PendingServer>,
    /// Tools removed since `pool_floor`, by revision.
    pub removed: Vec<RemovedTool>,
    /// The oldest revision that a delta of the summary pool can start from.
    pub pool_floor: Revision,
    memory_bytes: usize,
}

impl Snapshot {
    /// Indexes a catalog. `embeddings` are by hash of the summary; with one missing there is no dense
    /// index.
    ///
    /// # Errors
    /// [`Error::Internal`] when the index can't be built.
    pub fn build(
        catalog: StoredCatalog,
        embeddings: &HashMap<ContentHash, Vec<f32>>,
        dimensions: usize,
    ) -> Result<Self, Error> {
        let pending = pending_of(&catalog.servers);
        let records: HashMap<_, _> =
            catalog.servers.into_iter().map(|s| (s.record.name.clone(), s.record)).collect();
        let mut grouping = Grouping::default();
        let mut tools = Vec::with_capacity(catalog.tools.len());
        for stored in catalog.tools {
            tools.extend(parse(stored, &records, &mut grouping));
        }
        let vectors = match rows(&tools, embeddings, dimensions) {
            Some(rows) => {
                let exact = VectorIndex::build_exact(dimensions, rows, &IndexOptions::default());
                Some(exact.map_err(Error::internal)?)
            }
            None => None,
        };
        let texts: Vec<String> = tools.iter().map(words_of).collect();
        let words = WordIndex::build(texts.iter().map(String::as_str));
        let mut snapshot = Self {
            revision: catalog.revision,
            names: NameIndex::build(&tools),
            servers: by_server(&tools),
            groups: number(grouping, &tools),
            deferrable_tokens: tools.iter().map(deferrable_tokens).collect(),
            always_load: slots(&tools, |tool| !tool.deferrable),
            exact: vectors,
            with_graph: OnceLock::new(),
            words,
            pending,
            removed: catalog.removed,
            pool_floor: catalog.pool_floor,
            tools,
            memory_bytes: 0,
        };
        snapshot.memory_bytes = snapshot.measure();
        Ok(snapshot)
    }

    /// The tool at a slot of this snapshot.
    ///
    /// # Panics
    /// When the slot is of another snapshot.
    #[must_use]
    pub fn tool(&self, slot: u32) -> &Tool {
        &self.tools[slot as usize]
    }

    /// The dense index; `None` while the embeddings can't be had.
    #[must_use]
    pub fn vectors(&self) -> Option<&VectorIndex> {
        self.with_graph.get().or(self.exact.as_ref())
    }

    /// Whether the shard is large enough for a graph and has none yet.
    #[must_use]
    pub fn lacks_graph(&self) -> bool {
        self.vectors().is_some_and(VectorIndex::lacks_graph)
    }

    /// Builds the graph, for as long as that takes; searches go on meanwhile.
    pub fn build_graph(&self) {
        if let Some(exact) = self.exact.as_ref().filter(|_| self.lacks_graph()) {
            // A second builder's graph is as good as the first one's, and dropped.
            drop(self.with_graph.set(exact.with_graph()));
        }
    }

    /// Bytes that this holds, about.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    fn measure(&self) -> usize {
        let tools: usize = self.tools.iter().map(Tool::memory_bytes).sum();
        let vectors = self.exact.as_ref().map_or(0, VectorIndex::memory_bytes);
        let removed: usize = self.removed.iter().map(|r| r.model_name.len() + 32).sum();
        let slots = self.tools.len() * 4 * size_of::<u32>();
        tools + vectors + self.words.memory_bytes() + self.names.memory_bytes() + removed + slots
    }
}

/// A damaged tool is left out and logged: one bad row must not hide the rest of the catalog.
fn parse(
    stored: crate::store::StoredTool,
    servers: &HashMap<ServerName, ServerRecord>,
    grouping: &mut Grouping,
) -> Option<Tool> {
    let name = stored.record.model_name.clone();
    let server = servers.get(&stored.record.server)?;
    let group = grouping.group_of(server, &stored.record);
    match Tool::new(stored, server.is_built_in(), group) {
        Ok(tool) => Some(tool),
        Err(problem) => {
            error!(tool = name, problem = problem.problem, "stored definition is damaged");
            None
        }
    }
}

fn pending_of(servers: &[StoredServer]) -> Vec<PendingServer> {
    let pending = servers.iter().map(|server| &server.record).filter(|record| record.pending);
    let requirement = |record: &ServerRecord| Requirement {
        scopes: record.required_scopes.clone(),
        preconditions: record.precondition.iter().cloned().collect(),
    };
    pending
        .map(|record| PendingServer { name: record.name.clone(), requirement: requirement(record) })
        .collect()
}

fn number(mut grouping: Grouping, tools: &[Tool]) -> Vec<Group> {
    for (slot, tool) in (0u32..).zip(tools) {
        grouping.add(tool.group, slot, tool.schema_tokens, tool.summary_tokens);
    }
    grouping.finish()
}

fn rows(
    tools: &[Tool],
    embeddings: &HashMap<ContentHash, Vec<f32>>,
    dimensions: usize,
) -> Option<Vec<f32>> {
    let mut rows = Vec::with_capacity(tools.len() * dimensions);
    for tool in tools {
        rows.extend(embeddings.get(&text_hash(&tool.summary))?);
    }
    Some(rows)
}

fn deferrable_tokens(tool: &Tool) -> u32 {
    if tool.deferrable { tool.schema_tokens } else { 0 }
}

fn words_of(tool: &Tool) -> String {
    let (server, name) = (tool.id.server.as_str(), tool.id.name.as_str());
    format!("{server} {name} {} {}", tool.summary, tool.search_hint)
}

fn by_server(tools: &[Tool]) -> BTreeMap<ServerName, Vec<u32>> {
    let mut servers: BTreeMap<_, Vec<u32>> = BTreeMap::new();
    for (slot, tool) in (0u32..).zip(tools) {
        servers.entry(tool.id.server.clone()).or_default().push(slot);
    }
    servers
}

fn slots(tools: &[Tool], wanted: impl Fn(&Tool) -> bool) -> Vec<u32> {
    (0u32..).zip(tools).filter(|(_, tool)| wanted(tool)).map(|(slot, _)| slot).collect()
}
