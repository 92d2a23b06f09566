//! Whole evaluations with an encoder that is a bag of words.

use std::time::Instant;

use super::*;
use crate::encoder::{EmbedFuture, Embedded, Encoder};

/// Each word is a direction; texts that share words overlap.
struct WordEncoder;

const DIMENSIONS: usize = 64;

impl Encoder for WordEncoder {
    fn fingerprint(&self) -> &str {
        "words"
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    fn embed(&self, texts: Vec<String>, _: Option<Instant>) -> EmbedFuture<'_> {
        let embedded = texts.iter().map(|text| embed(text)).collect();
        Box::pin(std::future::ready(Ok(embedded)))
    }
}

fn embed(text: &str) -> Embedded {
    let mut vector = vec![0.0_f32; DIMENSIONS];
    vector[0] = 0.1;
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()) {
        let hash = word.bytes().fold(7_usize, |hash, byte| hash * 31 + usize::from(byte));
        vector[hash % DIMENSIONS] += 1.0;
    }
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    vector.iter_mut().for_each(|x| *x /= length);
    Embedded { vector, truncated: text.len() > 200 }
}

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
    LabelledQuery { text: text.to_owned(), relevant }
}

async fn run(queries: Vec<LabelledQuery>) -> Evaluated {
    let servers = vec![
        server("git.hub", &[("list_issues", "open problems"), ("merge/branch", "joins lines")]),
        server("mail", &[("send", "letter to people"), (" ", "refused")]),
    ];
    let limits = LimitsConfig::default();
    let evaluation = Evaluation {
        servers,
        queries,
        limits,
        with_baseline: true,
        with_clauses: true,
        conversation: 2,
    };
    evaluation
        .run(Sides { passages: &WordEncoder, queries: &WordEncoder }, &|_, _| {})
        .await
        .expect("evaluated")
}

#[tokio::test]
async fn queries_are_ranked_whole_and_measured() {
    let queries = vec![
        query("letter people", &["mail/send"]),
        query("joins lines", &["git.hub/merge/branch", "mail/ "]),
        query("nothing of the kind", &[]),
    ];
    let Evaluated { ranked, report } = run(queries).await;
    assert_eq!(ranked.len(), 3);
    assert!(ranked.iter().all(|one| one.ranked.len() == 3));
    assert_eq!(ranked[0].ranked[0], "mail/send");
    assert_eq!(ranked[1].ranked[0], "git.hub/merge/branch");
    assert!(ranked[0].top > 0.3 && ranked[0].top < 1.0, "{}", ranked[0].top);
    let metrics = report.metrics.expect("labels");
    assert_eq!(metrics.recall, [0.75; 5]);
    assert_eq!(report.baseline.expect("asked for").recall, [0.75; 5]);
    assert_eq!((report.counts.queries, report.counts.labelled), (3, 2));
    assert_eq!(report.counts.missing.iter().collect::<Vec<_>>(), ["mail/ "]);
    assert_eq!((report.rejected.len(), report.renamed.len()), (1, 1));
}

#[tokio::test]
async fn named_tools_come_first_and_the_report_is_json() {
    let long = "word ".repeat(50);
    let evaluated = run(vec![query("use list_issues for letter people", &[]), query(&long, &[])]);
    let Evaluated { ranked, report } = evaluated.await;
    assert_eq!(ranked[0].ranked[0], "git.hub/list_issues");
    assert_eq!(report.metrics, None);
    let json = report.to_json();
    assert_eq!(json["metrics"], serde_json::Value::Null);
    assert_eq!(json["counts"]["truncated_queries"], 1);
    assert_eq!(json["rejected"][0]["field"], "tools[1].name");
    assert_eq!(json["renamed_servers"][0]["to"], "git-hub");
    assert_eq!(json["encoder_fingerprint"], "words");
    assert!(json["token_tax"]["full_catalog_tokens"].as_u64().is_some_and(|tokens| tokens > 30));
    let line = serde_json::to_value(&ranked[0]).expect("JSON");
    assert!(line["top"].is_number() && line["ranked"].as_array().is_some_and(|r| r.len() == 3));
}

#[tokio::test]
async fn a_conversation_that_only_appends_is_served_from_the_cache() {
    let evaluated = run(vec![
        query("open problems", &["git.hub/list_issues"]),
        query("a letter to people, and problems that are open", &["mail/send"]),
    ])
    .await;
    let played = evaluated.report.conversation.expect("asked for");
    let [all, ranked, two_phase, ours] = &played.layouts[..] else { panic!("{played:?}") };
    assert_eq!(played.turns, 2);
    // A tool is registered between the two turns: what stands behind it is lost, but for what only appends.
    assert!(ours.hit_rate() > two_phase.hit_rate(), "{played:?}");
    assert!(ours.hit_rate() > all.hit_rate() && ours.hit_rate() > ranked.hit_rate(), "{played:?}");
    assert!(evaluated.report.clauses.is_some());
}
