//! Rendering of the answers of Route, Gate and the look-ups.

use std::collections::HashSet;

use prost_types::Timestamp;
use toolgate_proto::v1;

use super::conversation::Conversation;
use toolgate_core::deferral::{Mode, Reason, Source};
use toolgate_core::identity::TenantId;
use toolgate_core::tokens::TOKENIZER;
use toolgate_routing::gate::verdict::{RefusalCode, Refused, Verdict};
use toolgate_routing::router::answers::account::Account;
use toolgate_routing::router::answers::conversation::ContextWarning;
use toolgate_routing::router::answers::explain::Refusal;
use toolgate_routing::router::answers::pool::PoolDelta;
use toolgate_routing::router::query::Detail;
use toolgate_routing::router::ranking::fit::Fit;
use toolgate_routing::router::ranking::rank::{Candidate, FoundBy};
use toolgate_routing::router::route::{Active, Answer, Degraded, Ranking};
use toolgate_routing::router::schemas::SchemaLookup;
use toolgate_routing::router::search::{Form, SearchAnswer};
use toolgate_routing::router::selection::deferring::Deferral;
use toolgate_routing::shard::snapshot::Snapshot;
use toolgate_routing::shard::tool::Tool;

/// Renders the answer of Route to a conversation.
pub(super) fn route(
    tenant: &TenantId,
    answer: &Answer,
    conversation: &Conversation,
) -> v1::RouteResponse {
    let snapshot = &*answer.snapshot;
    let tool = |active: &Active| active_tool(tenant, snapshot, active, answer.detail);
    v1::RouteResponse {
        active_tools: answer.active.iter().map(tool).collect(),
        active_set_handle: answer.handle.clone(),
        handle_expire_time: Some(timestamp(answer.handle_expires)),
        catalog_revision: snapshot.revision,
        summary_pool: answer.pool.as_ref().map(|delta| pool(snapshot, delta)),
        refusals: answer.refusals.iter().map(|r| refusal(snapshot, r)).collect(),
        pending_servers: answer.pending.clone(),
        accounting: Some(accounting(&answer.account, conversation)),
        degraded: answer.degraded.iter().map(|d| degraded(*d) as i32).collect(),
        timings: answer.timings.iter().map(|(stage, micros)| timing(stage, *micros)).collect(),
        deferral: Some(deferral(answer)),
        change: Some(change(answer)),
        ranking: answer.ranking.as_ref().map(|of| ranking(answer, of)),
        fit: Some(fit(snapshot, &answer.fit)),
        rendered: None,
        conversation_snapshot: conversation.snapshot.clone(),
        servers: servers(answer),
    }
}

/// Renders the quality of the best match.
/// Returns the names of the MCP servers of a turn.
pub(super) fn servers(answer: &Answer) -> Vec<String> {
    answer.servers().into_iter().map(|name| name.as_str().to_owned()).collect()
}

fn fit(snapshot: &Snapshot, fit: &Fit) -> v1::Fit {
    let name = |slot: &u32| snapshot.tool(*slot).model_name.to_string();
    let (kind, contenders, message) = match fit {
        Fit::Unknown => (v1::FitKind::Unspecified, Vec::new(), String::new()),
        Fit::Clear => (v1::FitKind::Clear, Vec::new(), String::new()),
        Fit::Ambiguous(slots) => {
            let names: Vec<String> = slots.iter().map(name).collect();
            let list = names.join(", ");
            let message = format!(
                "{list} fit this about equally: choose by what they do, or ask which is meant."
            );
            (v1::FitKind::Ambiguous, names, message)
        }
        Fit::None => {
            let message = "No tool fits this: answer without one, or ask what is meant.".to_owned();
            (v1::FitKind::None, Vec::new(), message)
        }
        Fit::Courtesy => {
            let message = "No tool is asked for: answer without one.".to_owned();
            (v1::FitKind::None, Vec::new(), message)
        }
    };
    v1::Fit { kind: kind as i32, contenders, message }
}

/// Renders the ranking of tools.
fn ranking(answer: &Answer, of: &Ranking) -> v1::Ranking {
    let chosen: HashSet<u32> = answer.active.iter().map(|active| active.chosen.slot).collect();
    let candidate = |one: &Candidate| v1::RankedTool {
        model_name: answer.snapshot.tool(one.slot).model_name.to_string(),
        score: one.score,
        overlap: one.overlap,
        words: one.parts.words,
        whole: one.parts.whole,
        clause: one.parts.clause,
        memory: one.parts.memory,
        last_called: one.parts.last_called,
        reserved: one.is_reserved,
        found_by: found_by(one.found_by) as i32,
        chosen: chosen.contains(&one.slot),
    };
    v1::Ranking {
        abstain_below: of.level.0,
        candidates: of.candidates.iter().map(candidate).collect(),
    }
}

