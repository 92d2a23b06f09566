//! Upsert of one MCP server: check, compare and embed new summaries, then commit everything or nothing.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use tracing::warn;

use super::Catalog;
use super::check::{Rejection, ToolCheck, ToolSettings, Work};
use super::outcome::Outcome;
use super::plan::{Checked, Mode, Plan, text_hash};
use super::share::Behind;
use super::tools_list::ToolsList;
use super::vetting::{Body, Vetted, VettedBody, tier_of_unnamed};
use crate::encoder::flow_of_passages;
use toolgate_core::error::{Error, FieldViolation};
use toolgate_core::identity::TenantId;
use toolgate_core::mcp_server::TrustTier;
use toolgate_core::safety::Tier;
use toolgate_store::{
    Committed, ContentHash, PendingRequest, Revision, ServerChange, ServerRecord, StoreError,
    StoredEmbedding, StoredServer, StoredTool,
};

/// Maximum attempts at a commit while other callers change the same server, or similar tools of other servers.
const TRIES: usize = 8;

/// Maximum texts in one call to the encoder. Several workers of the encoder embed them in parallel.
const EMBED_CHUNK: usize = 512;

/// Request to upsert one MCP server.
#[derive(Debug, Clone)]
pub struct Registration {
    /// New record of the server.
    pub server: ServerRecord,
    /// Body of the server's `tools/list`. Ignored if the server is only announced.
    pub body: Arc<[u8]>,
    /// Settings of tools by MCP name.
    pub settings: HashMap<String, ToolSettings>,
    /// Treatment of stored tools that the body does not name.
    pub mode: Mode,
    /// Etag that the stored server must have. Empty skips the check.
    pub etag: String,
    /// Request id given by the caller, and SHA-256 of the request's content.
    pub request: Option<(String, ContentHash)>,
    /// True if nothing is stored when any tool is rejected.
    pub all_or_nothing: bool,
}

/// Result of a registration.
#[derive(Debug, Clone)]
pub struct Registered {
    /// Server as stored.
    pub server: StoredServer,
    /// Catalog revision that holds the change.
    pub revision: Revision,
    /// Outcomes: one for each tool of the body, then one for each removed tool.
    pub outcomes: Vec<Outcome>,
    /// True if this is the recorded answer of an earlier call with the same request id.
    pub replayed: bool,
}

/// Registration with its tenant.
#[derive(Clone, Copy)]
struct TenantRegistration<'a> {
    tenant: &'a TenantId,
    registration: &'a Registration,
}

type Stored = Option<(StoredServer, Vec<StoredTool>)>;

/// Input of the comparison from which a plan is made.
struct Compared {
    server: ServerRecord,
    body: Body,
    vetted: Vec<Vetted>,
    stored: Stored,
    mode: Mode,
}

impl Catalog {
    /// Upserts one MCP server.
    ///
    /// # Errors
    /// A malformed body, an exceeded limit, a stale etag, a reused request id, [`Error::Contended`] after conflicts
    /// with other registrations, or an encoder or store that can't be reached. Nothing is stored then.
    pub async fn register(
        &self,
        tenant: &TenantId,
        mut registration: Registration,
        deadline: Option<Instant>,
    ) -> Result<Registered, Error> {
        let tier_of = |stored: Option<&(StoredServer, Vec<StoredTool>)>| {
            let stored = stored.map(|(server, _)| server.record.trust_tier);
            tier_of_unnamed(stored, self.vetting.as_ref())
        };
        let names_no_tier = registration.server.trust_tier == TrustTier::Unspecified;
        if names_no_tier {
            let stored = self.store.read_server(tenant, &registration.server.name).await?;
            registration.server.trust_tier = tier_of(stored.as_ref());
        }
        let registration = Arc::new(registration);
        let mut checked: Option<Body> = None;
        let mut embedded = HashMap::new();
        for attempt in 1..=TRIES {
            // Each attempt looks again, because the same request may have been answered in the meantime.
            if let Some(answer) = self.recorded(tenant, &registration).await? {
                return Ok(answer);
            }
            let body = match checked.take() {
                Some(body) => body,
                None => self.check(tenant, Arc::clone(&registration), deadline).await?,
            };
            refuse_rejections(&registration, &body.checked)?;
            let stored = self.store.read_server(tenant, &registration.server.name).await?;
            check_etag(&registration.etag, &stored)?;
            // The tools were checked under this tier.
            if names_no_tier && tier_of(stored.as_ref()) != registration.server.trust_tier {
                return Err(contended(attempt));
            }
            let server = server_after(&registration.server, stored.as_ref());
            let judged = self.vet(tenant, &registration, &body, stored.as_ref()).await?;
            let VettedBody { tools: vetted, comparison } = judged;
            let mode = registration.mode;
            let compared = Compared { server, body, vetted, stored, mode };
            let (mut plan, compared) = self.plan(tenant, compared).await?;
            plan.comparison = comparison;
            let Compared { server, mut body, mut vetted, stored, .. } = compared;
            let written = plan.upserts.iter().map(|tool| tool.name.clone()).collect();
            self.embed(tenant, &plan.new_summaries, &mut embedded, deadline).await?;
            for (place, finding) in self.near_everything(&body.checked, &embedded) {
                plan.outcomes[place].add(&finding);
                vetted[place].findings.push(finding);
            }
            let asked = TenantRegistration { tenant, registration: &registration };
            match self.commit(asked, server, plan, stored, &embedded).await {
                Err(CommitError::Conflict) => {}
                Err(CommitError::NameTaken(name)) => reject_taken(&mut body.checked, &name),
                Err(CommitError::Failed(error)) => return Err(error),
                Ok(registered) => {
                    self.report(tenant, &registered.server, &written, (&body.checked, &vetted));
                    return Ok(registered);
                }
            }
            checked = Some(body);
        }
        Err(contended(TRIES))
    }

