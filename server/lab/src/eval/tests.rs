//! Tests of whole evaluations with a bag-of-words encoder.

use super::metrics::{CUTS, Measure};
use super::*;
use toolgate_routing::encoder::words::WordEncoder;

fn server(name: &str, tools: &[(&str, &str)]) -> CatalogServer {
    let tool = |(name, description): &(&str, &str)| {
        let text = format!(
            r#"{{"name": "{name}", "description": "{description}", "inputSchema": {{"type": "object"}}}}"#
        );
        text.into()
    };
    let tools = tools.iter().map(tool).collect();
    CatalogServer { name: name.to_owned(), description: String::new(), tools }
}

fn query(text: &str, relevant: &[&str]) -> LabelledQuery {
    let relevant = relevant.iter().map(|id| (*id).to_owned()).collect();
    LabelledQuery { text: text.to_owned(), relevant, ..LabelledQuery::default() }
}

async fn run(queries: Vec<LabelledQuery>) -> Evaluated {
    let servers = vec![
        server("git.hub", &[("list_issues", "open problems"), ("merge/branch", "joins lines")]),
        server("mail", &[("send", "letter to people"), (" ", "refused")]),
    ];
    let evaluation = Evaluation {
        servers,
        queries,
        no_tool: vec![LabelledQuery { needs_no_tool: true, ..query("who wrote faust", &[]) }],
        limits: LimitsConfig::default(),
        packs: None,
        router: RouterConfig::default(),
        bootstrap: Bootstrap { resamples: 50, seed: 1 },
        with_baseline: true,
        with_clauses: true,
        with_ablations: true,
        with_visible: true,
        conversation: 2,
    };
    evaluation
        .run(Sides { passages: &WordEncoder, queries: &WordEncoder }, &|_, _| {})
        .await
        .expect("evaluated")
}

fn values(measured: &Measured, measures: &[Measure]) -> Vec<f64> {
    let value = |measure: &Measure| measured.get(*measure).expect("measured").value;
    measures.iter().map(value).collect()
}

#[tokio::test]
async fn queries_are_ranked_whole_and_measured() {
    let queries = vec![
        query("letter people", &["mail/send"]),
        query("joins lines", &["git.hub/merge/branch", "mail/ "]),
        query("nothing of the kind", &[]),
    ];
    let Evaluated { ranked, report, .. } = run(queries).await;
    assert_eq!(ranked.len(), 3);
    assert!(ranked.iter().all(|one| one.ranked.len() == 3));
    assert_eq!(ranked[0].ranked[0], "mail/send");
    assert_eq!(ranked[1].ranked[0], "git.hub/merge/branch");
    assert!(ranked[0].top > 0.3 && ranked[0].top < 1.0, "{}", ranked[0].top);
    let metrics = report.metrics.expect("labels");
    assert_eq!(values(&metrics, &CUTS.map(Measure::Recall)), [0.75; 5]);
    let baseline = report.baseline.expect("asked for");
    assert_eq!(values(&baseline, &CUTS.map(Measure::Recall)), [0.75; 5]);
    assert_eq!((report.counts.queries, report.counts.labelled), (3, 2));
    assert_eq!(report.counts.missing.iter().collect::<Vec<_>>(), ["mail/ "]);
    assert_eq!((report.rejected.len(), report.renamed.len()), (1, 1));
    let seen: Vec<_> = report.visible.iter().map(|row| (row.budget, row.head)).collect();
    assert_eq!(seen[..2], [(500, None), (500, Some(5))]);
    let [schemas, .., one] = &report.visible[..4] else { panic!("{:?}", report.visible) };
    assert_eq!((schemas.visible.value, one.visible.value), (0.75, 0.75), "all three tools fit");
    assert_eq!((schemas.tools, one.tools), (3.0, 3.0), "{:?}", report.visible);
    assert!(schemas.tokens != one.tokens, "in another form");
    assert!(report.visible.iter().all(|row| row.tokens <= f64::from(row.budget)));
}

#[tokio::test]
async fn named_tools_come_first_and_the_report_is_json() {
    let long = "word ".repeat(50);
    let evaluated = run(vec![query("use list_issues for letter people", &[]), query(&long, &[])]);
    let Evaluated { ranked, report, .. } = evaluated.await;
    assert_eq!(ranked[0].ranked[0], "git.hub/list_issues");
    assert_eq!((&report.metrics, &report.abstention), (&None, &None));
    let json = report.to_json();
    assert_eq!(json["metrics"], serde_json::Value::Null);
    assert_eq!(json["counts"]["no_tool_queries"], 1);
    assert_eq!(json["counts"]["truncated_queries"], 1);
    assert_eq!(json["rejected"][0]["field"], "tools[1].name");
    assert_eq!(json["renamed_servers"][0]["to"], "git-hub");
    assert_eq!(json["encoder_fingerprint"], "words");
    assert!(json["token_tax"]["full_catalog_tokens"].as_u64().is_some_and(|tokens| tokens > 30));
    let line = serde_json::to_value(&ranked[0]).expect("JSON");
    assert!(line["top"].is_number() && line["ranked"].as_array().is_some_and(|r| r.len() == 3));
}

