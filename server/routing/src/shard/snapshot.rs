//! Snapshot of one tenant's catalog at one revision, parsed and indexed. It is immutable and shared by readers. A
//! change makes a new one.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use fixedbitset::FixedBitSet;

use super::dense::{Dense, Footing, Nearer};
use super::fields;
use super::names::NameIndex;
use super::noise::Noise;
use super::pending::PendingServer;
use super::quarantine::Quarantine;
use super::requirements::Requirements;
use super::ruled::RuledCatalog;
use super::tool::Tool;
use super::{IndexOptions, VectorIndex, WordIndex};
use crate::catalog::plan::text_hash;
use crate::packs::{Attached, Mixed};
use toolgate_core::error::Error;
use toolgate_core::identity::ServerName;
use toolgate_core::policy::Policy;
use toolgate_store::{ContentHash, RemovedTool, Revision, StoredCatalog, StoredPolicy};

/// Shard of a tenant at one revision.
#[derive(Debug)]
pub struct Snapshot {
    /// Catalog revision.
    pub revision: Revision,
    /// Tools by slot, in the order of the summary pool.
    pub tools: Vec<Tool>,
    /// Index of tools by name.
    pub names: NameIndex,
    /// Slots of each MCP server, ascending.
    pub servers: BTreeMap<ServerName, Vec<u32>>,
    /// Requirements of the tools on the agent's state.
    pub requirements: Requirements,
    /// Policy of the same revision.
    pub policy: Arc<Policy>,
    /// Revision of the policy's last change, or `None` if none was ever set.
    pub policy_revision: Option<Revision>,
    /// Tokens saved by deferring each tool, by slot: those of its definition, or 0 if it is never deferred.
    pub deferrable_tokens: Box<[u32]>,
    /// Slots of the tools that are never deferred. The agent's own come first, then those of MCP servers, untrusted
    /// ones last.
    pub always_load: Vec<u32>,
    /// Slots of the tools that the policy pins.
    pub pinned: Vec<u32>,
    /// Dense index without a graph, or `None` while embeddings are missing.
    exact: Option<VectorIndex>,
    /// Footing of the index's rows.
    footing: Footing,
    /// Dense index with its graph, once it is built. A large shard is served before that.
    with_graph: OnceLock<VectorIndex>,
    noise: OnceLock<Noise>,
    /// Word index.
    pub words: WordIndex,
    /// MCP servers whose tools are not registered yet, by name.
    pub pending: Vec<PendingServer>,
    /// Slots of the tools of untrusted MCP servers.
    pub untrusted: FixedBitSet,
    /// Tools that wait for approval.
    pub quarantine: Quarantine,
    /// Tools removed since `pool_floor`, by revision.
    pub removed: Vec<RemovedTool>,
    /// Oldest revision from which a delta of the summary pool can start.
    pub pool_floor: Revision,
    /// Instant at which it was read from the store, or `None` if it comes from a copy.
    pub read_at: Option<Instant>,
    memory_bytes: usize,
}

/// Data about tools beyond their definitions.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// Embeddings of summaries, by the hash of the summary.
    pub embeddings: &'a HashMap<ContentHash, Vec<f32>>,
    /// Requests from packs.
    pub packs: &'a Attached,
}

impl Snapshot {
    /// Indexes a catalog under its policy. `embeddings` are by hash of the summary. If one is missing, there is no
    /// dense index.
    ///
    /// # Errors
    /// [`Error::Internal`] if the index can't be built. [`Error::StoreDamaged`] if the policy can't be read, because
    /// the permissions are unknown then.
    pub fn build(
        catalog: StoredCatalog,
        embeddings: &HashMap<ContentHash, Vec<f32>>,
        dimensions: usize,
    ) -> Result<Self, Error> {
        Self::build_with(catalog, Known { embeddings, packs: &Attached::default() }, dimensions)
    }

