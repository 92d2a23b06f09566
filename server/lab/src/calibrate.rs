//! Calibration of the cut of a catalog's rankings, from labelled queries. It fits two rules: the published threshold
//! (Tool Attention, section 5.2: the best F1 in steps of .01), and the product's own rule. Queries are answered by the
//! product's ranking. Each rule is also scored on queries that it was not fitted to.

pub mod cases;
pub mod folds;
mod learn;
pub mod rule;
#[cfg(test)]
mod samples;
pub mod sweep;

use std::sync::Arc;

use crate::eval::embeddings::Embeddings;
use crate::eval::stock::Stock;
use crate::eval::{self, CatalogServer, LabelledQuery, Progress, Sides, attached};
use toolgate_config::{LimitsConfig, RouterConfig};
use toolgate_core::error::Error;
use toolgate_core::policy::FEATURES;
use toolgate_routing::packs::Packs;
use toolgate_routing::router::query::Options;
use toolgate_routing::router::ranking::level::Level;
use toolgate_routing::shard::snapshot::{Known, Snapshot};

use cases::Case;
use folds::held_out;
use rule::{Rule, Scores};
use sweep::{Aim, Sweep};

/// Number of labelled pairs of query and tool below which a calibration says little.
pub const PAIRS_ENOUGH: usize = 100;

/// Catalog, queries and settings of a calibration.
#[derive(Debug, Clone)]
pub struct Calibration {
    /// MCP servers with their tools.
    pub servers: Vec<CatalogServer>,
    /// Labelled queries, and those that need no tool.
    pub queries: Vec<LabelledQuery>,
    /// Limits that tools must meet to be registered.
    pub limits: LimitsConfig,
    /// Intent packs, which help to find well-known tools; `None` ranks without packs.
    pub packs: Option<Arc<Packs>>,
    /// Router settings that are in use now.
    pub router: RouterConfig,
    /// Targets that the product's rule must meet.
    pub aim: Aim,
    /// True if a gate is trained as well.
    pub learn: bool,
}

/// Rule with its scores, both on the queries that it was fitted to and on others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FittedRule {
    /// Fitted rule.
    pub rule: Rule,
    /// Scores on all queries, to which the rule was fitted.
    pub fitted: Scores,
    /// Cross-validated scores: for each fifth of the queries, a rule fitted without that fifth is scored on it.
    pub held_out: Scores,
}

/// Result of a calibration.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibrated {
    /// Number of labelled pairs of query and tool.
    pub pairs: usize,
    /// Number of queries with labels.
    pub labelled: usize,
    /// Number of queries that need no tool.
    pub no_tool: usize,
    /// Rule that is in use now, with its scores on all queries.
    pub now: (Rule, Scores),
    /// Threshold with the best F1, applied to each tool.
    pub threshold: FittedRule,
    /// Product's own rule: a level and a ratio.
    pub ratio: FittedRule,
    /// Level and trained gate; `None` unless a gate was requested.
    pub learned: Option<FittedRule>,
    /// F1 of each threshold.
    pub curve: Vec<(f32, f64)>,
}

impl Calibration {
    /// Answers every query, then fits the rules. Returns `None` if no query has labels.
    ///
    /// # Errors
    /// [`Error::EncoderUnavailable`], or an internal error.
    pub async fn run(
        &self,
        encoders: Sides<'_>,
        progress: &Progress,
    ) -> Result<Option<Calibrated>, Error> {
        let stock = Stock::check(&self.servers, &self.limits);
        let summaries: Vec<&str> =
            stock.catalog.tools.iter().map(|tool| tool.record.summary.as_str()).collect();
        let texts = eval::texts(self.queries.iter().map(|query| query.text.as_str()));
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let embeddings = Embeddings::of(encoders, &summaries, &texts, progress).await?;
        let dimensions = encoders.passages.dimensions();
        let packs = attached(self.packs.as_deref(), &stock.catalog, encoders).await;
        let known = Known { embeddings: embeddings.vectors(), packs: &packs };
        let snapshot = Snapshot::build_with(stock.catalog.clone(), known, dimensions)?;
        snapshot.build_graph();
        let cases = Case::all(&snapshot, &stock, &embeddings, &self.queries)?;
        let options = Options { threshold: self.router.threshold, ..Options::default() };
        let level = Level::of(&snapshot, &[], &options, &embeddings.background(), None);
        Ok(self.find(&cases, level))
    }

