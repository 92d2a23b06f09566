//! Everything stored for one tenant, for moving it to another store and for checking it. Its text form is lines of
//! JSON: a line that begins the tenant, one line for each part, and a line that ends the tenant with the number of
//! parts.

use serde::{Deserialize, Serialize};

use super::text::{base64_text, hex};
use super::{
    ContentHash, Day, Exemplar, MemoryVersion, PastTool, PrincipalKey, RemovedTool, Revision,
    StoredCatalog, StoredEmbedding, StoredPolicy, StoredServer, StoredTool, UsageCount,
};
use toolgate_core::identity::{ServerName, ToolId, ToolName};
use toolgate_core::quantized_embedding::QuantizedEmbedding;

/// Everything stored for a tenant, except request ids, which expire after a day anyway.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TenantContent {
    /// Catalog of the tenant.
    pub catalog: StoredCatalog,
    /// True if the policy hides tools from some callers.
    pub hides: bool,
    /// Revision up to which changes can't be listed any more.
    pub changes_floor: Revision,
    /// MCP servers that were removed after `changes_floor`.
    pub removed_servers: Vec<RemovedServer>,
    /// Records of removed tools.
    pub past_tools: Vec<PastTool>,
    /// Embeddings, each with the fingerprint of its encoder.
    pub embeddings: Vec<(String, StoredEmbedding)>,
    /// Version of the memory, and version of its last change that removed exemplars.
    pub memory: (MemoryVersion, MemoryVersion),
    /// Exemplars, each with the version of its last change.
    pub exemplars: Vec<(ToolId, Exemplar, MemoryVersion)>,
    /// Usage counters.
    pub usage: Vec<UsageCount>,
    /// Descriptions of content that could not be read. That content is missing from the other fields.
    pub damage: Vec<String>,
}

/// Removed MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedServer {
    /// Name of the server.
    pub name: ServerName,
    /// Catalog revision that removed the server.
    pub revision: Revision,
}

/// Part of a tenant's content, written as one line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// MCP server of the catalog.
    Server(StoredServer),
    /// Shown or quarantined tool of the catalog.
    Tool(StoredTool),
    /// Removed tool, for deltas of the summary pool.
    RemovedTool(RemovedTool),
    /// Removed MCP server, for lists of changes.
    RemovedServer(RemovedServer),
    /// Record of a removed tool.
    PastTool(PastTool),
    /// Policy of the tenant.
    Policy {
        /// Policy as stored.
        #[serde(flatten)]
        policy: StoredPolicy,
        /// True if the policy hides tools from some callers.
        hides: bool,
    },
    /// Embedding of one text by one encoder.
    Embedding {
        /// Fingerprint of the encoder.
        fingerprint: String,
        /// SHA-256 of the text.
        #[serde(with = "hex")]
        text_hash: ContentHash,
        /// Embedding as little-endian `f32` values.
        #[serde(with = "base64_text")]
        vector: Vec<u8>,
    },
    /// Exemplar of the memory.
    Exemplar(KeptExemplar),
    /// Usage counter.
    Usage(UsageCount),
}

/// Numbers in the line that begins a tenant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Catalog revision.
    pub revision: Revision,
    /// Oldest revision that a delta of the summary pool can start from.
    pub pool_floor: Revision,
    /// Revision up to which changes can't be listed any more.
    pub changes_floor: Revision,
    /// Version of the memory.
    pub memory_version: MemoryVersion,
    /// Version of the memory's last change that removed exemplars.
    pub memory_floor: MemoryVersion,
}

/// Exemplar in its form as a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptExemplar {
    server: ServerName,
    tool: ToolName,
    place: u8,
    #[serde(with = "hex")]
    encoder: [u8; 8],
    #[serde(with = "base64_text", rename = "imprint")]
    intent_embedding: Vec<u8>,
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
    /// Returns the numbers for the line that begins the tenant.
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

    /// Creates content that holds only the numbers of the line that begins the tenant.
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

    /// Returns the parts in an order in which [`TenantContent::take`] accepts them.
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

    /// Adds a part.
    ///
    /// # Errors
    /// A description of the problem if no stored content could have this part.
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
            encoder: exemplar.intent_embedding.encoder(),
            intent_embedding: exemplar.intent_embedding.bytes().collect(),
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
            intent_embedding: QuantizedEmbedding::read(self.encoder, &self.intent_embedding)?,
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

/// Encodes an embedding as little-endian `f32` values.
pub(super) fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Decodes an embedding from its bytes; `None` if the length is 0 or not a multiple of 4 bytes.
pub(super) fn from_bytes(bytes: &[u8]) -> Option<Vec<f32>> {
    let (values, rest) = bytes.as_chunks::<4>();
    let is_whole = !values.is_empty() && rest.is_empty();
    is_whole.then(|| values.iter().map(|value| f32::from_le_bytes(*value)).collect())
}
