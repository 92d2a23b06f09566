//! Answers of the service as JSON, for `--json`. Fields have the names of the API contract, enums their short names,
//! and schemas are JSON documents.

use serde_json::{Value, json};
use toolgate_client::v1;

pub(super) fn route(answer: &v1::RouteResponse) -> Value {
    json!({
        "active_tools": answer.active_tools.iter().map(active_tool).collect::<Vec<_>>(),
        "active_set_handle": answer.active_set_handle,
        "handle_expire_time": answer.handle_expire_time.as_ref().map(ToString::to_string),
        "catalog_revision": answer.catalog_revision,
        "refusals": answer.refusals.iter().map(refusal).collect::<Vec<_>>(),
        "pending_servers": answer.pending_servers,
        "accounting": answer.accounting.as_ref().map(accounting),
        "degraded": degraded(answer.degraded()),
        "deferral": answer.deferral.as_ref().map(deferral),
        "timings": answer.timings.iter()
            .map(|timing| json!({"stage": timing.stage, "micros": timing.micros}))
            .collect::<Vec<_>>(),
        "change": answer.change.as_ref().map(change),
        "ranking": answer.ranking.as_ref().map(ranking),
        "servers": answer.servers,
    })
}

fn ranking(ranking: &v1::Ranking) -> Value {
    let candidate = |one: &v1::RankedTool| {
        json!({
            "model_name": one.model_name,
            "score": one.score,
            "overlap": one.overlap,
            "words": one.words,
            "whole": one.whole,
            "clause": one.clause,
            "memory": one.memory,
            "last_called": one.last_called,
            "reserved": one.reserved,
            "found_by": short(one.found_by().as_str_name(), "FOUND_BY_"),
            "chosen": one.chosen,
        })
    };
    let candidates: Vec<_> = ranking.candidates.iter().map(candidate).collect();
    json!({"abstain_below": ranking.abstain_below, "candidates": candidates})
}

fn change(change: &v1::ActiveSetChange) -> Value {
    json!({
        "added": change.added,
        "kept": change.kept,
        "evictable": change.evictable,
        "removed": change.removed,
        "kept_for_cache": change.kept_for_cache,
        "cache_loss_tokens": change.cache_loss_tokens,
        "cache_saving_tokens": change.cache_saving_tokens,
    })
}

fn deferral(deferral: &v1::Deferral) -> Value {
    json!({
        "mode": short(deferral.mode().as_str_name(), "DEFERRAL_MODE_"),
        "source": short(deferral.source().as_str_name(), "DEFERRAL_SOURCE_"),
        "deferred": deferral.deferred,
        "reason": short(deferral.reason().as_str_name(), "DEFERRAL_REASON_"),
        "message": deferral.message,
        "deferrable_tokens": deferral.deferrable_tokens,
        "threshold_tokens": deferral.threshold_tokens,
        "offer_search": deferral.offer_search,
        "deferred_tools": deferral.deferred_tools,
    })
}

pub(super) fn search(answer: &v1::SearchToolsResponse) -> Value {
    json!({
        "tools": answer.tools.iter().map(active_tool).collect::<Vec<_>>(),
        "active_set_handle": answer.active_set_handle,
        "handle_expire_time": answer.handle_expire_time.as_ref().map(ToString::to_string),
        "catalog_revision": answer.catalog_revision,
        "pending_servers": answer.pending_servers,
        "refusals": answer.refusals.iter().map(refusal).collect::<Vec<_>>(),
        "form": short(answer.form().as_str_name(), "SEARCH_FORM_"),
        "message": non_empty(&answer.message),
        "searched_tools": answer.searched_tools,
        "deferred_tools": answer.deferred_tools,
        "lacking_required_terms": answer.lacking_required_terms,
        "degraded": degraded(answer.degraded()),
    })
}

fn degraded(reasons: impl Iterator<Item = v1::DegradedReason>) -> Vec<String> {
    reasons.map(|reason| short(reason.as_str_name(), "DEGRADED_REASON_")).collect()
}

