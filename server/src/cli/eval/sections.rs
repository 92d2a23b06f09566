//! An evaluation as tables with short explanations. The terminal and Markdown show the same tables.

use crate::cli::table::Column;
use crate::cli::text::{counted, grouped};
use toolgate_lab::eval::Report;
use toolgate_lab::eval::abstention::Point;
use toolgate_lab::eval::bootstrap::Estimate;
use toolgate_lab::eval::comparison::{Comparison, Row};
use toolgate_lab::eval::contexts::ContextRow;
use toolgate_lab::eval::conversation::{ANSWER_TOKENS, Conversation, Layout, Played};
use toolgate_lab::eval::failures::Failure;
use toolgate_lab::eval::fits::FitRow;
use toolgate_lab::eval::measured::{Group, Measured};
use toolgate_lab::eval::metrics::Measure;
use toolgate_lab::eval::visible::VisibleRow;

/// Number of kinds or languages that are shown. The JSON report has all.
const GROUPS_SHOWN: usize = 40;

/// Step between the points of the curve that the table shows. The JSON report has all points.
const CURVE_STEP: usize = 5;

/// A table with its title and explanation.
#[derive(Debug, Default)]
pub(super) struct Section {
    /// Title, for formats with headings.
    pub(super) title: String,
    /// Sentence above the table; may be empty.
    pub(super) words: String,
    /// Column headers.
    pub(super) columns: Vec<Column>,
    /// Cells, row by row.
    pub(super) rows: Vec<Vec<String>>,
}

/// Returns a section for each measured part.
pub(super) fn sections(report: &Report) -> Vec<Section> {
    let parts = [
        ranking(report),
        active_set(report),
        visible(report),
        abstention(report),
        fits(report),
        failures(report),
    ];
    let comparisons = report.comparisons.iter().map(comparison);
    let groups = [groups("KIND", &report.kinds), groups("LANGUAGE", &report.languages)];
    let conversation = report.conversation.as_ref().map(conversation);
    let contexts = (!report.contexts.is_empty()).then(|| contexts(&report.contexts));
    let parts = parts.into_iter().flatten().chain(comparisons);
    let groups = groups.into_iter().flatten();
    parts.chain(groups).chain(contexts).chain(conversation).collect()
}