    /// Fits the rules to answered queries. `level` is the level in use for the catalog. Returns `None` if no query has
    /// labels.
    #[must_use]
    pub fn find(&self, cases: &[Case], level: Level) -> Option<Calibrated> {
        let pairs = cases.iter().map(|case| case.relevant).sum();
        if pairs == 0 {
            return None;
        }
        let sweep = Sweep { top_k: self.router.top_k, aim: self.aim };
        let found = |find: &dyn Fn(&[&Case]) -> Rule| {
            let all: Vec<&Case> = cases.iter().collect();
            let rule = find(&all);
            let fitted = Scores::of(&rule, &all, sweep.top_k);
            FittedRule { rule, fitted, held_out: held_out(cases, sweep.top_k, find) }
        };
        let all: Vec<&Case> = cases.iter().collect();
        let now = self.now(level);
        Some(Calibrated {
            pairs,
            labelled: cases.iter().filter(|case| case.needs_tools()).count(),
            no_tool: cases.iter().filter(|case| !case.needs_tools()).count(),
            now: (now, Scores::of(&now, &all, sweep.top_k)),
            threshold: found(&|cases| sweep.threshold(cases)),
            ratio: found(&|cases| sweep.ratio(cases)),
            learned: self.learn.then(|| found(&|cases| sweep.learned(cases))),
            curve: sweep.curve(&all),
        })
    }

    fn now(&self, level: Level) -> Rule {
        if self.router.relative_cutoff > 0.0 {
            Rule::Ratio { abstain_below: level.0, ratio: self.router.relative_cutoff }
        } else {
            Rule::Threshold(self.router.threshold)
        }
    }
}

impl Calibrated {
    /// Returns the trained gate if it beats the ratio on queries that neither was fitted to: its F1 must be better, and
    /// its recall at most 0.01 lower.
    #[must_use]
    pub fn worthy(&self) -> Option<&FittedRule> {
        let ratio = &self.ratio.held_out;
        let learned = self.learned.as_ref()?;
        let other = &learned.held_out;
        (other.f1 > ratio.f1 && other.recall >= ratio.recall - 0.01).then_some(learned)
    }