fn active_tool(tool: &v1::ActiveTool) -> Value {
    json!({
        "id": tool.id,
        "server": tool.server,
        "name": tool.name,
        "model_name": tool.model_name,
        "overlap": tool.overlap,
        "score": tool.score,
        "found_by": short(tool.found_by().as_str_name(), "FOUND_BY_"),
        "newly_promoted": tool.newly_promoted,
        "description": non_empty(&tool.description),
        "input_schema": document(&tool.input_schema_json),
        "output_schema": document(&tool.output_schema_json),
        "annotations": document(&tool.annotations_json),
        "signature": non_empty(&tool.signature),
        "signature_lossy": tool.signature_lossy,
        "schema_tokens": tool.schema_tokens,
    })
}

fn refusal(refusal: &v1::Refusal) -> Value {
    json!({
        "server": refusal.server,
        "name": refusal.name,
        "model_name": refusal.model_name,
        "code": refusal_code(refusal.code()),
        "message": refusal.message,
        "unlock": refusal.unlock,
        "overlap": refusal.overlap,
    })
}

fn accounting(tokens: &v1::TokenAccounting) -> Value {
    json!({
        "tokenizer": tokens.tokenizer,
        "full_catalog_tokens": tokens.full_catalog_tokens,
        "phase1_tokens": tokens.phase1_tokens,
        "phase2_tokens": tokens.phase2_tokens,
        "saved_tokens": tokens.saved_tokens,
        "rho": tokens.rho,
        "rho_full": tokens.rho_full,
        "conversation_tokens": tokens.conversation_tokens,
        "conversation_rho": tokens.conversation_rho,
        "warnings": tokens.warnings()
            .map(|warning| short(warning.as_str_name(), "CONTEXT_WARNING_"))
            .collect::<Vec<_>>(),
    })
}

pub(super) fn verdict(verdict: &v1::GateVerdict) -> Value {
    let code = (!verdict.allowed).then(|| refusal_code(verdict.code()));
    json!({
        "call_id": verdict.call_id,
        "allowed": verdict.allowed,
        "server": non_empty(&verdict.server),
        "name": non_empty(&verdict.name),
        "code": code,
        "message": non_empty(&verdict.message),
        "arguments": document(&verdict.arguments_json),
        "available_tools": verdict.available_tools,
        "nearest_tool": non_empty(&verdict.nearest_tool),
        "search_query": non_empty(&verdict.search_query),
        "input_schema": document(&verdict.input_schema_json),
        "violations": verdict.violations.iter()
            .map(|violation| json!({"pointer": violation.pointer, "message": violation.message}))
            .collect::<Vec<_>>(),
        "unlock": verdict.unlock,
    })
}

pub(super) fn tool(tool: &v1::Tool) -> Value {
    json!({
        "id": tool.id,
        "server": tool.server,
        "name": tool.name,
        "model_name": tool.model_name,
        "summary": tool.summary,
        "definition": document(&tool.definition_json),
        "hash": tool.hash,
        "schema_tokens": tool.schema_tokens,
        "summary_tokens": tool.summary_tokens,
        "quarantined": tool.quarantined,
        "always_load": tool.always_load,
        "critical": tool.critical,
        "required_scopes": tool.required_scopes,
    })
}

pub(super) fn registration(answer: &v1::RegisterServerResponse) -> Value {
    json!({
        "server": answer.server.as_ref().map(|server| json!({
            "id": server.id,
            "name": server.name,
            "tool_count": server.tool_count,
            "etag": server.etag,
            "revision": server.revision,
        })),
        "catalog_revision": answer.catalog_revision,
        "outcomes": answer.outcomes.iter().map(outcome).collect::<Vec<_>>(),
        "replayed": answer.replayed,
    })
}