/// Formats the value of a measure.
pub(super) fn shown(measure: Measure, value: f64) -> String {
    match measure {
        Measure::SetTokens => grouped(value.round() as u64),
        Measure::SetSize => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

const RANKING: [Measure; 7] = [
    Measure::Recall(1),
    Measure::Recall(3),
    Measure::Recall(5),
    Measure::Recall(10),
    Measure::Recall(20),
    Measure::Ndcg,
    Measure::ReciprocalRank,
];

fn ranking(report: &Report) -> Option<Section> {
    Some(Section {
        title: "Ranking".to_owned(),
        words: String::new(),
        columns: vec![
            Column::Left("SUMMARIES"),
            Column::Right("RECALL@1"),
            Column::Right("@3"),
            Column::Right("@5"),
            Column::Right("@10"),
            Column::Right("@20"),
            Column::Right("NDCG@10"),
            Column::Right("MRR"),
        ],
        rows: ways(report, &RANKING)?,
    })
}

const SET: [Measure; 6] = [
    Measure::SetSize,
    Measure::SetPrecision,
    Measure::SetRecall,
    Measure::SetWhole,
    Measure::SetEmpty,
    Measure::SetTokens,
];

fn active_set(report: &Report) -> Option<Section> {
    let router = report.router;
    Some(Section {
        title: "Active set".to_owned(),
        words: format!(
            "The sets that Route would send (router.threshold {}, router.relative_cutoff {}, router.top_k {}).",
            router.threshold, router.relative_cutoff, router.top_k
        ),
        columns: vec![
            Column::Left("ACTIVE SET"),
            Column::Right("TOOLS"),
            Column::Right("PRECISION"),
            Column::Right("RECALL"),
            Column::Right("WHOLE"),
            Column::Right("EMPTY"),
            Column::Right("TOKENS"),
        ],
        rows: ways(report, &SET)?,
    })
}

/// Returns a row for each variant of the retrieval. The product's own row has confidence intervals.
fn ways(report: &Report, measures: &[Measure]) -> Option<Vec<Vec<String>>> {
    let metrics = report.metrics.as_ref()?;
    let estimates: Vec<_> = measures.iter().map(|m| (*m, metrics.get(*m))).collect();
    let mut rows = with_interval("toolgate", &estimates);
    let others = [("plain", &report.baseline), ("toolgate, by clauses", &report.clauses)];
    let others = others.into_iter().filter_map(|(name, other)| Some((name, other.as_ref()?)));
    let ablations = report.ablations.iter().map(|(name, other)| (*name, other));
    for (name, other) in others.chain(ablations) {
        let values = measures.iter().map(|measure| value(*measure, other.get(*measure)));
        rows.push(std::iter::once(name.to_owned()).chain(values).collect());
    }
    Some(rows)
}

fn value(measure: Measure, estimate: Option<Estimate>) -> String {
    estimate.map_or_else(|| "-".to_owned(), |estimate| shown(measure, estimate.value))
}

/// Returns a row of values, and rows with the bounds of their confidence intervals if there are any.
fn with_interval(name: &str, estimates: &[(Measure, Option<Estimate>)]) -> Vec<Vec<String>> {
    let row = |name: &str, of: &dyn Fn(Estimate) -> Option<f64>| -> Vec<String> {
        let cell = |(measure, estimate): &(Measure, Option<Estimate>)| {
            let value = estimate.and_then(of);
            value.map_or_else(|| "-".to_owned(), |value| shown(*measure, value))
        };
        std::iter::once(name.to_owned()).chain(estimates.iter().map(cell)).collect()
    };
    let mut rows = vec![row(name, &|estimate| Some(estimate.value))];
    if estimates.iter().any(|(_, estimate)| estimate.is_some_and(|e| e.interval.is_some())) {
        rows.push(row("95% from", &|estimate| estimate.interval.map(|interval| interval.low)));
        rows.push(row("95% to", &|estimate| estimate.interval.map(|interval| interval.high)));
    }
    rows
}

fn abstention(report: &Report) -> Option<Section> {
    let get = |measured: &Option<Measured>, measure| measured.as_ref().and_then(|m| m.get(measure));
    let accepts = get(&report.no_tool, Measure::FalseAccept)?;
    let rejects = get(&report.metrics, Measure::SetEmpty);
    let auc = report.abstention.as_ref().map(|held| held.auc);
    let cells =
        [(Measure::Ndcg, auc), (Measure::FalseAccept, Some(accepts)), (Measure::SetEmpty, rejects)];
    Some(Section {
        title: "Abstention".to_owned(),
        words: format!(
            "A false accept sends a tool to a query that needs none ({} here), a false reject none to a query \
             that needs some ({}). AUC: how often the latter has the better overlap.",
            grouped(report.counts.no_tool as u64),
            grouped(report.counts.labelled as u64),
        ),
        columns: vec![
            Column::Left("ABSTENTION"),
            Column::Right("AUC"),
            Column::Right("FALSE ACCEPTS"),
            Column::Right("FALSE REJECTS"),
        ],
        rows: with_interval("toolgate", &cells),
    })
}

fn with_range(share: Option<Estimate>) -> String {
    match share {
        None => "-".to_owned(),
        Some(Estimate { value, interval: None }) => format!("{value:.3}"),
        Some(Estimate { value, interval: Some(interval) }) => {
            format!("{value:.3} ({:.3}-{:.3})", interval.low, interval.high)
        }
    }
}

fn fits(report: &Report) -> Option<Section> {
    let row = |row: &FitRow| {
        let [labelled, no_tool] = [row.labelled, row.no_tool].map(|count| grouped(count as u64));
        vec![row.fit.to_owned(), labelled, with_range(row.first), with_range(row.among), no_tool]
    };
    (!report.fits.is_empty()).then(|| Section {
        title: "Fit".to_owned(),
        words: "What Route says of how well the best tool fits, and how often it, or one of the contenders, is right."
            .to_owned(),
        columns: vec![
            Column::Left("FIT"),
            Column::Right("LABELLED"),
            Column::Right("FIRST RIGHT"),
            Column::Right("A CONTENDER"),
            Column::Right("NO TOOL"),
        ],
        rows: report.fits.iter().map(row).collect(),
    })
}

fn failures(report: &Report) -> Option<Section> {
    let row = |failure: Failure| {
        let reason = match failure {
            Failure::MultiHop => "several tools needed, some found",
            Failure::StrictCut => "ranked within top_k, but cut",
            Failure::Ambiguous => "other tools fit about equally",
            Failure::PoorText => "its text does not say it",
        };
        let count = report.failures.count(failure);
        vec![failure.name().to_owned(), grouped(count as u64), reason.to_owned()]
    };
    (!report.failures.counts.is_empty()).then(|| Section {
        title: "Failures".to_owned(),
        words: "Queries whose active set lacks a relevant tool of the catalog, each by the first reason that holds."
            .to_owned(),
        columns: vec![
            Column::Left("FAILURE"),
            Column::Right("QUERIES"),
            Column::Left("REASON"),
        ],
        rows: Failure::ALL.into_iter().map(row).collect(),
    })
}

fn visible(report: &Report) -> Option<Section> {
    let row = |row: &VisibleRow| {
        let head = match row.head {
            None => "schemas alone".to_owned(),
            Some(head) => format!("{}, signatures", counted(head, "schema")),
        };
        vec![
            grouped(row.budget.into()),
            head,
            with_range(Some(row.visible)),
            format!("{:.1}", row.tools),
            format!("{:.0}", row.tokens),
        ]
    };
    (!report.visible.is_empty()).then(|| Section {
        title: "Visible".to_owned(),
        words: "The share of the right tools that the model sees, for so many tokens at most."
            .to_owned(),
        columns: vec![
            Column::Right("BUDGET"),
            Column::Left("SPLIT"),
            Column::Right("VISIBLE"),
            Column::Right("TOOLS"),
            Column::Right("TOKENS"),
        ],
        rows: report.visible.iter().map(row).collect(),
    })
}

/// Returns the shares of false accepts and false rejects at other thresholds. Only Markdown shows them, because a
/// terminal has too little room.
pub(super) fn curve(report: &Report) -> Option<Section> {
    let held = report.abstention.as_ref()?;
    let row = |point: &Point| {
        let cells = [point.false_accepts, point.false_rejects].map(|share| format!("{share:.3}"));
        std::iter::once(format!("{:.2}", point.threshold)).chain(cells).collect()
    };
    Some(Section {
        title: "Thresholds".to_owned(),
        words: "What other thresholds of the best overlap would accept and reject.".to_owned(),
        columns: vec![
            Column::Right("THRESHOLD"),
            Column::Right("FALSE ACCEPTS"),
            Column::Right("FALSE REJECTS"),
        ],
        rows: held.curve.iter().step_by(CURVE_STEP).map(row).collect(),
    })
}

fn comparison(compared: &Comparison) -> Section {
    let row = |row: &Row| {
        let bound = |value: Option<f64>| {
            value.map_or_else(|| "-".to_owned(), |value| signed(row.measure, value))
        };
        let interval = row.difference.interval;
        vec![
            row.measure.name(),
            shown(row.measure, row.this),
            shown(row.measure, row.other),
            signed(row.measure, row.difference.value),
            bound(interval.map(|interval| interval.low)),
            bound(interval.map(|interval| interval.high)),
            format!("{:.4}", row.p),
        ]
    };
    Section {
        title: format!("Compared with {}", compared.name),
        words: format!(
            "Compared with {}, query by query; p is how likely such a difference is by chance.",
            compared.name
        ),
        columns: vec![
            Column::Left("MEASURE"),
            Column::Right("THIS"),
            Column::Right("OTHER"),
            Column::Right("DIFFERENCE"),
            Column::Right("95% FROM"),
            Column::Right("TO"),
            Column::Right("P"),
        ],
        rows: compared.rows.iter().map(row).collect(),
    }
}

fn signed(measure: Measure, value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "+" };
    format!("{sign}{}", shown(measure, value.abs()))
}

/// Measures that are shown for a group of labelled queries.
const GROUP: [Measure; 7] = [
    Measure::Recall(1),
    Measure::Recall(5),
    Measure::Recall(10),
    Measure::Ndcg,
    Measure::SetSize,
    Measure::SetRecall,
    Measure::SetEmpty,
];

fn group_row(group: &Group) -> Vec<String> {
    let cell = |measured: &Option<Measured>, measure: Measure| {
        value(measure, measured.as_ref().and_then(|measured| measured.get(measure)))
    };
    let count = |measured: &Option<Measured>| {
        measured.as_ref().map_or_else(|| "-".to_owned(), |m| grouped(m.queries as u64))
    };
    let mut cells = vec![group.name.clone(), count(&group.labelled)];
    cells.extend(GROUP.map(|measure| cell(&group.labelled, measure)));
    cells.extend([count(&group.no_tool), cell(&group.no_tool, Measure::FalseAccept)]);
    cells
}

/// Measures that are shown for a kind of turn.
const TURN: [Measure; 4] =
    [Measure::Recall(1), Measure::Recall(5), Measure::Recall(10), Measure::SetRecall];

/// Returns the measures of conversations' turns by what they are routed by, kind by kind.
fn contexts(rows: &[ContextRow]) -> Section {
    let row = |form: &'static str, kind: &Group| {
        let measured = kind.labelled.as_ref().or(kind.no_tool.as_ref());
        let cell = |measure: Measure| {
            let estimate = measured.and_then(|measured| measured.get(measure));
            estimate.map_or_else(|| "-".to_owned(), |estimate| with_bounds(measure, estimate))
        };
        let turns = measured.map_or(0, |measured| measured.queries as u64);
        let mut cells = vec![form.to_owned(), kind.name.clone(), grouped(turns)];
        cells.extend(TURN.map(cell));
        cells.push(cell(Measure::FalseAccept));
        cells
    };
    let of_form = |form: &ContextRow| -> Vec<Vec<String>> {
        form.kinds.iter().map(|kind| row(form.form, kind)).collect()
    };
    Section {
        title: "Turns of conversations".to_owned(),
        words: "The turns by what they are routed by beside the message, with 95% intervals."
            .to_owned(),
        columns: vec![
            Column::Left("ROUTED BY"),
            Column::Left("KIND"),
            Column::Right("TURNS"),
            Column::Right("RECALL@1"),
            Column::Right("@5"),
            Column::Right("@10"),
            Column::Right("SET RECALL"),
            Column::Right("FALSE ACCEPTS"),
        ],
        rows: rows.iter().flat_map(of_form).collect(),
    }
}

