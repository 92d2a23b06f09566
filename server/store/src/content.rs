//! All that is stored of one tenant, for moving it elsewhere and for looking through it, and its form as lines of
//! JSON: a line that begins a tenant, one for each thing of it, one that ends it and says how many there were.

use serde::{Deserialize, Serialize};

use super::text::{base64_text, hex};
use super::{
    ContentHash, Day, Exemplar, MemoryVersion, PastTool, PrincipalKey, RemovedTool, Revision,
    StoredCatalog, StoredEmbedding, StoredPolicy, StoredServer, StoredTool, UsageCount,
};
use toolgate_core::identity::{ServerName, ToolId, ToolName};
use toolgate_core::imprint::Imprint;

/// All that is stored of a tenant, but for the ids of requests, which are forgotten after a day anyway.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TenantContent {
    /// The catalog.
    pub catalog: StoredCatalog,
    /// Whether the policy hides tools from some callers.
    pub hides: bool,
    /// What changed up to this revision can't be told any more.
    pub changes_floor: Revision,
    /// The MCP servers that were removed since then.
    pub removed_servers: Vec<RemovedServer>,
    /// What is remembered of tools that were removed.
    pub past_tools: Vec<PastTool>,
    /// Embeddings by the fingerprint of their encoder.
    pub embeddings: Vec<(String, StoredEmbedding)>,
    /// The version of the memory, and of its last change that took exemplars away.
    pub memory: (MemoryVersion, MemoryVersion),
    /// What is remembered, each with the version of its last change.
    pub exemplars: Vec<(ToolId, Exemplar, MemoryVersion)>,
    /// The counters of usage.
    pub usage: Vec<UsageCount>,
    /// What could not be read, in words; what it was is missing above.
    pub damage: Vec<String>,
}

/// An MCP server that is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedServer {
    /// Its name.
    pub name: ServerName,
    /// The revision that removed it.
    pub revision: Revision,
}

/// One thing of a tenant, as a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// An MCP server.
    Server(StoredServer),
    /// A tool.
    Tool(StoredTool),
    /// A tool that is gone.
    RemovedTool(RemovedTool),
    /// An MCP server that is gone.
    RemovedServer(RemovedServer),
    /// What is remembered of a tool that was removed.
    PastTool(PastTool),
    /// The policy.
    Policy {
        /// As it is stored.
        #[serde(flatten)]
        policy: StoredPolicy,
        /// Whether it hides tools from some callers.
        hides: bool,
    },
    /// An embedding.
    Embedding {
        /// Of the encoder.
        fingerprint: String,
        /// Of the text.
        #[serde(with = "hex")]
        text_hash: ContentHash,
        /// Little-endian `f32`.
        #[serde(with = "base64_text")]
        vector: Vec<u8>,
    },
    /// Something remembered.
    Exemplar(KeptExemplar),
    /// A counter of usage.
    Usage(UsageCount),
}

/// What stands in the line that begins a tenant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// The catalog's revision.
    pub revision: Revision,
    /// The oldest revision that a delta of the summary pool can start from.
    pub pool_floor: Revision,
    /// What changed up to this revision can't be told any more.
    pub changes_floor: Revision,
    /// The memory's version.
    pub memory_version: MemoryVersion,
    /// The version of the last change that took exemplars away.
    pub memory_floor: MemoryVersion,
}

/// An exemplar, as a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptExemplar {
    server: ServerName,
    tool: ToolName,
    place: u8,
    #[serde(with = "hex")]
    encoder: [u8; 8],
    #[serde(with = "base64_text")]
    imprint: Vec<u8>,
    strength: f32,
    seen_ms: i64,
    fades_ms: i64,
    #[serde(with = "hex")]
    owner: PrincipalKey,
    made: Day,
    #[serde(with = "base64_text")]
    voters: Vec<u8>,
    version: MemoryVersion,
}

