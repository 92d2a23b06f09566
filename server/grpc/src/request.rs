//! Parsing of Route and Gate requests. All limits are checked here, so the parsed values are valid.

use toolgate_proto::v1;

use super::answer;
use super::call_tool::ReadCall;
use super::conversation::ReadConversation;
use super::fields::{Fields, within};
use super::state::{self, Told};
use toolgate_access::auth::Caller;
use toolgate_config::{LimitsConfig, RouterConfig};
use toolgate_core::deferral::{DeferralRequest, Mode, host_of};
use toolgate_core::error::Error;
use toolgate_core::identity::ServerName;
use toolgate_llm::{context_window, history};
use toolgate_routing::gate::Evidence;
use toolgate_routing::router::context::{self, Before, Rules};
use toolgate_routing::router::intent::Intent;
use toolgate_routing::router::query::{Detail, Listing, Options, RouteQuery, SelectionRule, Unset};
use toolgate_routing::router::schemas::SchemasQuery;
use toolgate_routing::router::search::SearchQuery;
use toolgate_routing::router::search::grammar::Query;
use toolgate_routing::router::selection::caps::UntrustedCaps;

const WEIGHT_MAX: f32 = 100.0;
const TOP_K_MAX: u32 = 100;

/// Number of tools with full definitions before a tail of signatures. Fewer full definitions show more tools for the
/// same tokens (docs/tokens.md), but the model should be able to call the likeliest tools correctly at once.
const HEAD: u32 = 3;
const RESULTS_DEFAULT: u32 = 5;
/// Maximum bytes of a requested tool name. Model-facing and `server/name` forms are shorter.
const NAME_BYTES_MAX: usize = 512;
const NAMES_MAX: usize = 100;
const PINNED_MAX: usize = 100;
const EXCLUDED_MAX: usize = 1_000;
const SERVERS_MAX: usize = 100;
const TURN_ID_MAX: usize = 128;
const CALLS_MAX: usize = 128;
const ARGUMENTS_MAX: usize = 1 << 20;
const MODEL_MAX: usize = 256;
/// Maximum number of clauses in one call. Further intents are not divided.
const CLAUSES_MAX: usize = 16;
const URL_MAX: usize = 2 << 10;
const ACTIVE_SET_MAX: u32 = 1_024;

/// Route request.
pub(super) struct RouteInput {
    /// Query of the router.
    pub(super) query: RouteQuery,
    /// Conversation in the agent's state.
    pub(super) conversation: ReadConversation,
}

/// Parses a Route request.
pub(super) fn route(
    wire: v1::RouteRequest,
    limits: &LimitsConfig,
    defaults: &RouterConfig,
    caller: &Caller,
) -> Result<RouteInput, Error> {
    let mut fields = Fields::default();
    let read = if defaults.clauses { Intent::new } else { Intent::undivided };
    let intents = intents(wire.intents, limits, read, &mut fields)?;
    let options = options(wire.options.unwrap_or_default(), defaults, &mut fields);
    let options = Options { message_max: limits.max_message_bytes, ..options };
    let turn_id_fits = wire.turn_id.len() <= TURN_ID_MAX;
    fields.require(turn_id_fits, "turn_id", "must be at most 128 bytes");
    let listing = listing(wire.prompt_listing, &mut fields);
    let Told { state, said, snapshot, messages } = state::parse_told(wire.state, limits, caller)?;
    fields.finish()?;
    let answer = answer::before(&intents, &messages);
    let before = Before { asks: &said.asks, results: &said.results, answer: answer.as_deref() };
    let rules = Rules { courtesies: defaults.courtesies, context: defaults.context };
    let intents = context::read(intents, before, rules);
    let conversation = ReadConversation {
        snapshot,
        texts: history::texts(&messages),
        outcomes: history::refusal_outcomes(&messages),
        beside: options.surroundings(),
    };
    let query = RouteQuery {
        intents,
        state,
        previous: wire.active_set_handle,
        known_pool_revision: wire.known_pool_revision,
        options,
        min_revision: wire.min_revision,
        turn_id: wire.turn_id,
        listing,
    };
    Ok(RouteInput { query, conversation })
}