fn with_bounds(measure: Measure, estimate: Estimate) -> String {
    let value = shown(measure, estimate.value);
    estimate.interval.map_or(value.clone(), |bounds| {
        let low = shown(measure, bounds.low);
        format!("{value} ({low}-{})", shown(measure, bounds.high))
    })
}

/// Returns the measures by a field of the queries, or `None` if no query has the field.
fn groups(field: &'static str, groups: &[Group]) -> Option<Section> {
    let more = groups.len().saturating_sub(GROUPS_SHOWN);
    let section = || Section {
        title: format!("By {}", field.to_lowercase()),
        words: if more > 0 {
            format!("{more} more are in the JSON report.")
        } else {
            String::new()
        },
        columns: vec![
            Column::Left(field),
            Column::Right("LABELLED"),
            Column::Right("RECALL@1"),
            Column::Right("@5"),
            Column::Right("@10"),
            Column::Right("NDCG@10"),
            Column::Right("SET"),
            Column::Right("SET RECALL"),
            Column::Right("FALSE REJECTS"),
            Column::Right("NO TOOL"),
            Column::Right("FALSE ACCEPTS"),
        ],
        rows: groups.iter().take(GROUPS_SHOWN).map(group_row).collect(),
    };
    (!groups.is_empty()).then(section)
}