    /// Indexes a catalog like [`Snapshot::build`], with the requests of packs.
    ///
    /// # Errors
    /// Same errors as [`Snapshot::build`].
    pub fn build_with(
        catalog: StoredCatalog,
        known: Known<'_>,
        dimensions: usize,
    ) -> Result<Self, Error> {
        let policy = policy_of(catalog.policy.as_ref())?;
        Self::build_under(policy, catalog, known, dimensions, &IndexOptions::default())
    }

    /// Indexes a catalog like [`Snapshot::build_with`], with its policy already parsed.
    ///
    /// # Errors
    /// Same errors as [`Snapshot::build`].
    pub fn build_under(
        policy: Arc<Policy>,
        catalog: StoredCatalog,
        known: Known<'_>,
        dimensions: usize,
        options: &IndexOptions,
    ) -> Result<Self, Error> {
        let packs = known.packs;
        let policy_revision = catalog.policy.as_ref().map(|stored| stored.revision);
        let pending = PendingServer::all(&catalog.servers, &policy);
        let RuledCatalog { tools, requirements, pinned, quarantine, .. } =
            RuledCatalog::beside(catalog.servers, catalog.tools, catalog.quarantined, &policy);
        let mut footing = Footing::default();
        let vectors = match rows(&tools, known, dimensions) {
            Some(Rows { rows, mixed, nearer }) => {
                footing = Footing::new(mixed, nearer);
                let exact = VectorIndex::build_exact(dimensions, rows, options);
                Some(exact.map_err(Error::internal)?)
            }
            None => None,
        };
        let words =
            WordIndex::build(tools.iter().map(|tool| fields::of(tool, packs.lines(&tool.id))));
        let mut snapshot = Self {
            revision: catalog.revision,
            names: NameIndex::build(&tools),
            servers: by_server(&tools),
            requirements,
            policy,
            policy_revision,
            pinned,
            deferrable_tokens: tools.iter().map(deferrable_tokens).collect(),
            always_load: always_loaded(&tools),
            exact: vectors,
            footing,
            with_graph: OnceLock::new(),
            noise: OnceLock::new(),
            words,
            pending,
            untrusted: untrusted(&tools),
            quarantine,
            removed: catalog.removed,
            pool_floor: catalog.pool_floor,
            tools,
            read_at: None,
            memory_bytes: 0,
        };
        snapshot.memory_bytes = snapshot.measure();
        Ok(snapshot)
    }

    /// Returns the snapshot with the instant at which it was read from the store.
    #[must_use]
    pub fn read_at(self, read_at: Option<Instant>) -> Self {
        Self { read_at, ..self }
    }

    /// Returns the tool at a slot of this snapshot.
    ///
    /// # Panics
    /// Panics if the slot is of another snapshot and too large for this one.
    #[must_use]
    pub fn tool(&self, slot: u32) -> &Tool {
        &self.tools[slot as usize]
    }

    /// Returns the noise level of the tools for `background`, which is measured once. `None` without a dense index or a
    /// background. Every call in a process must pass the same background.
    #[must_use]
    pub fn noise(&self, background: &[Vec<f32>]) -> Option<&Noise> {
        let index = self.vectors().filter(|_| !background.is_empty())?;
        Some(self.noise.get_or_init(|| {
            // Tools of untrusted servers must not move the level for the other tools.
            let mut others = self.untrusted.clone();
            others.toggle_range(..);
            let among = (!others.is_clear()).then_some(&others);
            Noise::measure(&index, background, among)
        }))
    }

