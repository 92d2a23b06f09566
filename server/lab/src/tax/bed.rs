//! Indexed catalog, and the product's own code path from a turn to an active set: visibilities, ranking, cutoff and
//! choice, followed by the check of calls. This module makes no decisions of its own.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::tasks::Turn;
use crate::eval::embeddings::Embeddings;
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_core::state::AgentState;
use toolgate_routing::gate::calls::{Call, CallCheck};
use toolgate_routing::gate::handle::{ActiveSet, ShownTool};
use toolgate_routing::gate::schemas::Schemas;
use toolgate_routing::gate::verdict::Verdict;
use toolgate_routing::gate::visibility::Visibilities;
use toolgate_routing::router::allow::Allowed;
use toolgate_routing::router::intent::{self, Intent};
use toolgate_routing::router::query::{Options, RouteQuery, SelectionRule};
use toolgate_routing::router::ranking::level::Level;
use toolgate_routing::router::ranking::rank::Embedded;
use toolgate_routing::router::selection::choose::Choice;
use toolgate_routing::shard::snapshot::Snapshot;
use toolgate_store::StoredCatalog;

/// Maximum number of candidates; the same as in Route.
const LOOK_AT: usize = 100;

/// Rule by which an active set is chosen, as options of Route.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) options: Options,
}

impl Rule {
    /// Creates the paper's rule, which is an option of the product: a threshold on each tool's overlap, and at most the
    /// best `top_k` above it.
    pub(super) fn paper(threshold: f32, top_k: usize) -> Self {
        let selection_rule = SelectionRule::ToolAttention;
        let options = Options { selection_rule, threshold, top_k, ..Options::default() };
        Self { options }
    }

    /// Creates the product's rule with its defaults.
    pub(super) fn product() -> Self {
        Self { options: Options::default() }
    }
}

/// Indexed catalog.
pub(super) struct Bed<'a> {
    pub(super) snapshot: Snapshot,
    embeddings: &'a Embeddings,
    background: Vec<Vec<f32>>,
    schemas: Schemas,
    tenant: TenantId,
}

impl<'a> Bed<'a> {
    /// Indexes a catalog.
    ///
    /// # Errors
    /// Returns an internal error if the index is defective, or an error if a policy can't be read.
    pub(super) fn new(
        catalog: StoredCatalog,
        embeddings: &'a Embeddings,
        dimensions: usize,
    ) -> Result<Self, Error> {
        let snapshot = Snapshot::build(catalog, embeddings.vectors(), dimensions)?;
        snapshot.build_graph();
        let tenant = TenantId::parse("bench")?;
        let background = embeddings.background();
        Ok(Self { snapshot, embeddings, background, schemas: Schemas::default(), tenant })
    }

    /// Returns the slots of a turn's active set, with the tools of `previous` first.
    ///
    /// # Errors
    /// Returns an internal error if the index is defective.
    pub(super) fn active(
        &self,
        turn: &Turn,
        rule: &Rule,
        previous: Option<&ActiveSet>,
    ) -> Result<Vec<u32>, Error> {
        let intent = Intent::new(turn.text.clone(), 1.0);
        let query = RouteQuery {
            options: rule.options.under(&self.snapshot.policy),
            state: turn.state.clone(),
            ..RouteQuery::of(vec![intent])
        };
        let query = query.by_its_rule();
        let texts = intent::texts(&query.intents);
        let vectors = texts.iter().filter_map(|text| self.embeddings.vector(text));
        let vectors: Vec<_> = vectors.map(<[f32]>::to_vec).collect();
        let visibilities = Visibilities::of(&self.snapshot, &query.state);
        let allowed = Allowed::new(&self.snapshot, visibilities, &query.options, &[])?;
        let allowed_slots = allowed.slots.as_ref();
        let level = Level::of(
            &self.snapshot,
            &query.intents,
            &query.options,
            &self.background,
            allowed_slots,
        );
        let rule = query.options.selection_rule;
        let embedded = Embedded { rule, level, ..Embedded::new(&query.intents, &vectors) };
        if embedded.is_words_only(&self.snapshot) {
            return Err(Error::internal("a turn was not embedded"));
        }
        let candidates = embedded.rank(&self.snapshot, LOOK_AT, allowed_slots)?;
        let choice = Choice::new(&self.snapshot, &allowed, &embedded, &query, level);
        let outcome = choice.make(previous, &candidates, true);
        Ok(outcome.active.iter().map(|chosen| chosen.slot).collect())
    }

    /// Returns the contents of a handle for these tools.
    pub(super) fn shown(&self, slots: &[u32]) -> ActiveSet {
        let tool = |slot: &u32| {
            let tool = self.snapshot.tool(*slot);
            ShownTool::new(tool.key, &tool.hash)
        };
        let tools = slots.iter().map(tool).collect();
        ActiveSet {
            revision: self.snapshot.revision,
            expires: u64::MAX,
            tools,
            carried: Vec::new(),
            intent_embedding: None,
        }
    }

    /// Returns Gate's verdicts on calls to these tools, with arguments that satisfy their schemas.
    pub(super) fn verdicts(
        &self,
        active: &[u32],
        state: &AgentState,
        names: &[&str],
    ) -> Vec<Verdict> {
        let call = |name: &&str| Call {
            tool: (*name).to_owned(),
            arguments: self.arguments(name),
            ..Call::default()
        };
        let calls: Vec<_> = names.iter().map(call).collect();
        let check = CallCheck {
            tenant: &self.tenant,
            snapshot: &self.snapshot,
            state,
            active: &self.shown(active),
            schemas: &self.schemas,
            now: SystemTime::UNIX_EPOCH,
            deadline: None,
        };
        check.verdicts(&calls).expect("nothing ends it without a deadline")
    }

    /// Returns arguments with a value for each required parameter, or `{}` for an unknown tool.
    fn arguments(&self, name: &str) -> String {
        let slot = self.snapshot.names.model_name(name);
        let schema = slot.map(|slot| self.snapshot.tool(slot).definition.input_schema());
        let schema: Value =
            schema.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let required =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let of = |name: &str| (name.to_owned(), something(&schema["properties"][name]));
        Value::Object(required.map(of).collect()).to_string()
    }

    /// Returns the slot of the tool with this model-facing name.
    pub(super) fn slot(&self, model_name: &str) -> Option<u32> {
        self.snapshot.names.model_name(model_name)
    }

    /// Returns all slots.
    pub(super) fn all(&self) -> Vec<u32> {
        (0u32..).take(self.snapshot.tools.len()).collect()
    }

    /// Returns the number of tokens in the definitions of these tools.
    pub(super) fn schema_tokens(&self, slots: &[u32]) -> u64 {
        slots.iter().map(|slot| u64::from(self.snapshot.tool(*slot).schema_tokens)).sum()
    }

    /// Returns the number of tokens in the summary pool.
    pub(super) fn pool_tokens(&self) -> u64 {
        self.snapshot.tools.iter().map(|tool| u64::from(tool.summary_tokens)).sum()
    }
}

/// Returns a value of a property's type.
fn something(property: &Value) -> Value {
    match property["type"].as_str() {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("x"),
    }
}