/// Returns the use of a provider's prompt cache in a conversation, by layout and by length of the history.
fn conversation(conversation: &Conversation) -> Section {
    let turns = conversation.turns.max(1) as f64;
    let row = |history: u32, layout: &Layout| {
        vec![
            layout.name.to_owned(),
            grouped(history.into()),
            grouped((layout.tokens as f64 / turns).round() as u64),
            format!("{:.1}%", 100.0 * layout.hit_rate()),
            grouped((layout.priced() / turns).round() as u64),
            layout.tools.to_string(),
            grouped(layout.schema_tokens),
            layout.missed.to_string(),
        ]
    };
    let rows = |played: &Played| played.layouts().map(|layout| row(played.history, layout));
    Section {
        title: "Conversation".to_owned(),
        words: format!(
            "A conversation of {}, with one tool registered halfway, after so many tokens of messages; each turn's call \
             and answer are taken as {ANSWER_TOKENS} tokens, a cached token as a tenth of another:",
            counted(conversation.turns, "turn"),
        ),
        columns: vec![
            Column::Left("PROMPT"),
            Column::Right("HISTORY"),
            Column::Right("TOKENS A TURN"),
            Column::Right("FROM THE CACHE"),
            Column::Right("PRICED AS"),
            Column::Right("MOST TOOLS"),
            Column::Right("MOST SCHEMAS"),
            Column::Right("TURNS WITHOUT A RIGHT TOOL"),
        ],
        rows: conversation.played.iter().flat_map(rows).collect(),
    }
}