    /// Returns the dense index, or `None` while embeddings are missing.
    #[must_use]
    pub fn vectors(&self) -> Option<Dense<'_>> {
        let index = self.with_graph.get().or(self.exact.as_ref())?;
        Some(Dense::new(index, &self.footing))
    }

    /// Returns true if the shard is large enough for a graph but has none yet.
    #[must_use]
    pub fn lacks_graph(&self) -> bool {
        self.vectors().is_some_and(|dense| dense.index().lacks_graph())
    }

    /// Builds the graph and blocks until it is done. Searches go on meanwhile.
    pub fn build_graph(&self) {
        if let Some(exact) = self.exact.as_ref().filter(|_| self.lacks_graph()) {
            // If two threads build it, the second graph is just as good and is dropped.
            drop(self.with_graph.set(exact.with_graph()));
        }
    }

    /// Returns the approximate bytes of this snapshot.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    fn measure(&self) -> usize {
        let tools: usize = self.tools.iter().map(Tool::memory_bytes).sum();
        let vectors = self.exact.as_ref().map_or(0, VectorIndex::memory_bytes);
        let removed: usize = self.removed.iter().map(|r| r.model_name.len() + 32).sum();
        let pending = self.pending.len() * size_of::<PendingServer>() * 2;
        let slots = self.tools.len() * 4 * size_of::<u32>();
        let indexes = vectors
            + self.footing.memory_bytes()
            + self.words.memory_bytes()
            + self.names.memory_bytes();
        let aside = self.quarantine.memory_bytes() + self.requirements.memory_bytes();
        tools + indexes + removed + pending + slots + aside
    }
}

/// Parses the stored policy. Returns an empty policy if none was ever set.
///
/// # Errors
/// [`Error::StoreDamaged`] if it can't be read, although it was checked when it was set.
pub fn policy_of(stored: Option<&StoredPolicy>) -> Result<Arc<Policy>, Error> {
    let Some(stored) = stored else { return Ok(Arc::default()) };
    let policy = Policy::parse(&stored.document).map_err(|mistakes| {
        let first = mistakes.first().map(ToString::to_string).unwrap_or_default();
        Error::StoreDamaged(format!("the stored policy can't be read: {first}").into())
    })?;
    Ok(Arc::new(policy))
}

/// Rows of the dense index.
struct Rows {
    /// Values of all rows, in order of slot.
    rows: Vec<f32>,
    /// Records of the rows mixed with packs' requests, by slot.
    mixed: HashMap<u32, Mixed>,
    /// Mean amounts by which they are nearer to everyday requests than their summaries, or `None` if these are unknown.
    nearer: Option<Nearer>,
}

fn rows(tools: &[Tool], known: Known<'_>, dimensions: usize) -> Option<Rows> {
    let Known { embeddings, packs } = known;
    let mut rows = Vec::with_capacity(tools.len() * dimensions);
    let mut mixed = HashMap::new();
    let mut nearer = Nearer { rows: 0.0, kinds: 0.0, spread: 0.0 };
    let mut measured = 0_u32;
    for (slot, tool) in (0u32..).zip(tools) {
        let summary = embeddings.get(&text_hash(&tool.summary))?;
        let (row, mix) = packs.row(&tool.id, summary);
        rows.extend(row.iter());
        if let Some(mix) = mix {
            // Tools of untrusted servers must not move the amount for other tools.
            if !tool.untrusted {
                let own = packs.nearness(summary);
                nearer.rows += packs.nearness(&row) - own;
                nearer.kinds += mix.nearness(own) - own;
                measured += 1;
            }
            mixed.insert(slot, mix);
        }
    }
    let everyday = packs.everyday().filter(|_| measured > 0);
    let mean = |sum: f32| sum / measured as f32;
    let nearer = everyday.map(|everyday| Nearer {
        rows: mean(nearer.rows),
        kinds: mean(nearer.kinds),
        // Embeddings have unit length.
        spread: 1.0 - everyday.iter().map(|value| value * value).sum::<f32>(),
    });
    Some(Rows { rows, mixed, nearer })
}

fn deferrable_tokens(tool: &Tool) -> u32 {
    if tool.deferrable { tool.schema_tokens } else { 0 }
}

fn always_loaded(tools: &[Tool]) -> Vec<u32> {
    let mut always = slots(tools, |tool| !tool.deferrable);
    always.sort_by_key(|slot| {
        let tool = &tools[*slot as usize];
        (!tool.built_in, tool.untrusted)
    });
    always
}

fn untrusted(tools: &[Tool]) -> FixedBitSet {
    let mut untrusted = FixedBitSet::with_capacity(tools.len());
    untrusted.extend(slots(tools, |tool| tool.untrusted).into_iter().map(|slot| slot as usize));
    untrusted
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