fn outcome(outcome: &v1::ToolOutcome) -> Value {
    json!({
        "name": outcome.name,
        "kind": short(outcome.kind().as_str_name(), "OUTCOME_KIND_"),
        "model_name": non_empty(&outcome.model_name),
        "old_hash": non_empty(&outcome.old_hash),
        "new_hash": non_empty(&outcome.new_hash),
        "field": non_empty(&outcome.field),
        "message": non_empty(&outcome.message),
        "findings": outcome.findings,
    })
}

/// Formats the usage in the span of this name.
pub(super) fn usage(span: &str, answer: &v1::GetUsageResponse) -> Value {
    let refusals = answer.refusals.iter();
    json!({
        "span": span,
        "start_time": answer.start_time.as_ref().map(ToString::to_string),
        "end_time": answer.end_time.as_ref().map(ToString::to_string),
        "route_calls": answer.route_calls,
        "allowed_calls": answer.allowed_calls,
        "refused_calls": answer.refused_calls,
        "full_catalog_tokens": answer.full_catalog_tokens,
        "phase1_tokens": answer.phase1_tokens,
        "phase2_tokens": answer.phase2_tokens,
        "phase2_new_tokens": answer.phase2_new_tokens,
        "lookup_calls": answer.lookup_calls,
        "on_demand_tokens": answer.on_demand_tokens,
        "saved_gross_tokens": answer.saved_gross_tokens,
        "saved_net_tokens": answer.saved_net_tokens,
        "refusal_outcomes": answer.refusal_outcomes.as_ref().map(refusal_outcomes),
        "search_outcomes": answer.search_outcomes.as_ref().map(search_outcomes),
        "refusals": refusals
            .map(|count| json!({"code": refusal_code(count.code()), "calls": count.calls}))
            .collect::<Vec<_>>(),
        "deferral": short(answer.deferral().as_str_name(), "DEFERRAL_VERDICT_"),
        "buckets": answer.buckets.iter().map(usage_bucket).collect::<Vec<_>>(),
    })
}

fn refusal_outcomes(outcomes: &v1::RefusalOutcomes) -> Value {
    json!({
        "mended_calls": outcomes.mended_calls,
        "asked_calls": outcomes.asked_calls,
        "given_up_calls": outcomes.given_up_calls,
    })
}

fn search_outcomes(outcomes: &v1::SearchOutcomes) -> Value {
    json!({"searches": outcomes.searches, "hits": outcomes.hits, "misses": outcomes.misses})
}

fn usage_bucket(bucket: &v1::UsageBucket) -> Value {
    json!({
        "start_time": bucket.start_time.as_ref().map(ToString::to_string),
        "route_calls": bucket.route_calls,
        "allowed_calls": bucket.allowed_calls,
        "refused_calls": bucket.refused_calls,
        "full_catalog_tokens": bucket.full_catalog_tokens,
        "phase1_tokens": bucket.phase1_tokens,
        "phase2_tokens": bucket.phase2_tokens,
        "phase2_new_tokens": bucket.phase2_new_tokens,
        "lookup_calls": bucket.lookup_calls,
        "on_demand_tokens": bucket.on_demand_tokens,
        "saved_gross_tokens": bucket.saved_gross_tokens,
        "saved_net_tokens": bucket.saved_net_tokens,
    })
}

/// Returns the name of an enum value without its prefix, in lower case.
pub(super) fn short(name: &str, prefix: &str) -> String {
    name.strip_prefix(prefix).unwrap_or(name).to_lowercase()
}

/// Returns the name of a refusal as in the API contract's documentation, such as `UNKNOWN_TOOL`.
pub(super) fn refusal_code(code: v1::RefusalCode) -> &'static str {
    let name = code.as_str_name();
    name.strip_prefix("REFUSAL_CODE_").unwrap_or(name)
}

fn non_empty(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// Parses a JSON text. An invalid text becomes a string.
fn document(text: &str) -> Value {
    if text.is_empty() {
        return Value::Null;
    }
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}