impl TenantContent {
    /// What begins it.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            revision: self.catalog.revision,
            pool_floor: self.catalog.pool_floor,
            changes_floor: self.changes_floor,
            memory_version: self.memory.0,
            memory_floor: self.memory.1,
        }
    }

    /// Nothing yet but what begins it.
    #[must_use]
    pub fn begun(counters: Counters) -> Self {
        let Counters { revision, pool_floor, changes_floor, memory_version, memory_floor } =
            counters;
        Self {
            catalog: StoredCatalog { revision, pool_floor, ..StoredCatalog::default() },
            changes_floor,
            memory: (memory_version, memory_floor),
            ..Self::default()
        }
    }

    /// Its parts, in an order in which they can be taken in again.
    pub fn into_parts(self) -> impl Iterator<Item = Part> {
        let hides = self.hides;
        let StoredCatalog { servers, tools, quarantined, removed, policy, .. } = self.catalog;
        let embedding = |(fingerprint, StoredEmbedding { text_hash, vector })| {
            let vector = to_bytes(&vector);
            Part::Embedding { fingerprint, text_hash, vector }
        };
        let servers = servers.into_iter().map(Part::Server);
        servers
            .chain(tools.into_iter().chain(quarantined).map(Part::Tool))
            .chain(removed.into_iter().map(Part::RemovedTool))
            .chain(self.removed_servers.into_iter().map(Part::RemovedServer))
            .chain(self.past_tools.into_iter().map(Part::PastTool))
            .chain(policy.into_iter().map(move |policy| Part::Policy { policy, hides }))
            .chain(self.embeddings.into_iter().map(embedding))
            .chain(self.exemplars.into_iter().map(|kept| Part::Exemplar(kept.into())))
            .chain(self.usage.into_iter().map(Part::Usage))
    }

    /// Takes in a part; what is wrong with it, in words.
    ///
    /// # Errors
    /// A part that nothing stored would have.
    pub fn take(&mut self, part: Part) -> Result<(), &'static str> {
        let catalog = &mut self.catalog;
        match part {
            Part::Server(server) => catalog.servers.push(server),
            Part::Tool(tool) if tool.record.status.is_shown() => catalog.tools.push(tool),
            Part::Tool(tool) => catalog.quarantined.push(tool),
            Part::RemovedTool(removed) => catalog.removed.push(removed),
            Part::RemovedServer(removed) => self.removed_servers.push(removed),
            Part::PastTool(tool) => self.past_tools.push(tool),
            Part::Policy { policy, hides } => {
                (catalog.policy, self.hides) = (Some(policy), hides);
            }
            Part::Embedding { fingerprint, text_hash, vector } => {
                let vector = from_bytes(&vector).ok_or("an embedding is cut short")?;
                self.embeddings.push((fingerprint, StoredEmbedding { text_hash, vector }));
            }
            Part::Exemplar(kept) => {
                self.exemplars.push(kept.read().ok_or("an exemplar is no exemplar")?);
            }
            Part::Usage(count) => self.usage.push(count),
        }
        Ok(())
    }
}

impl From<(ToolId, Exemplar, MemoryVersion)> for KeptExemplar {
    fn from((tool, exemplar, version): (ToolId, Exemplar, MemoryVersion)) -> Self {
        Self {
            server: tool.server,
            tool: tool.name,
            place: exemplar.place,
            encoder: exemplar.imprint.encoder(),
            imprint: exemplar.imprint.bytes().collect(),
            strength: exemplar.strength,
            seen_ms: exemplar.seen_ms,
            fades_ms: exemplar.fades_ms,
            owner: exemplar.owner,
            made: exemplar.made,
            voters: exemplar.voters.concat(),
            version,
        }
    }
}

impl KeptExemplar {
    fn read(self) -> Option<(ToolId, Exemplar, MemoryVersion)> {
        let (voters, rest) = self.voters.as_chunks();
        let exemplar = Exemplar {
            place: self.place,
            imprint: Imprint::read(self.encoder, &self.imprint)?,
            strength: self.strength,
            seen_ms: self.seen_ms,
            fades_ms: self.fades_ms,
            owner: self.owner,
            made: self.made,
            voters: voters.to_vec(),
        };
        let tool = ToolId { server: self.server, name: self.tool };
        rest.is_empty().then_some((tool, exemplar, self.version))
    }
}

/// An embedding as bytes: `f32`, little-endian.
pub(super) fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// An embedding from its bytes; `None` of what is none.
pub(super) fn from_bytes(bytes: &[u8]) -> Option<Vec<f32>> {
    let (values, rest) = bytes.as_chunks::<4>();
    let is_whole = !values.is_empty() && rest.is_empty();
    is_whole.then(|| values.iter().map(|value| f32::from_le_bytes(*value)).collect())
}