#[tokio::test]
async fn a_set_before_the_message_leaves_the_history_in_the_cache() {
    let evaluated = run(vec![
        query("open problems", &["git.hub/list_issues"]),
        query("a letter to people, and problems that are open", &["mail/send"]),
    ])
    .await;
    let conversation = evaluated.report.conversation.expect("asked for");
    assert_eq!((conversation.turns, conversation.played.len()), (2, 4));
    let [none, .., longest] = &conversation.played[..] else { panic!("{conversation:?}") };
    assert_eq!((none.history, longest.history), (0, 60_000));
    // A tool is registered between the two turns, and another set is needed, so the cache of what comes after the tools
    // is lost.
    for last in [&longest.anew_last, &longest.kept_last] {
        assert!(last.hit_rate() > 0.45, "{longest:?}");
    }
    for first in [&longest.all, &longest.paper_first, &longest.anew, &longest.paper] {
        assert!(first.hit_rate() < 0.05, "{first:?}");
    }
    assert!(!conversation.is_dearer(), "{conversation:?}");
    assert!(none.kept_last.tools > 0 && none.kept_last.schema_tokens > 0);
    assert!(evaluated.report.clauses.is_some());
    let ablated: Vec<_> = evaluated.report.ablations.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        ablated,
        ["without clauses", "without overlap", "without overlap and synonyms", "without words"]
    );
}

#[tokio::test]
async fn the_set_is_the_one_that_route_would_send() {
    let queries = vec![
        query("letter people", &["mail/send"]),
        query("joins lines", &["git.hub/merge/branch", "mail/send"]),
    ];
    let servers = vec![server("mail", &[("send", "letter to people"), ("sort", "joins lines")])];
    let evaluation = Evaluation {
        servers,
        queries,
        no_tool: Vec::new(),
        limits: LimitsConfig::default(),
        packs: None,
        router: RouterConfig { top_k: 1, ..RouterConfig::default() },
        bootstrap: Bootstrap { resamples: 0, seed: 1 },
        with_baseline: true,
        with_clauses: false,
        with_ablations: false,
        with_visible: false,
        conversation: 0,
    };
    let sides = Sides { passages: &WordEncoder, queries: &WordEncoder };
    let Evaluated { report, samples, .. } = evaluation.run(sides, &|_, _| {}).await.expect("done");
    let metrics = report.metrics.expect("labels");
    let set = [Measure::SetSize, Measure::SetPrecision, Measure::SetRecall, Measure::SetWhole];
    assert_eq!(values(&metrics, &set), [1.0, 0.5, 0.5, 0.5]);
    let tokens = values(&metrics, &[Measure::SetTokens])[0];
    assert!(tokens > 10.0 && tokens < report.tokens.schemas as f64, "{tokens}");
    assert_eq!(samples.labelled.len(), 2);
    let [compared] = &report.comparisons[..] else { panic!("{:?}", report.comparisons) };
    assert_eq!((compared.name.as_str(), compared.rows.len()), ("plain", Measure::LABELLED.len()));
    assert!(report.latency.p50 > 0.0 && report.latency.p50 <= report.latency.p99);
    // Two plain summaries equal the product's own.
    let background = Background::texts().len();
    let embedded = (report.latency.queries.texts, report.latency.summaries.texts);
    assert_eq!(embedded, (2 + background, 2));
}

#[tokio::test]
async fn queries_that_need_no_tool_are_held_against_the_others() {
    let empty = LabelledQuery { needs_no_tool: true, ..query("letter to people", &[]) };
    let Evaluated { ranked, report, samples } =
        run(vec![query("letter people", &["mail/send"]), empty, query("joins", &[])]).await;
    assert_eq!((ranked.len(), samples.labelled.len(), samples.no_tool.len()), (3, 1, 2));
    let held = report.abstention.as_ref().expect("both kinds");
    // One of the two has all of a tool's words; the other has no word in common with any tool.
    assert_eq!(held.auc.value, 0.5);
    assert_eq!(values(report.no_tool.as_ref().expect("some"), &[Measure::FalseAccept]), [0.5]);
    let json = report.to_json();
    assert_eq!(json["abstention"]["false_accepts"], 0.5);
    assert_eq!(json["abstention"]["false_rejects"], 0.0);
    assert_eq!(json["abstention"]["curve"][0]["false_accepts"], 1.0);
    assert_eq!(json["router"]["threshold"], 0.28);
    assert!(json["intervals"]["recall@1"].is_array(), "{json:#}");
}
