//! Route and Gate requests from the wire: every limit is checked here, and what comes out can't be wrong
//! again.

use toolgate_proto::v1;

use super::fields::{Fields, within};
use super::state;
use crate::config::{LimitsConfig, RouterConfig};
use crate::error::Error;
use crate::gate::calls::Call;
use crate::identity::ServerName;
use crate::router::query::{Detail, Intent, Options, RouteQuery, Unset};

const WEIGHT_MAX: f32 = 100.0;
const TOP_K_MAX: u32 = 100;
const PINNED_MAX: usize = 100;
const EXCLUDED_MAX: usize = 1_000;
const SERVERS_MAX: usize = 100;
const TURN_ID_MAX: usize = 128;
const CALLS_MAX: usize = 128;
const ARGUMENTS_MAX: usize = 1 << 20;

/// Parses what Route is asked.
pub(super) fn route(
    wire: v1::RouteRequest,
    limits: &LimitsConfig,
    defaults: &RouterConfig,
) -> Result<RouteQuery, Error> {
    let mut fields = Fields::default();
    let intents = intents(wire.intents, limits, &mut fields)?;
    let options = options(wire.options.unwrap_or_default(), defaults, &mut fields);
    let turn_id_fits = wire.turn_id.len() <= TURN_ID_MAX;
    fields.require(turn_id_fits, "turn_id", "must be at most 128 bytes");
    let state = state::parse(wire.state, limits)?;
    fields.finish()?;
    Ok(RouteQuery {
        intents,
        state,
        previous: wire.active_set_handle,
        known_pool_revision: wire.known_pool_revision,
        options,
        min_revision: wire.min_revision,
        turn_id: wire.turn_id,
    })
}

/// Parses the calls that Gate is asked about.
pub(super) fn calls(wire: &[v1::RequestedCall]) -> Result<Vec<Call>, Error> {
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
    let call = |call: &v1::RequestedCall| Call {
        tool: call.tool.clone(),
        arguments: call.arguments_json.clone(),
    };
    Ok(wire.iter().map(call).collect())
}

/// A handle that is there at all; what it says is the gate's business.
pub(super) fn require_handle(handle: &str) -> Result<(), Error> {
    let problem = "is missing: send the handle that Route gave for this turn";
    if handle.is_empty() { Err(Error::field("active_set_handle", problem)) } else { Ok(()) }
}

fn intents(
    wire: Vec<v1::Intent>,
    limits: &LimitsConfig,
    fields: &mut Fields,
) -> Result<Vec<Intent>, Error> {
    fields.require(!wire.is_empty(), "intents", "must hold at least one intent");
    within("limits.max_intents", limits.max_intents, wire.len())?;
    let mut intents = Vec::with_capacity(wire.len());
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
        intents.push(Intent { text: intent.text, weight });
    }
    Ok(intents)
}

fn options(wire: v1::RouteOptions, defaults: &RouterConfig, fields: &mut Fields) -> Options {
    let detail = detail(wire.detail, "options.detail", fields);
    let unset = Unset { top_k: wire.top_k.is_none(), threshold: wire.threshold.is_none() };
    let top_k = wire.top_k.unwrap_or(u32::try_from(defaults.top_k).unwrap_or(TOP_K_MAX));
    fields.require((1..=TOP_K_MAX).contains(&top_k), "options.top_k", "must be 1 to 100");
    let threshold = wire.threshold.unwrap_or(defaults.threshold);
    let is_cosine = (-1.0..=1.0).contains(&threshold);
    fields.require(is_cosine, "options.threshold", "must be a cosine, -1 to 1");
    let window = wire.context_window != Some(0);
    fields.require(window, "options.context_window", "must be at least 1 token");
    let field = "options.pinned_tools";
    fields.require(wire.pinned_tools.len() <= PINNED_MAX, field, "must be at most 100 names");
    let field = "options.excluded_tools";
    fields.require(wire.excluded_tools.len() <= EXCLUDED_MAX, field, "must be at most 1,000 names");
    fields.require(
        wire.servers.len() <= SERVERS_MAX,
        "options.servers",
        "must be at most 100 names",
    );
    let named = wire.servers.iter().take(SERVERS_MAX).enumerate();
    let servers = named
        .filter_map(|(i, name)| {
            fields.take(&format!("options.servers[{i}]"), ServerName::parse(name))
        })
        .collect();
    Options {
        top_k: top_k as usize,
        threshold,
        schema_token_budget: wire.schema_token_budget,
        detail,
        pinned: wire.pinned_tools,
        excluded: wire.excluded_tools,
        servers,
        context_window: wire.context_window,
        system_tokens: wire.system_tokens,
        model: wire.model,
        explain: wire.explain,
        unset,
    }
}

fn detail(wire: i32, field: &str, fields: &mut Fields) -> Detail {
    match v1::Detail::try_from(wire) {
        Ok(v1::Detail::Names) => Detail::Names,
        Ok(v1::Detail::Signatures) => Detail::Signatures,
        Ok(v1::Detail::Unspecified | v1::Detail::Schemas) => Detail::Schemas,
        Err(_) => {
            fields.require(false, field, "must be a value of Detail");
            Detail::default()
        }
    }
}