    async fn recorded(
        &self,
        tenant: &TenantId,
        registration: &Registration,
    ) -> Result<Option<Registered>, Error> {
        let Some((id, body_hash)) = &registration.request else { return Ok(None) };
        let Some(recorded) = self.store.find_request(tenant, id).await? else { return Ok(None) };
        if recorded.body_hash != *body_hash {
            return Err(Error::RequestIdReused(id.clone()));
        }
        let outcomes: Vec<Outcome> =
            serde_json::from_slice(&recorded.answer).map_err(Error::internal)?;
        let server = self.stored_server(tenant, &registration.server, &recorded.committed).await?;
        let revision = recorded.committed.revision;
        Ok(Some(Registered { server, revision, outcomes, replayed: true }))
    }

    /// Returns the stored server, or the server as requested if it has been removed since.
    async fn stored_server(
        &self,
        tenant: &TenantId,
        asked: &ServerRecord,
        committed: &Committed,
    ) -> Result<StoredServer, Error> {
        let stored = self.store.read_server(tenant, &asked.name).await?;
        Ok(stored.map_or_else(
            || StoredServer {
                record: asked.clone(),
                revision: committed.revision,
                updated_ms: committed.updated_ms,
                tool_count: 0,
            },
            |(server, _)| server,
        ))
    }

    /// Checks the body outside the async threads: parsing and compiling thousands of schemas keeps a core busy.
    async fn check(
        &self,
        tenant: &TenantId,
        registration: Arc<Registration>,
        deadline: Option<Instant>,
    ) -> Result<Body, Error> {
        let limits = self.limits.now();
        let vetting = self.vetting.clone();
        let check = move || {
            let checked = check_body(&registration, &limits, deadline)?;
            let texts = vetting.map(|vetting| vetting.texts(&registration.server, &checked));
            Ok(Body { checked, texts: texts.unwrap_or_default() })
        };
        self.share.run(tenant, Behind::Embedding, check).await?
    }

    /// Makes the plan outside the async threads: parsing and hashing thousands of tools keeps a core busy.
    async fn plan(&self, tenant: &TenantId, compared: Compared) -> Result<(Plan, Compared), Error> {
        let compare = move || {
            let Compared { server, body, vetted, stored, mode } = &compared;
            let plan = Plan::new(server, (&body.checked, vetted), stored.as_ref(), *mode);
            (plan, compared)
        };
        self.share.run(tenant, Behind::Embedding, compare).await
    }

    /// Embeds summaries that have no embedding yet. If the encoder can't be reached, the registration goes on. The
    /// shard embeds the missing summaries when it is loaded, and until then tools are found by words alone.
    async fn embed(
        &self,
        tenant: &TenantId,
        summaries: &[String],
        embedded: &mut HashMap<ContentHash, Vec<f32>>,
        deadline: Option<Instant>,
    ) -> Result<(), Error> {
        let mut seen = HashSet::new();
        let missing: Vec<&String> = summaries
            .iter()
            .filter(|text| !embedded.contains_key(&text_hash(text)) && seen.insert(text.as_str()))
            .collect();
        for chunk in missing.chunks(EMBED_CHUNK) {
            let texts = chunk.iter().map(|text| (*text).clone()).collect();
            let vectors = match self.encoder.embed(texts, flow_of_passages(tenant), deadline).await
            {
                Ok(vectors) => vectors,
                Err(error @ Error::EncoderUnavailable(_)) => {
                    let missing = missing.len();
                    warn!(%error, missing, tenant = tenant.as_str(), "summaries are embedded later");
                    break;
                }
                Err(error) => return Err(error),
            };
            let hashes = chunk.iter().map(|text| text_hash(text));
            embedded.extend(hashes.zip(vectors.into_iter().map(|e| e.vector)));
        }
        Ok(())
    }