/// Renders the differences of the active set from that of the preceding turn.
fn change(answer: &Answer) -> v1::ActiveSetChange {
    let name = |slot: u32| answer.snapshot.tool(slot).model_name.to_string();
    let (added, kept): (Vec<_>, Vec<_>) =
        answer.active.iter().partition(|active| active.chosen.newly_promoted);
    let names = |tools: Vec<&Active>| tools.iter().map(|tool| name(tool.chosen.slot)).collect();
    let change = &answer.change;
    v1::ActiveSetChange {
        added: names(added),
        kept: names(kept),
        evictable: change.evictable.iter().copied().map(name).collect(),
        removed: change.removed.iter().copied().map(name).collect(),
        kept_for_cache: change.kept_for_cache,
        cache_loss_tokens: change.cost.lost,
        cache_saving_tokens: change.cost.saved,
    }
}

/// Renders the answer of SearchTools.
pub(super) fn search(
    tenant: &TenantId,
    answer: &SearchAnswer,
    tag: impl Fn(&Tool) -> String,
) -> v1::SearchToolsResponse {
    let snapshot = &*answer.snapshot;
    let is_shown = answer.detail != Detail::Names;
    let tool = |active: &Active| {
        let shown_tag =
            if is_shown { tag(snapshot.tool(active.chosen.slot)) } else { String::new() };
        let tool = active_tool(tenant, snapshot, active, answer.detail);
        v1::ActiveTool { shown_tag, ..tool }
    };
    v1::SearchToolsResponse {
        tools: answer.tools.iter().map(tool).collect(),
        active_set_handle: answer.handle.clone(),
        handle_expire_time: Some(timestamp(answer.handle_expires)),
        catalog_revision: snapshot.revision,
        pending_servers: answer.pending.clone(),
        refusals: answer.refusals.iter().map(|r| refusal(snapshot, r)).collect(),
        form: form(answer.form) as i32,
        message: answer.message.clone(),
        searched_tools: u32::try_from(answer.searched).unwrap_or(u32::MAX),
        lacking_required_terms: answer.lacking_required,
        degraded: answer.degraded.iter().map(|d| degraded(*d) as i32).collect(),
        rendered: None,
        deferred_tools: u32::try_from(answer.deferred).unwrap_or(u32::MAX),
    }
}

/// Renders the answer of BatchGetToolSchemas.
pub(super) fn schemas(tenant: &TenantId, found: &SchemaLookup) -> v1::BatchGetToolSchemasResponse {
    let snapshot = &*found.snapshot;
    let tool = |active: &Active| active_tool(tenant, snapshot, active, found.detail);
    v1::BatchGetToolSchemasResponse {
        tools: found.tools.iter().map(tool).collect(),
        refusals: found.refusals.iter().map(|r| refusal(snapshot, r)).collect(),
        active_set_handle: found.handle.clone(),
        handle_expire_time: Some(timestamp(found.handle_expires)),
        catalog_revision: snapshot.revision,
        rendered: None,
    }
}

/// Renders a change of the summary pool.
pub(super) fn pool(snapshot: &Snapshot, delta: &PoolDelta) -> v1::SummaryPoolDelta {
    let entry = |slot: &u32| {
        let tool = snapshot.tool(*slot);
        let model_name = tool.model_name.to_string();
        let summary = if delta.names_only { String::new() } else { tool.summary.to_string() };
        v1::SummaryEntry { model_name, summary }
    };
    v1::SummaryPoolDelta {
        revision: delta.revision,
        full: delta.full,
        added: delta.added.iter().map(entry).collect(),
        removed: delta.removed.clone(),
        pool_tokens: delta.pool_tokens,
        rendered: delta.rendered.clone(),
    }
}

