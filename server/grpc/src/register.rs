//! Parsing of RegisterServer requests.

use std::collections::HashMap;
use std::sync::Arc;

use prost::Message;
use sha2::{Digest, Sha256};
use toolgate_core::mcp_server::{TransportHint, TrustTier};
use toolgate_proto::v1;

use super::fields::Fields;
use super::precondition::{self, ConditionBudget};
use toolgate_core::error::Error;
use toolgate_core::identity::ServerName;
use toolgate_core::precondition::Precondition;
use toolgate_routing::catalog::check::ToolSettings;
use toolgate_routing::catalog::plan::Mode;
use toolgate_routing::catalog::registration::Registration;
use toolgate_store::ServerRecord;

const DESCRIPTION_MAX: usize = 4 << 10;
const HINT_MAX: usize = 1 << 10;
const REQUEST_ID_MAX: usize = 128;
const SCOPES_MAX: usize = 64;
const SCOPE_MAX: usize = 256;

/// Parses a registration, and reports all problems in one error.
pub(super) fn parse(wire: v1::RegisterServerRequest) -> Result<Registration, Error> {
    let request = (!wire.request_id.is_empty())
        .then(|| (wire.request_id.clone(), Sha256::digest(wire.encode_to_vec()).into()));
    let mut fields = Fields::default();
    let name = fields.take("server", ServerName::parse(&wire.server));
    let short = wire.description.len() <= DESCRIPTION_MAX;
    fields.require(short, "description", "must be at most 4 KiB");
    let id_fits = wire.request_id.len() <= REQUEST_ID_MAX;
    fields.require(id_fits, "request_id", "must be at most 128 bytes");
    let hint = v1::TransportHint::try_from(wire.transport_hint);
    fields.require(hint.is_ok(), "transport_hint", "must be a value of TransportHint");
    let tier = v1::TrustTier::try_from(wire.trust_tier);
    fields.require(tier.is_ok(), "trust_tier", "must be a value of TrustTier");
    let mode = if wire.pending {
        announced(&wire, &mut fields);
        Mode::Merge
    } else {
        mode(wire.mode, &mut fields)
    };
    let scopes = scopes("required_scopes", wire.required_scopes, &mut fields);
    let mut budget = ConditionBudget::default();
    let of_server = wire.precondition.as_ref();
    let precondition = condition("precondition", of_server, &mut fields, &mut budget);
    let settings = settings(wire.tool_settings, &mut fields, &mut budget);
    fields.finish()?;
    let name = name.ok_or_else(|| Error::field("server", "is missing"))?;
    let server = ServerRecord {
        name,
        description: wire.description,
        transport_hint: TransportHint::from(wire.transport_hint),
        // For an unspecified tier, the configuration decides.
        trust_tier: TrustTier::from(wire.trust_tier),
        precondition,
        required_scopes: scopes,
        pending: wire.pending,
    };
    let body: Arc<[u8]> = Arc::from(&wire.tools_list_json[..]);
    let etag = wire.etag;
    let all_or_nothing = wire.all_or_nothing;
    Ok(Registration { server, body, settings, mode, etag, request, all_or_nothing })
}

/// Checks that an announcement has no tools, because they are not known yet.
fn announced(wire: &v1::RegisterServerRequest, fields: &mut Fields) {
    let problem = "must be absent when pending: register the tools without it";
    fields.require(wire.tools_list_json.is_empty(), "tools_list_json", problem);
    fields.require(wire.tool_settings.is_empty(), "tool_settings", problem);
}

fn mode(wire: i32, fields: &mut Fields) -> Mode {
    match v1::RegisterMode::try_from(wire) {
        Ok(v1::RegisterMode::Merge) => Mode::Merge,
        Ok(v1::RegisterMode::Unspecified | v1::RegisterMode::Replace) => Mode::Replace,
        Err(_) => {
            fields.require(false, "mode", "must be a value of RegisterMode");
            Mode::Replace
        }
    }
}

fn settings(
    wire: Vec<v1::ToolSettings>,
    fields: &mut Fields,
    budget: &mut ConditionBudget,
) -> HashMap<String, ToolSettings> {
    let mut settings = HashMap::with_capacity(wire.len());
    for (i, tool) in wire.into_iter().enumerate() {
        let field = |part: &str| format!("tool_settings[{i}].{part}");
        fields.require(!tool.name.is_empty(), &field("name"), "must name a tool of the body");
        let fits = tool.search_hint.len() <= HINT_MAX;
        fields.require(fits, &field("search_hint"), "must be at most 1 KiB");
        let wire = tool.precondition.as_ref();
        let precondition = condition(&field("precondition"), wire, fields, budget);
        let one = ToolSettings {
            summary: tool.summary,
            search_hint: tool.search_hint,
            precondition,
            required_scopes: scopes(&field("required_scopes"), tool.required_scopes, fields),
            always_load: tool.always_load,
            critical: tool.critical,
        };
        let is_new = settings.insert(tool.name, one).is_none();
        fields.require(is_new, &field("name"), "is there twice");
    }
    settings
}

fn condition(
    field: &str,
    wire: Option<&v1::Precondition>,
    fields: &mut Fields,
    budget: &mut ConditionBudget,
) -> Option<Precondition> {
    fields.take(field, precondition::parse(field, wire?, budget))
}

fn scopes(field: &str, wire: Vec<String>, fields: &mut Fields) -> Vec<String> {
    fields.require(wire.len() <= SCOPES_MAX, field, "must be at most 64 scopes");
    let right = wire.iter().all(|scope| !scope.is_empty() && scope.len() <= SCOPE_MAX);
    fields.require(right, field, "must be scopes of 1 to 256 bytes");
    let mut scopes = wire;
    scopes.sort();
    scopes.dedup();
    scopes
}