    async fn commit(
        &self,
        asked: TenantRegistration<'_>,
        record: ServerRecord,
        plan: Plan,
        stored: Stored,
        embedded: &HashMap<ContentHash, Vec<f32>>,
    ) -> Result<Registered, CommitError> {
        let TenantRegistration { tenant, registration } = asked;
        let request = pending(registration, &plan.outcomes)?;
        if let (true, Some((server, _))) = (plan.is_empty(), stored.as_ref()) {
            if let Some(request) = request {
                self.store.record_request(tenant, request).await?;
            }
            let server = server.clone();
            let revision = server.revision;
            return Ok(Registered { server, revision, outcomes: plan.outcomes, replayed: false });
        }
        let outcomes = plan.outcomes;
        let embeddings = embeddings_of(&plan.new_summaries, embedded);
        let limits = self.limits.now();
        let tools_before = stored.as_ref().map_or(0, |(_, tools)| tools.len());
        let tools_after = tools_before + plan.added - plan.removals.len();
        let tool_count = u32::try_from(tools_after).unwrap_or(u32::MAX);
        let change = ServerChange {
            base: stored.map(|(server, _)| server.revision),
            server: record.clone(),
            upserts: plan.upserts,
            removals: plan.removals,
            embeddings,
            fingerprint: self.encoder.fingerprint().to_owned(),
            comparison: plan.comparison,
            max_tools: limits.max_tools_per_tenant as u64,
            max_servers: limits.max_servers_per_tenant as u64,
            request,
        };
        let committed = self
            .store
            .commit(tenant, change)
            .await
            .map_err(|e| self.commit_error(e, registration))?;
        let Committed { revision, updated_ms } = committed;
        let server = StoredServer { record, revision, updated_ms, tool_count };
        Ok(Registered { server, revision, outcomes, replayed: false })
    }

    fn commit_error(&self, error: StoreError, registration: &Registration) -> CommitError {
        let id = registration.request.as_ref().map_or("", |(id, _)| id);
        match error {
            StoreError::Conflict => CommitError::Conflict,
            StoreError::NameTaken(name) => CommitError::NameTaken(name),
            StoreError::RequestIdReused => {
                CommitError::Failed(Error::RequestIdReused(id.to_owned()))
            }
            StoreError::TooManyTools { actual } => CommitError::Failed(Error::StockExceeded {
                limit: "limits.max_tools_per_tenant",
                maximum: self.limits.now().max_tools_per_tenant as u64,
                actual,
            }),
            StoreError::TooManyServers { actual } => CommitError::Failed(Error::StockExceeded {
                limit: "limits.max_servers_per_tenant",
                maximum: self.limits.now().max_servers_per_tenant as u64,
                actual,
            }),
            other => CommitError::Failed(other.into()),
        }
    }
}

fn contended(tries: usize) -> Error {
    Error::Contended {
        what: "registration conflicted with other registrations of this tenant",
        tries,
    }
}

enum CommitError {
    Conflict,
    NameTaken(String),
    Failed(Error),
}

