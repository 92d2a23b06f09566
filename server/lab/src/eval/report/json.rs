//! Report for machines. Keys are added and never renamed, so that earlier reports stay comparable.

use serde_json::{Map, Value, json};

use super::Report;
use crate::eval::abstention::{Abstention, Point};
use crate::eval::bootstrap::{CONFIDENCE, Estimate, Interval};
use crate::eval::comparison::{Comparison, Row};
use crate::eval::contexts::ContextRow;
use crate::eval::conversation::{Conversation, Layout, Played};
use crate::eval::failures::Failure;
use crate::eval::fits::FitRow;
use crate::eval::latency::Latency;
use crate::eval::measured::{Group, Measured};
use crate::eval::metrics::Measure;
use crate::eval::stock::Rejected;
use crate::eval::visible::VisibleRow;
use toolgate_core::tokens::TOKENIZER;

fn fit(row: &FitRow) -> Value {
    let share = |share: Option<Estimate>| {
        share.map(|share| json!({"value": share.value, "interval": share.interval.map(interval)}))
    };
    json!({
        "fit": row.fit,
        "labelled_queries": row.labelled,
        "first_right": share(row.first),
        "among_contenders": share(row.among),
        "no_tool_queries": row.no_tool,
    })
}

fn visible(row: &VisibleRow) -> Value {
    json!({
        "token_budget": row.budget,
        "full_schemas": row.head,
        "visible": row.visible.value,
        "interval": row.visible.interval.map(interval),
        "tools": row.tools,
        "tokens": row.tokens,
    })
}

fn context(row: &ContextRow) -> Value {
    json!({"form": row.form, "kinds": row.kinds.iter().map(group).collect::<Vec<_>>()})
}

impl Report {
    /// Returns the report as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "metrics": self.metrics.as_ref().map(means),
            "intervals": self.metrics.as_ref().map(intervals),
            "baseline": self.baseline.as_ref().map(means),
            "clauses": self.clauses.as_ref().map(means),
            "ablations": self.ablations_json(),
            "comparisons": self.comparisons.iter().map(comparison).collect::<Vec<_>>(),
            "abstention": self.abstention.as_ref().map(|held| self.abstention_json(held)),
            "fits": self.fits.iter().map(fit).collect::<Vec<_>>(),
            "failures": Failure::ALL
                .map(|one| (one.name().to_owned(), json!(self.failures.count(one))))
                .into_iter()
                .collect::<Map<_, _>>(),
            "kinds": self.kinds.iter().map(group).collect::<Vec<_>>(),
            "languages": self.languages.iter().map(group).collect::<Vec<_>>(),
            "visible": self.visible.iter().map(visible).collect::<Vec<_>>(),
            "contexts": self.contexts.iter().map(context).collect::<Vec<_>>(),
            "conversation": self.conversation.as_ref().map(conversation),
            "counts": self.counts_json(),
            "token_tax": self.token_tax_json(),
            "latency": latency(&self.latency),
            "statistics": {
                "resamples": self.bootstrap.resamples,
                "seed": self.bootstrap.seed,
                "confidence": CONFIDENCE,
            },
            "router": {
                "threshold": decimal(self.router.threshold),
                "ratio": decimal(self.router.relative_cutoff),
                "top_k": self.router.top_k,
            },
            "encoder_fingerprint": self.encoder,
            "seconds": {
                "check": self.times.check.as_secs_f64(),
                "embed": self.times.embed.as_secs_f64(),
                "whole": self.times.whole.as_secs_f64(),
            },
            "rejected": self.rejected.iter().map(rejected).collect::<Vec<_>>(),
            "renamed_servers": self.renamed.iter()
                .map(|renamed| json!({"from": renamed.from, "to": renamed.to.as_str()}))
                .collect::<Vec<_>>(),
            "missing_relevant": self.counts.missing,
        })
    }

    fn token_tax_json(&self) -> Value {
        json!({
            "tokenizer": TOKENIZER,
            "full_catalog_tokens": self.tokens.schemas,
            "largest_schema_tokens": self.tokens.largest_schema,
            "summary_pool_tokens": self.tokens.pool,
        })
    }

    fn ablations_json(&self) -> Value {
        let named = self.ablations.iter().map(|(name, of)| ((*name).to_owned(), means(of)));
        named.collect::<Map<_, _>>().into()
    }

    fn counts_json(&self) -> Value {
        let counts = &self.counts;
        json!({
            "servers": counts.servers,
            "tools": counts.tools,
            "tools_with_packs": counts.packed,
            "rejected_tools": self.rejected.len(),
            "queries": counts.queries,
            "labelled_queries": counts.labelled,
            "no_tool_queries": counts.no_tool,
            "truncated_queries": counts.truncated_queries,
            "missing_relevant": counts.missing.len(),
        })
    }

    /// Returns the separation of both kinds of query. The rates at the current setting are counted from the active
    /// sets, and the curve from overlaps.
    fn abstention_json(&self, held: &Abstention) -> Value {
        let accepts = self.no_tool.as_ref().and_then(|m| m.get(Measure::FalseAccept));
        let rejects = self.metrics.as_ref().and_then(|m| m.get(Measure::SetEmpty));
        let value = |estimate: Option<Estimate>| estimate.map(|estimate| estimate.value);
        let bounds = |estimate: Option<Estimate>| estimate.and_then(|e| e.interval).map(interval);
        let point = |point: &Point| {
            json!({
                "threshold": point.threshold,
                "false_accepts": point.false_accepts,
                "false_rejects": point.false_rejects,
            })
        };
        json!({
            "labelled_queries": held.labelled,
            "no_tool_queries": held.no_tool,
            "auc": held.auc.value,
            "auc_interval": held.auc.interval.map(interval),
            "false_accepts": value(accepts),
            "false_accepts_interval": bounds(accepts),
            "false_rejects": value(rejects),
            "false_rejects_interval": bounds(rejects),
            "curve": held.curve.iter().map(point).collect::<Vec<_>>(),
        })
    }
}