/// Parses what the prompt lists of the catalog; `None` if the request does not say.
fn listing(wire: i32, fields: &mut Fields) -> Option<Listing> {
    match v1::PromptListing::try_from(wire) {
        Ok(v1::PromptListing::Unspecified) => None,
        Ok(v1::PromptListing::None) => Some(Listing::None),
        Ok(v1::PromptListing::Names) => Some(Listing::Names),
        Ok(v1::PromptListing::Summaries) => Some(Listing::Summaries),
        Err(_) => {
            fields.require(false, "prompt_listing", "must be a value of PromptListing");
            None
        }
    }
}

/// Parses the calls of a Gate request.
pub(super) fn calls(wire: &[v1::RequestedCall]) -> Result<Vec<ReadCall>, Error> {
    let mut fields = Fields::default();
    let right = (1..=CALLS_MAX).contains(&wire.len());
    fields.require(right, "calls", "must be 1 to 128 calls");
    for (i, call) in wire.iter().enumerate() {
        let named = !call.tool.is_empty();
        fields.require(named, &format!("calls[{i}].tool"), "must name a tool");
        let fits = call.arguments_json.len() <= ARGUMENTS_MAX;
        let field = format!("calls[{i}].arguments_json");
        fields.require(fits, &field, "must be at most 1 MiB");
    }
    fields.finish()?;
    Ok(wire.iter().map(ReadCall::of).collect())
}

/// Parses the evidence of what the model was shown. The gate checks the content of a handle.
pub(super) fn evidence(evidence: i32, handle: String) -> Result<Evidence, Error> {
    let by_handle = "is missing: send the handle that Route gave for this turn";
    let has_handle = !handle.is_empty();
    match v1::Evidence::try_from(evidence) {
        Ok(v1::Evidence::Unspecified | v1::Evidence::Handle) if has_handle => {
            Ok(Evidence::Handle(handle))
        }
        Ok(v1::Evidence::Unspecified | v1::Evidence::Handle) => {
            Err(Error::field("active_set_handle", by_handle))
        }
        Ok(v1::Evidence::Tags) => Ok(Evidence::Tags),
        Ok(v1::Evidence::Catalog) => Ok(Evidence::Catalog),
        Err(_) => Err(Error::field("evidence", "must be a value of Evidence")),
    }
}

fn intents(
    wire: Vec<v1::Intent>,
    limits: &LimitsConfig,
    read: impl Fn(String, f32) -> Intent,
    fields: &mut Fields,
) -> Result<Vec<Intent>, Error> {
    fields.require(!wire.is_empty(), "intents", "must hold at least one intent");
    within("limits.max_intents", limits.max_intents, wire.len())?;
    let mut intents = Vec::with_capacity(wire.len());
    let mut clauses = 0;
    for (i, intent) in wire.into_iter().enumerate() {
        within("limits.max_intent_size", limits.max_intent_bytes, intent.text.len())?;
        let says_something = !intent.text.trim().is_empty();
        fields.require(says_something, &format!("intents[{i}].text"), "must not be blank");
        let weight = intent.weight.unwrap_or(1.0);
        let field = format!("intents[{i}].weight");
        fields.require(
            weight > 0.0 && weight <= WEIGHT_MAX,
            &field,
            "must be above 0, at most 100",
        );
        let intent = read(intent.text, weight);
        clauses += intent.clauses().len();
        // Each clause is embedded and searched for, so the cost of a call with many intents must stay bounded.
        let divided = clauses <= CLAUSES_MAX;
        intents.push(if divided { intent } else { Intent::undivided(intent.text, weight) });
    }
    Ok(intents)
}