impl<E: Into<Error>> From<E> for CommitError {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Returns the server record to store. Announcing a stored server only marks it as pending: its scopes and
/// preconditions continue to guard its tools.
fn server_after(
    asked: &ServerRecord,
    stored: Option<&(StoredServer, Vec<StoredTool>)>,
) -> ServerRecord {
    match stored {
        Some((stored, _)) if asked.pending => {
            ServerRecord { pending: true, ..stored.record.clone() }
        }
        _ => asked.clone(),
    }
}

fn check_body(
    registration: &Registration,
    limits: &toolgate_config::LimitsConfig,
    deadline: Option<Instant>,
) -> Result<Vec<Checked>, Error> {
    if registration.server.pending {
        return Ok(Vec::new());
    }
    let list = ToolsList::parse(&registration.body)?;
    let maximum = limits.max_tools_per_registration as u64;
    let actual = list.tools.len() as u64;
    if actual > maximum {
        return Err(Error::LimitExceeded {
            limit: "limits.max_tools_per_registration",
            maximum,
            actual,
        });
    }
    if list.more_pages && registration.mode == Mode::Replace {
        let problem = "holds a nextCursor, so it is one page of several: send the tools of all pages \
                       in one body, or use the mode merge";
        return Err(Error::field("tools_list_json", problem));
    }
    let server = &registration.server.name;
    let work = Work::default();
    let is_trusted = Tier::of(registration.server.trust_tier) == Tier::Trusted;
    let check = ToolCheck { server, settings: &registration.settings, limits, is_trusted, work };
    let mut checked: Vec<Checked> = Vec::with_capacity(list.tools.len());
    for (i, text) in list.tools.iter().enumerate() {
        // A schema takes up to about 50 ms. After the deadline, no caller waits for the rest.
        if deadline.is_some_and(|at| at <= Instant::now()) {
            return Err(Error::DeadlineExceeded);
        }
        checked.push(check.check(i, text));
    }
    reject_repeated(&mut checked);
    settings_have_tools(registration, &checked)?;
    Ok(checked)
}

fn reject_repeated(checked: &mut [Checked]) {
    let mut seen = HashSet::new();
    for (i, tool) in checked.iter_mut().enumerate() {
        let Ok(record) = tool else { continue };
        if seen.insert(record.name.clone()) {
            continue;
        }
        let problem =
            "another tool of this body has the same name; the first one counts".to_owned();
        let name = record.name.as_str().to_owned();
        *tool = Err(Rejection { name, field: format!("tools[{i}].name"), problem });
    }
}

fn reject_taken(checked: &mut [Checked], model_name: &str) {
    for (i, tool) in checked.iter_mut().enumerate() {
        let Ok(record) = tool else { continue };
        if record.model_name != model_name {
            continue;
        }
        let problem = format!("another tool of this tenant is already {model_name:?} to the model");
        let name = record.name.as_str().to_owned();
        *tool = Err(Rejection { name, field: format!("tools[{i}].name"), problem });
    }
}

fn settings_have_tools(registration: &Registration, checked: &[Checked]) -> Result<(), Error> {
    let named: HashSet<&str> = checked
        .iter()
        .map(|tool| tool.as_ref().map_or_else(|r| r.name.as_str(), |t| t.name.as_str()))
        .collect();
    let mut unknown: Vec<_> =
        registration.settings.keys().filter(|name| !named.contains(name.as_str())).collect();
    unknown.sort();
    match unknown.first() {
        None => Ok(()),
        Some(name) => {
            let problem = format!("there is no tool {name:?} in tools_list_json");
            Err(Error::field("tool_settings", problem))
        }
    }
}

fn refuse_rejections(registration: &Registration, checked: &[Checked]) -> Result<(), Error> {
    if !registration.all_or_nothing {
        return Ok(());
    }
    let rejected: Vec<_> = checked
        .iter()
        .filter_map(|tool| tool.as_ref().err())
        .map(|r| FieldViolation::new(&r.field, &r.problem))
        .collect();
    if rejected.is_empty() { Ok(()) } else { Err(Error::ToolsRejected(rejected)) }
}

fn check_etag(expected: &str, stored: &Stored) -> Result<(), Error> {
    let actual = stored.as_ref().map_or_else(String::new, |(server, _)| server.etag());
    if expected.is_empty() || expected == actual {
        return Ok(());
    }
    Err(Error::EtagMismatch { expected: expected.to_owned(), actual })
}

fn pending(
    registration: &Registration,
    outcomes: &[Outcome],
) -> Result<Option<PendingRequest>, CommitError> {
    let Some((id, body_hash)) = &registration.request else { return Ok(None) };
    let answer = serde_json::to_vec(outcomes).map_err(Error::internal)?;
    Ok(Some(PendingRequest { id: id.clone(), body_hash: *body_hash, answer }))
}

fn embeddings_of(
    summaries: &[String],
    embedded: &HashMap<ContentHash, Vec<f32>>,
) -> Vec<StoredEmbedding> {
    let hashes: HashSet<_> = summaries.iter().map(|text| text_hash(text)).collect();
    let of = |text_hash| embedded.get(&text_hash).map(|v| (text_hash, v.clone()));
    let pairs = hashes.into_iter().filter_map(of);
    pairs.map(|(text_hash, vector)| StoredEmbedding { text_hash, vector }).collect()
}