/// Renders the verdict on one call.
pub(super) fn verdict(snapshot: &Snapshot, call_id: &str, verdict: &Verdict) -> v1::GateVerdict {
    let call_id = call_id.to_owned();
    match verdict {
        Ok(allowed) => {
            let tool = snapshot.tool(allowed.slot);
            v1::GateVerdict {
                call_id,
                allowed: true,
                server: tool.id.server.as_str().to_owned(),
                name: tool.id.name.as_str().to_owned(),
                model_name: tool.model_name.to_string(),
                arguments_json: allowed.arguments.clone().unwrap_or_default(),
                ..Default::default()
            }
        }
        Err(refused) => v1::GateVerdict { call_id, ..refused_verdict(refused) },
    }
}

/// Returns the protobuf value of a refusal code.
pub(super) fn code(code: RefusalCode) -> v1::RefusalCode {
    match code {
        RefusalCode::ToolNotAvailable => v1::RefusalCode::ToolNotAvailable,
        RefusalCode::UnknownTool => v1::RefusalCode::UnknownTool,
        RefusalCode::PreconditionUnmet => v1::RefusalCode::PreconditionUnmet,
        RefusalCode::ScopeMissing => v1::RefusalCode::ScopeMissing,
        RefusalCode::HandleExpired => v1::RefusalCode::HandleExpired,
        RefusalCode::HandleInvalid => v1::RefusalCode::HandleInvalid,
        RefusalCode::SchemaChanged => v1::RefusalCode::SchemaChanged,
        RefusalCode::ArgumentsInvalid => v1::RefusalCode::ArgumentsInvalid,
        RefusalCode::BelowThreshold => v1::RefusalCode::BelowThreshold,
        RefusalCode::BeyondTopK => v1::RefusalCode::BeyondTopK,
        RefusalCode::OverTokenBudget => v1::RefusalCode::OverTokenBudget,
        RefusalCode::BeyondCap => v1::RefusalCode::BeyondCap,
        RefusalCode::Excluded => v1::RefusalCode::Excluded,
        RefusalCode::Quarantined => v1::RefusalCode::Quarantined,
        RefusalCode::BelowCutoff => v1::RefusalCode::BelowCutoff,
        RefusalCode::KeptForCache => v1::RefusalCode::KeptForCache,
    }
}

fn refused_verdict(refused: &Refused) -> v1::GateVerdict {
    let violation = |v: &toolgate_core::schema::Violation| v1::ArgumentViolation {
        pointer: v.pointer.clone(),
        message: v.problem.clone(),
    };
    v1::GateVerdict {
        code: code(refused.code) as i32,
        message: refused.message.clone(),
        available_tools: refused.available.clone(),
        search_query: refused.search.clone(),
        input_schema_json: refused.input_schema.clone(),
        violations: refused.violations.iter().map(violation).collect(),
        unlock: refused.unlock.clone(),
        nearest_tool: refused.nearest.clone(),
        ..Default::default()
    }
}

fn active_tool(
    tenant: &TenantId,
    snapshot: &Snapshot,
    active: &Active,
    detail: Detail,
) -> v1::ActiveTool {
    let chosen = &active.chosen;
    let tool = snapshot.tool(chosen.slot);
    let definition = &tool.definition;
    let full = detail == Detail::Schemas && active.signature.is_none();
    let part = |text: &str| if full { text.to_owned() } else { String::new() };
    v1::ActiveTool {
        id: tool.id.resource_name(tenant),
        server: tool.id.server.as_str().to_owned(),
        name: tool.id.name.as_str().to_owned(),
        model_name: tool.model_name.to_string(),
        overlap: chosen.overlap,
        score: chosen.score,
        found_by: found_by(chosen.found_by) as i32,
        newly_promoted: chosen.newly_promoted,
        description: part(definition.description()),
        input_schema_json: part(definition.sent_schema()),
        output_schema_json: part(definition.output_schema()),
        annotations_json: part(definition.annotations()),
        signature: active.signature.as_ref().map_or_else(String::new, |s| s.text.clone()),
        signature_lossy: active.signature.as_ref().is_some_and(|signature| signature.lossy),
        schema_tokens: active.tokens,
        shown_tag: String::new(),
    }
}

fn refusal(snapshot: &Snapshot, refusal: &Refusal) -> v1::Refusal {
    let wire = v1::Refusal {
        code: code(refusal.code) as i32,
        message: refusal.message.clone(),
        unlock: refusal.unlock.clone(),
        overlap: refusal.overlap,
        ..Default::default()
    };
    match refusal.slot.map(|slot| snapshot.tool(slot)) {
        None => v1::Refusal { name: refusal.asked_for.clone(), ..wire },
        Some(tool) => v1::Refusal {
            server: tool.id.server.as_str().to_owned(),
            name: tool.id.name.as_str().to_owned(),
            model_name: tool.model_name.to_string(),
            ..wire
        },
    }
}