fn options(wire: v1::RouteOptions, defaults: &RouterConfig, fields: &mut Fields) -> Options {
    let detail = detail(wire.detail, "options.detail", fields);
    let unset = Unset { top_k: wire.top_k.is_none(), threshold: wire.threshold.is_none() };
    let usual = u32::try_from(defaults.top_k).unwrap_or(TOP_K_MAX);
    let usual = if wire.signature_tail == 0 { usual } else { usual.min(HEAD) };
    let top_k = wire.top_k.unwrap_or(usual);
    fields.require((1..=TOP_K_MAX).contains(&top_k), "options.top_k", "must be 1 to 100");
    let threshold = wire.threshold.unwrap_or(defaults.threshold);
    let is_cosine = (-1.0..=1.0).contains(&threshold);
    fields.require(is_cosine, "options.threshold", "must be a cosine, -1 to 1");
    let tail = (0..=TOP_K_MAX).contains(&wire.signature_tail);
    fields.require(tail, "options.signature_tail", "must be 0 to 100");
    check_prompt(&wire, fields);
    let servers = servers(&wire, fields);
    let deferral = deferral(&wire, fields);
    let selection_rule = selection_rule(wire.selection_rule, fields);
    Options {
        selection_rule,
        top_k: top_k as usize,
        threshold,
        ratio: Some(defaults.relative_cutoff).filter(|ratio| unset.threshold && *ratio > 0.0),
        schema_token_budget: wire.schema_token_budget,
        detail,
        signature_tail: wire.signature_tail as usize,
        pinned: wire.pinned_tools,
        excluded: wire.excluded_tools,
        servers,
        context_window: wire.context_window,
        known_window: context_window(&wire.model),
        system_tokens: wire.system_tokens,
        explain: wire.explain,
        active_token_budget: wire.active_token_budget,
        history_tokens: wire.history_tokens,
        ignore_cache_cost: wire.ignore_cache_cost,
        deferral,
        model: wire.model,
        unset,
        untrusted: untrusted(defaults),
        active_set_limit: wire.active_set_limit.map(|tools| tools as usize),
        always_load_tokens: u32::try_from(defaults.always_load_tokens).unwrap_or(u32::MAX),
        ..Options::default()
    }
}

/// Checks the options about the prompt and its limits.
fn check_prompt(wire: &v1::RouteOptions, fields: &mut Fields) {
    let limit = wire.active_set_limit.is_none_or(|tools| (1..=ACTIVE_SET_MAX).contains(&tools));
    fields.require(limit, "options.active_set_limit", "must be 1 to 1,024 tools");
    let window = wire.context_window != Some(0);
    fields.require(window, "options.context_window", "must be at least 1 token");
    let right = wire.model.len() <= MODEL_MAX;
    fields.require(right, "options.model", "must be at most 256 bytes");
}

fn untrusted(defaults: &RouterConfig) -> UntrustedCaps {
    UntrustedCaps {
        per_server: defaults.untrusted_max_per_server,
        active: defaults.untrusted_max_active,
    }
}

/// Checks the lists of names, and parses those of MCP servers.
fn servers(wire: &v1::RouteOptions, fields: &mut Fields) -> Vec<ServerName> {
    let field = "options.pinned_tools";
    fields.require(wire.pinned_tools.len() <= PINNED_MAX, field, "must be at most 100 names");
    short_names(&wire.pinned_tools, field, fields);
    let field = "options.excluded_tools";
    fields.require(wire.excluded_tools.len() <= EXCLUDED_MAX, field, "must be at most 1,000 names");
    short_names(&wire.excluded_tools, field, fields);
    fields.require(
        wire.servers.len() <= SERVERS_MAX,
        "options.servers",
        "must be at most 100 names",
    );
    let named = wire.servers.iter().take(SERVERS_MAX).enumerate();
    named
        .filter_map(|(i, name)| {
            fields.take(&format!("options.servers[{i}]"), ServerName::parse(name))
        })
        .collect()
}

/// Checks that names are short. Refusals repeat them, so long ones would make large answers.
fn short_names(names: &[String], field: &str, fields: &mut Fields) {
    let are_short = names.iter().all(|name| name.len() <= NAME_BYTES_MAX);
    fields.require(are_short, field, "must be names of at most 512 bytes");
}