    /// Returns a policy that sets the given rule, as YAML.
    #[must_use]
    pub fn policy(&self, rule: &Rule) -> String {
        match rule {
            Rule::Threshold(threshold) => format!("defaults:\n  threshold: {threshold:.2}\n"),
            Rule::Ratio { abstain_below, ratio } => {
                format!("defaults:\n  abstain_below: {abstain_below:.2}\n  ratio: {ratio:.2}\n")
            }
            Rule::Learned { abstain_below, gate } => {
                let weights = FEATURES.iter().zip(gate.weights);
                let weights = weights.map(|(name, weight)| format!("      {name}: {weight:?}\n"));
                format!(
                    "defaults:\n  abstain_below: {abstain_below:.2}\n  learned:\n    least: {:.2}\n    \
                     bias: {:?}\n    weights:\n{}",
                    gate.least,
                    gate.bias,
                    weights.collect::<String>()
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::samples::{case, judged};
    use super::*;
    use toolgate_core::policy::Policy;
    use toolgate_routing::encoder::words::WordEncoder;

    /// Returns queries whose right tool has the overlap .5 and a wrong one .3, and chat whose best tool has .2.
    fn cases() -> Vec<Case> {
        let asked = || case(vec![judged(0.5, 1.0, true), judged(0.3, 0.4, false)], 1);
        let chat = || case(vec![judged(0.2, 1.0, false)], 0);
        (0..20).map(|i| if i % 2 == 0 { asked() } else { chat() }).collect()
    }

    fn calibration() -> Calibration {
        Calibration {
            servers: Vec::new(),
            queries: Vec::new(),
            limits: LimitsConfig::default(),
            packs: None,
            router: RouterConfig::default(),
            aim: Aim { kept: 0.97, false_rejects: 0.02 },
            learn: true,
        }
    }

    #[test]
    fn what_divides_right_from_wrong_is_found() {
        let found = calibration().find(&cases(), Level(0.28)).expect("labels");
        assert_eq!((found.pairs, found.labelled, found.no_tool), (10, 10, 10));
        assert_eq!(found.threshold.rule, Rule::Threshold(0.31), "the lowest of the best");
        assert!((found.threshold.held_out.f1 - 1.0).abs() < 1e-9, "{found:?}");
        let Rule::Ratio { abstain_below, ratio } = found.ratio.rule else { panic!("{found:?}") };
        assert!((abstain_below - 0.5).abs() < 1e-6 && (ratio - 1.0).abs() < 1e-6, "{found:?}");
        assert_eq!(found.ratio.held_out.false_accepts, Some(0.0));
        assert_eq!(found.curve.len(), 101);
        assert_eq!(calibration().find(&[], Level(0.28)), None);
    }

    #[test]
    fn the_policy_can_be_set() {
        let found = calibration().find(&cases(), Level(0.28)).expect("labels");
        let learned = found.learned.as_ref().expect("asked for").rule;
        for rule in [found.threshold.rule, found.ratio.rule, learned] {
            let policy = Policy::parse(&found.policy(&rule)).expect("a policy");
            let said = policy.defaults;
            match rule {
                Rule::Threshold(threshold) => assert_eq!(said.threshold, Some(threshold)),
                Rule::Ratio { abstain_below, ratio } => {
                    assert_eq!(
                        (said.abstain_below, said.ratio),
                        (Some(abstain_below), Some(ratio))
                    );
                }
                Rule::Learned { abstain_below, gate } => {
                    assert_eq!(
                        (said.abstain_below, said.learned),
                        (Some(abstain_below), Some(gate))
                    );
                }
            }
        }
    }

    /// Uses two servers with the same tools, and callers who stay with the server that they used last.
    #[tokio::test]
    async fn what_was_called_before_is_learned_from() {
        let server = |name: &str| {
            let tool = |(name, text)| {
                format!(r#"{{"name": "{name}", "description": "{text}", "inputSchema": {{}}}}"#)
                    .into()
            };
            let tools = [("open", "opens a mailbox"), ("send", "sends a letter")].map(tool).into();
            CatalogServer { name: name.to_owned(), description: String::new(), tools }
        };
        let query = |i: usize| {
            let used = if i.is_multiple_of(2) { "home" } else { "work" };
            LabelledQuery {
                text: format!("now sends the letter number {i}"),
                relevant: [format!("{used}/send")].into(),
                called: vec!["gone/away".to_owned(), format!("{used}/open")],
                ..LabelledQuery::default()
            }
        };
        let calibration = Calibration {
            servers: vec![server("home"), server("work")],
            queries: (0..40).map(query).collect(),
            ..calibration()
        };
        let sides = Sides { passages: &WordEncoder, queries: &WordEncoder };
        let found = calibration.run(sides, &|_, _| {}).await.expect("ranked").expect("labels");
        let learned = found.worthy().expect("better than the ratio");
        assert!(learned.held_out.f1 > 0.95, "{learned:?}");
        assert!(found.ratio.held_out.f1 < 0.7, "nothing else tells the two apart: {found:?}");
    }
}
