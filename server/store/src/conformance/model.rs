//! Model of one tenant's stored content in plain maps. The property test compares a backend with it.

use std::collections::{BTreeMap, HashSet};

use super::*;
use crate::{Committed, RecordedRequest, StoredServer, StoredTool};

#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    pub(super) revision: Option<Revision>,
    pub(super) servers: BTreeMap<String, StoredServer>,
    pub(super) tools: BTreeMap<(String, String), StoredTool>,
    pub(super) removed: BTreeMap<String, Revision>,
    pub(super) embeddings: BTreeMap<(String, ContentHash), Vec<f32>>,
    pub(super) requests: BTreeMap<String, RecordedRequest>,
    /// MCP servers that were added, changed or removed at each revision.
    pub(super) touched: Vec<(Revision, String)>,
    /// Summary pool at each revision: summary by model-facing name.
    pub(super) pools: Vec<(Revision, BTreeMap<String, String>)>,
}

impl Model {
    /// Returns the model after `change`. `now` is the store's time.
    pub(super) fn commit(&self, change: &ServerChange, now: i64) -> Result<Self, StoreError> {
        let server = change.server.name.as_str();
        if let Some(request) = &change.request {
            self.check_request(request)?;
            if self.requests.contains_key(&request.id) {
                return Err(StoreError::Conflict);
            }
        }
        if self.servers.get(server).map(|stored| stored.revision) != change.base {
            return Err(StoreError::Conflict);
        }
        let mut next = self.at_next_revision();
        next.touch(server);
        let names = change.upserts.iter().map(|tool| tool.name.as_str());
        let names: HashSet<_> = names.chain(change.removals.iter().map(ToolName::as_str)).collect();
        next.tools.retain(|(owner, name), _| owner != server || !names.contains(name.as_str()));
        let actual = (next.tools.len() + change.upserts.len()) as u64;
        if actual > change.max_tools {
            return Err(StoreError::TooManyTools { actual });
        }
        let actual = (next.servers.len() + usize::from(change.base.is_none())) as u64;
        if actual > change.max_servers {
            return Err(StoreError::TooManyServers { actual });
        }
        next.check_names(&change.upserts)?;
        for tool in &change.upserts {
            next.put_tool(self, tool);
        }
        next.put_server(change, now);
        next.tidy(self);
        next.save(&change.fingerprint, &change.embeddings);
        if let Some(request) = &change.request {
            next.record(request, now);
        }
        Ok(next)
    }

    /// Returns the model without the server.
    pub(super) fn remove(&self, server: &str, base: Revision) -> Result<Self, StoreError> {
        if self.servers.get(server).map(|stored| stored.revision) != Some(base) {
            return Err(StoreError::Conflict);
        }
        let mut next = self.at_next_revision();
        next.touch(server);
        next.servers.remove(server);
        next.tools.retain(|(owner, _), _| owner != server);
        next.tidy(self);
        Ok(next)
    }

    pub(super) fn save(&mut self, fingerprint: &str, embeddings: &[StoredEmbedding]) {
        for e in embeddings {
            let key = (fingerprint.to_owned(), e.text_hash);
            self.embeddings.entry(key).or_insert_with(|| e.vector.clone());
        }
    }

    /// Saves embeddings that were made after a read of the catalog, and drops those that are no tool's summary any
    /// more.
    pub(super) fn save_used(&mut self, fingerprint: &str, embeddings: &[StoredEmbedding]) {
        self.save(fingerprint, embeddings);
        let summaries = self.tools.values().map(|tool| hash_of(&tool.record.summary));
        let said: HashSet<_> = summaries.collect();
        self.embeddings.retain(|(_, hash), _| said.contains(hash));
    }

    pub(super) fn check_request(&self, request: &PendingRequest) -> Result<(), StoreError> {
        match self.requests.get(&request.id) {
            Some(known) if known.body_hash != request.body_hash => Err(StoreError::RequestIdReused),
            _ => Ok(()),
        }
    }

    pub(super) fn record(&mut self, request: &PendingRequest, now: i64) {
        let PendingRequest { id, body_hash, answer } = request.clone();
        let committed = Committed { revision: self.revision.unwrap_or(0), updated_ms: now };
        let recorded = RecordedRequest { id: id.clone(), body_hash, answer, committed };
        self.requests.entry(id).or_insert(recorded);
    }

    fn at_next_revision(&self) -> Self {
        Self { revision: Some(self.revision.unwrap_or(0) + 1), ..self.clone() }
    }

    fn touch(&mut self, server: &str) {
        self.touched.push((self.revision.expect("a commit has a revision"), server.to_owned()));
    }

    fn check_names(&self, upserts: &[ToolRecord]) -> Result<(), StoreError> {
        let mut names = HashSet::new();
        let mut model_names = HashSet::new();
        for tool in upserts {
            if !names.insert(&tool.name) || !model_names.insert(&tool.model_name) {
                return Err(StoreError::NameTaken(tool.model_name.clone()));
            }
        }
        let stored = self.tools.values().map(|tool| &tool.record.model_name);
        match stored.filter(|name| model_names.contains(name)).min() {
            Some(taken) => Err(StoreError::NameTaken(taken.clone())),
            None => Ok(()),
        }
    }

    fn put_tool(&mut self, before: &Self, record: &ToolRecord) {
        let key = (record.server.as_str().to_owned(), record.name.as_str().to_owned());
        let same = |old: &&StoredTool| {
            old.record.model_name == record.model_name
                && old.record.summary == record.summary
                && old.record.status.is_shown() == record.status.is_shown()
        };
        let kept = before.tools.get(&key).filter(same).map(|old| old.summary_revision);
        let summary_revision = kept.or(self.revision).expect("a commit has a revision");
        self.tools.insert(key, StoredTool { record: record.clone(), summary_revision });
    }

    fn put_server(&mut self, change: &ServerChange, updated_ms: i64) {
        let name = change.server.name.as_str();
        let count = self.tools.keys().filter(|(owner, _)| owner == name).count();
        let stored = StoredServer {
            record: change.server.clone(),
            revision: self.revision.expect("a commit has a revision"),
            updated_ms,
            tool_count: u32::try_from(count).expect("few tools"),
        };
        self.servers.insert(name.to_owned(), stored);
    }

    /// Records the names removed since `before`, and the current pool.
    fn tidy(&mut self, before: &Self) {
        let revision = self.revision.expect("a commit has a revision");
        let pool = |model: &Self| -> BTreeMap<String, String> {
            let shown = model.tools.values().map(|tool| &tool.record);
            let shown = shown.filter(|tool| tool.status.is_shown());
            shown.map(|tool| (tool.model_name.clone(), tool.summary.clone())).collect()
        };
        let old = pool(before);
        let new = pool(self);
        for name in old.keys().filter(|name| !new.contains_key(*name)) {
            self.removed.insert(name.clone(), revision);
        }
        self.removed.retain(|name, _| !new.contains_key(name));
        // An embedding is dropped with the last tool that has its text, quarantined or not.
        let texts = |model: &Self| -> HashSet<_> {
            model.tools.values().map(|tool| hash_of(&tool.record.summary)).collect()
        };
        let said = texts(self);
        let unsaid = texts(before);
        self.embeddings.retain(|(_, hash), _| said.contains(hash) || !unsaid.contains(hash));
        self.pools.push((revision, new));
    }
}