/// Parses a SearchTools request.
pub(super) fn search(
    wire: v1::SearchToolsRequest,
    limits: &LimitsConfig,
    defaults: &RouterConfig,
    caller: &Caller,
) -> Result<SearchQuery, Error> {
    within("limits.max_intent_size", limits.max_intent_bytes, wire.query.len())?;
    let mut fields = Fields::default();
    let query = fields.take("query", Query::parse(&wire.query));
    let max_results = wire.max_results.unwrap_or(RESULTS_DEFAULT);
    let right = (1..=TOP_K_MAX).contains(&max_results);
    fields.require(right, "max_results", "must be 1 to 100");
    let detail = detail(wire.detail, "detail", &mut fields);
    let state = state::parse(wire.state, limits, caller)?;
    fields.finish()?;
    Ok(SearchQuery {
        query: query.ok_or_else(|| Error::field("query", "is missing"))?,
        max_results: max_results as usize,
        detail,
        // A search should find more than Route shows on its own.
        least_overlap: defaults.threshold / 2.0,
        untrusted: untrusted(defaults),
        state,
        previous: wire.active_set_handle,
        min_revision: wire.min_revision,
        message_max: limits.max_message_bytes,
    })
}

/// Parses a BatchGetToolSchemas request.
pub(super) fn schemas(
    wire: v1::BatchGetToolSchemasRequest,
    limits: &LimitsConfig,
    caller: &Caller,
) -> Result<SchemasQuery, Error> {
    let mut fields = Fields::default();
    let right = (1..=NAMES_MAX).contains(&wire.names.len());
    fields.require(right, "names", "must be 1 to 100 names");
    fields.require(wire.names.iter().all(|name| !name.is_empty()), "names", "must not be empty");
    short_names(&wire.names, "names", &mut fields);
    let detail = detail(wire.detail, "detail", &mut fields);
    let state = state::parse(wire.state, limits, caller)?;
    fields.finish()?;
    Ok(SchemasQuery {
        names: wire.names,
        detail,
        state,
        previous: wire.active_set_handle,
        message_max: limits.max_message_bytes,
    })
}

fn deferral(wire: &v1::RouteOptions, fields: &mut Fields) -> DeferralRequest {
    let percent = wire.deferral_percent.map(u8::try_from);
    let is_share = |percent| matches!(percent, Ok(0..=100));
    let right = percent.is_none_or(is_share);
    fields.require(right, "options.deferral_percent", "must be 0 to 100 percent");
    let mode = match v1::DeferralMode::try_from(wire.deferral) {
        Ok(v1::DeferralMode::Unspecified) => None,
        Ok(v1::DeferralMode::Always) => Some(Mode::Always),
        Ok(v1::DeferralMode::Auto) => {
            Some(percent.and_then(Result::ok).map_or(Mode::AUTO, Mode::Auto))
        }
        Ok(v1::DeferralMode::Off) => Some(Mode::Off),
        Err(_) => {
            fields.require(false, "options.deferral", "must be a value of DeferralMode");
            None
        }
    };
    let alone = wire.deferral_percent.is_some() && !matches!(mode, Some(Mode::Auto(_)));
    fields.require(!alone, "options.deferral_percent", "is for DEFERRAL_MODE_AUTO only");
    let url = &wire.model_base_url;
    let field = "options.model_base_url";
    fields.require(url.len() <= URL_MAX, field, "must be at most 2 KiB");
    let host = host_of(url);
    fields.require(url.is_empty() || host.is_some(), field, "must be a URL with a host");
    let model_host = host.map(str::to_owned);
    DeferralRequest { mode, model_host, whole_is_cheaper: false }
}

fn selection_rule(wire: i32, fields: &mut Fields) -> SelectionRule {
    match v1::SelectionRule::try_from(wire) {
        Ok(v1::SelectionRule::Unspecified) => SelectionRule::Own,
        Ok(v1::SelectionRule::ToolAttention) => SelectionRule::ToolAttention,
        Err(_) => {
            fields.require(false, "options.selection_rule", "must be a value of SelectionRule");
            SelectionRule::default()
        }
    }
}

fn detail(wire: i32, field: &str, fields: &mut Fields) -> Detail {
    match v1::Detail::try_from(wire) {
        Ok(v1::Detail::Names) => Detail::Names,
        Ok(v1::Detail::Signatures) => Detail::Signatures,
        Ok(v1::Detail::References) => Detail::References,
        Ok(v1::Detail::Unspecified | v1::Detail::Schemas) => Detail::Schemas,
        Err(_) => {
            fields.require(false, field, "must be a value of Detail");
            Detail::default()
        }
    }
}