/// Rounds a setting to the decimals that were written: .28, not .2800000011920929.
fn decimal(value: f32) -> f64 {
    (f64::from(value) * 1e6).round() / 1e6
}

fn means(measured: &Measured) -> Value {
    let means = measured.means.iter();
    means.map(|(measure, mean)| (measure.name(), json!(mean.value))).collect::<Map<_, _>>().into()
}

fn intervals(measured: &Measured) -> Value {
    let means = measured.means.iter();
    let known = means.filter_map(|(measure, mean)| Some((measure.name(), mean.interval?)));
    known.map(|(name, of)| (name, interval(of))).collect::<Map<_, _>>().into()
}

fn interval(interval: Interval) -> Value {
    json!([interval.low, interval.high])
}

fn comparison(compared: &Comparison) -> Value {
    let row = |row: &Row| {
        let values = json!({
            "this": row.this,
            "other": row.other,
            "difference": row.difference.value,
            "interval": row.difference.interval.map(interval),
            "p": row.p,
        });
        (row.measure.name(), values)
    };
    let measures: Map<String, Value> = compared.rows.iter().map(row).collect();
    json!({"with": compared.name, "measures": measures})
}

fn group(group: &Group) -> Value {
    let part = |measured: &Measured| {
        json!({
            "queries": measured.queries,
            "metrics": means(measured),
            "intervals": intervals(measured),
        })
    };
    json!({
        "name": group.name,
        "labelled": group.labelled.as_ref().map(part),
        "no_tool": group.no_tool.as_ref().map(part),
    })
}

fn latency(latency: &Latency) -> Value {
    json!({
        "rank_and_cut_us": {
            "p50": latency.p50,
            "p90": latency.p90,
            "p99": latency.p99,
            "max": latency.max,
        },
        "embed_us_per_query": latency.queries.micros_a_text(),
        "embed_us_per_summary": latency.summaries.micros_a_text(),
    })
}

fn conversation(played: &Conversation) -> Value {
    let layout = |layout: &Layout| {
        json!({
            "layout": layout.name,
            "tokens": layout.tokens,
            "cached_tokens": layout.cached,
            "hit_rate": layout.hit_rate(),
            "priced_tokens": layout.priced(),
            "most_tools": layout.tools,
            "most_schema_tokens": layout.schema_tokens,
            "turns_without_a_right_tool": layout.missed,
        })
    };
    let with = |played: &Played| {
        json!({
            "history_tokens": played.history,
            "layouts": played.layouts().map(layout),
            "default_is_dearer": played.is_dearer(),
        })
    };
    let histories: Vec<_> = played.played.iter().map(with).collect();
    json!({"turns": played.turns, "histories": histories})
}

fn rejected(tool: &Rejected) -> Value {
    let rejection = &tool.rejection;
    json!({
        "server": tool.server,
        "name": rejection.name,
        "field": rejection.field,
        "problem": rejection.problem,
    })
}