pub(super) fn accounting(account: &Account, conversation: &Conversation) -> v1::TokenAccounting {
    let used = conversation.utilisation(account);
    v1::TokenAccounting {
        tokenizer: TOKENIZER.to_owned(),
        full_catalog_tokens: account.full_catalog,
        phase1_tokens: account.phase1,
        phase2_tokens: account.phase2,
        saved_tokens: account.saved(),
        rho: account.rho,
        rho_full: account.rho_full,
        conversation_tokens: used.tokens,
        conversation_rho: used.rho,
        warnings: used.warnings.into_iter().map(|one| warning(one) as i32).collect(),
    }
}

fn warning(warning: ContextWarning) -> v1::ContextWarning {
    match warning {
        ContextWarning::LowUtilisation => v1::ContextWarning::LowUtilisation,
        ContextWarning::WindowNearlyFull => v1::ContextWarning::WindowNearlyFull,
    }
}

fn deferral(answer: &Answer) -> v1::Deferral {
    let Deferral { decision, deferred_tools, .. } = answer.deferral;
    let mode = match decision.mode {
        Mode::Always => v1::DeferralMode::Always,
        Mode::Auto(_) => v1::DeferralMode::Auto,
        Mode::Off => v1::DeferralMode::Off,
    };
    let source = match decision.source {
        Source::Default => v1::DeferralSource::Default,
        Source::Server => v1::DeferralSource::Server,
        Source::Tenant => v1::DeferralSource::Tenant,
        Source::Request => v1::DeferralSource::Request,
    };
    let reason = match decision.reason {
        Reason::Mode => v1::DeferralReason::Mode,
        Reason::KillSwitch => v1::DeferralReason::KillSwitch,
        Reason::ModelUnsupported => v1::DeferralReason::ModelUnsupported,
        Reason::UnknownProxy => v1::DeferralReason::UnknownProxy,
        Reason::OverThreshold => v1::DeferralReason::OverThreshold,
        Reason::UnderThreshold => v1::DeferralReason::UnderThreshold,
        Reason::NoWindow => v1::DeferralReason::NoWindow,
        Reason::Price => v1::DeferralReason::Price,
    };
    v1::Deferral {
        mode: mode as i32,
        source: source as i32,
        deferred: decision.deferred,
        reason: reason as i32,
        message: if decision.deferred || deferred_tools == 0 {
            decision.message()
        } else {
            format!("{}; {deferred_tools} had no room", decision.message())
        },
        deferrable_tokens: decision.cost,
        threshold_tokens: decision.threshold,
        offer_search: deferred_tools > 0 || !answer.pending.is_empty(),
        deferred_tools: u32::try_from(deferred_tools).unwrap_or(u32::MAX),
    }
}

fn found_by(found_by: FoundBy) -> v1::FoundBy {
    match found_by {
        FoundBy::Overlap => v1::FoundBy::Overlap,
        FoundBy::Name => v1::FoundBy::Name,
        FoundBy::Words => v1::FoundBy::Words,
        FoundBy::Pin => v1::FoundBy::Pin,
        FoundBy::AlwaysLoad => v1::FoundBy::AlwaysLoad,
        FoundBy::Kept => v1::FoundBy::Kept,
        FoundBy::NotDeferred => v1::FoundBy::NotDeferred,
        FoundBy::Memory => v1::FoundBy::Memory,
    }
}

fn degraded(degraded: Degraded) -> v1::DegradedReason {
    match degraded {
        Degraded::LexicalOnly => v1::DegradedReason::LexicalOnly,
        Degraded::StaleCatalog => v1::DegradedReason::StaleCatalog,
        Degraded::IntentTruncated => v1::DegradedReason::IntentTruncated,
    }
}

fn form(form: Form) -> v1::SearchForm {
    match form {
        Form::Select => v1::SearchForm::Select,
        Form::Prefix => v1::SearchForm::Prefix,
        Form::Keywords => v1::SearchForm::Keywords,
        Form::Natural => v1::SearchForm::Natural,
    }
}

fn timing(stage: &str, micros: u64) -> v1::StageTiming {
    v1::StageTiming { stage: stage.to_owned(), micros }
}

fn timestamp(seconds: u64) -> Timestamp {
    Timestamp { seconds: i64::try_from(seconds).unwrap_or(i64::MAX), nanos: 0 }
}
