//! Text form of a policy document, and its check. YAML 1.2 includes JSON, so that one parser reads both.

use std::collections::HashSet;

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::learned::LearnedText;
use super::yaml;
use super::{Choosing, DOCUMENT_MAX, Hints, Match, Policy, PolicyMistake, Rule};
use crate::condition::{Condition, Mistake};
use crate::glob::Glob;
use crate::precondition::Precondition;

const RULES_MAX: usize = 1_024;
const NAME_MAX: usize = 64;
const LIST_MAX: usize = 64;
const TEXT_MAX: usize = 256;
const NODES_MAX: usize = 64;
const DEPTH_MAX: usize = 8;
/// Maximum number of patterns in a document. Each compiled pattern takes up to some hundred KiB.
const PATTERNS_MAX: usize = 64;
const TOP_K_MAX: usize = 100;
const MISTAKES_MAX: usize = 16;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    defaults: ChoosingText,
    #[serde(default)]
    rules: Vec<Spanned<RuleText>>,
}

#[derive(Deserialize, Default, Clone)]
#[serde(deny_unknown_fields, default)]
struct ChoosingText {
    threshold: Option<f32>,
    top_k: Option<usize>,
    max_per_server: Option<usize>,
    abstain_below: Option<f32>,
    ratio: Option<f32>,
    learned: Option<LearnedText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    name: String,
    /// Description for readers, which the service does not use.
    #[serde(default, rename = "description")]
    _description: String,
    #[serde(default, rename = "match")]
    matches: MatchText,
    precondition: Option<ConditionText>,
    #[serde(default)]
    required_scopes: Vec<String>,
    #[serde(default)]
    denied: bool,
    #[serde(default)]
    always_load: bool,
    #[serde(default)]
    critical: bool,
    #[serde(default)]
    pinned: bool,
    threshold: Option<f32>,
    top_k: Option<usize>,
    max_per_server: Option<usize>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct MatchText {
    servers: Vec<String>,
    tools: Vec<String>,
    tags: Vec<String>,
    annotations: HintsText,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct HintsText {
    read_only_hint: Option<bool>,
    destructive_hint: Option<bool>,
    idempotent_hint: Option<bool>,
    open_world_hint: Option<bool>,
}

/// Precondition whose expressions know their place in the document.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ConditionText {
    IsAuthenticated(String),
    HasPriorToolOutput(String),
    MilestoneReached(String),
    All(Vec<ConditionText>),
    Any(Vec<ConditionText>),
    Not(Box<ConditionText>),
    Cel(Spanned<String>),
}

pub(super) fn parse(text: &str) -> Result<Policy, Vec<PolicyMistake>> {
    if text.len() > DOCUMENT_MAX {
        let problem = format!("has {} bytes; at most {DOCUMENT_MAX}", text.len());
        return Err(vec![PolicyMistake::of_part("", problem)]);
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: 32, max_aliases: 0, max_documents: 1 },
        with_snippet: false,
        strict_booleans: true,
    };
    let document: Document =
        serde_saphyr::from_str_with_options(text, options).map_err(|e| vec![yaml::mistake(&e)])?;
    Check::default().document(document)
}

/// Check of a document, which collects its mistakes.
#[derive(Default)]
struct Check {
    mistakes: Vec<PolicyMistake>,
    patterns: usize,
    /// Line and column of the current rule.
    place: (u64, u64),
}

impl Check {
    fn document(mut self, document: Document) -> Result<Policy, Vec<PolicyMistake>> {
        let defaults = self.choosing("defaults", &document.defaults);
        let count = document.rules.len();
        self.require(count <= RULES_MAX, "rules", || format!("{count} rules; at most {RULES_MAX}"));
        let mut rules = Vec::with_capacity(count);
        let mut names = HashSet::new();
        for (i, rule) in document.rules.into_iter().take(RULES_MAX).enumerate() {
            let part = format!("rules[{i}]");
            self.place = (rule.referenced.line(), rule.referenced.column());
            let is_new = names.insert(rule.value.name.clone());
            self.require(is_new, &format!("{part}.name"), || {
                "another rule has the same name".to_owned()
            });
            rules.push(self.rule(&part, rule.value));
        }
        self.place = (0, 0);
        let patterns = self.patterns;
        self.require(patterns <= PATTERNS_MAX, "rules", || {
            format!("{patterns} patterns of `matches`; at most {PATTERNS_MAX}")
        });
        if self.mistakes.is_empty() { Ok(Policy { defaults, rules }) } else { Err(self.mistakes) }
    }

    fn rule(&mut self, part: &str, rule: RuleText) -> Rule {
        let named = (1..=NAME_MAX).contains(&rule.name.len());
        self.require(named, &format!("{part}.name"), || "must be of 1 to 64 bytes".to_owned());
        self.list(&format!("{part}.required_scopes"), &rule.required_scopes);
        let conditions = rule.precondition.map(|text| self.condition(part, &text));
        let choosing = ChoosingText {
            threshold: rule.threshold,
            top_k: rule.top_k,
            max_per_server: rule.max_per_server,
            ..ChoosingText::default()
        };
        let mut scopes = rule.required_scopes;
        scopes.sort();
        scopes.dedup();
        Rule {
            name: rule.name.into(),
            matches: self.matches(&format!("{part}.match"), rule.matches),
            denied: rule.denied,
            scopes,
            conditions: conditions.unwrap_or_default(),
            always_load: rule.always_load,
            critical: rule.critical,
            pinned: rule.pinned,
            choosing: self.choosing(part, &choosing),
        }
    }

    fn matches(&mut self, part: &str, text: MatchText) -> Match {
        self.list(&format!("{part}.servers"), &text.servers);
        self.list(&format!("{part}.tools"), &text.tools);
        self.list(&format!("{part}.tags"), &text.tags);
        let globs = |texts: Vec<String>| texts.iter().map(|text| Glob::new(text)).collect();
        let hints = &text.annotations;
        Match {
            hints: Hints {
                read_only: hints.read_only_hint,
                destructive: hints.destructive_hint,
                idempotent: hints.idempotent_hint,
                open_world: hints.open_world_hint,
            },
            servers: globs(text.servers),
            tools: globs(text.tools),
            tags: text.tags,
        }
    }

    fn condition(&mut self, rule: &str, text: &ConditionText) -> Vec<Condition> {
        let part = format!("{rule}.precondition");
        let mut nodes = 0;
        let precondition = self.precondition(&part, text, 1, &mut nodes);
        let precondition = precondition.filter(|_| self.mistakes.is_empty());
        // Each expression was compiled on its own before, with its place.
        let conditions = precondition.map(|precondition| precondition.conditions());
        conditions.and_then(Result::ok).unwrap_or_default()
    }

    fn precondition(
        &mut self,
        part: &str,
        text: &ConditionText,
        depth: usize,
        nodes: &mut usize,
    ) -> Option<Precondition> {
        *nodes += 1;
        if *nodes > NODES_MAX || depth > DEPTH_MAX {
            let problem = format!("at most {NODES_MAX} nodes, nested at most {DEPTH_MAX} deep");
            self.note(part, problem);
            return None;
        }
        Some(match text {
            ConditionText::IsAuthenticated(name) => {
                Precondition::IsAuthenticated(self.text(part, name)?)
            }
            ConditionText::HasPriorToolOutput(name) => {
                Precondition::HasPriorToolOutput(self.text(part, name)?)
            }
            ConditionText::MilestoneReached(name) => {
                Precondition::MilestoneReached(self.text(part, name)?)
            }
            ConditionText::All(inner) => Precondition::All(self.inner(part, inner, depth, nodes)?),
            ConditionText::Any(inner) => Precondition::Any(self.inner(part, inner, depth, nodes)?),
            ConditionText::Not(inner) => {
                Precondition::Not(Box::new(self.precondition(part, inner, depth + 1, nodes)?))
            }
            ConditionText::Cel(source) => self.expression(part, source)?,
        })
    }

    fn inner(
        &mut self,
        part: &str,
        inner: &[ConditionText],
        depth: usize,
        nodes: &mut usize,
    ) -> Option<Vec<Precondition>> {
        let some = !inner.is_empty();
        self.require(some, part, || "`all` and `any` need at least one operand".to_owned());
        let inner: Vec<_> =
            inner.iter().map(|text| self.precondition(part, text, depth + 1, nodes)).collect();
        inner.into_iter().collect()
    }

    fn expression(&mut self, part: &str, source: &Spanned<String>) -> Option<Precondition> {
        match Condition::compile(&source.value) {
            Ok(condition) => {
                self.patterns += condition.pattern_count();
                Some(Precondition::Cel(source.value.clone()))
            }
            Err(Mistake { line, column, problem }) => {
                let place = (source.referenced.line(), source.referenced.column());
                let outer = std::mem::replace(&mut self.place, place);
                self.note(
                    part,
                    format!("at line {line}, column {column} of the expression: {problem}"),
                );
                self.place = outer;
                None
            }
        }
    }

    fn choosing(&mut self, part: &str, text: &ChoosingText) -> Choosing {
        let threshold = text.threshold.is_none_or(|t| (-1.0..=1.0).contains(&t));
        self.require(threshold, &format!("{part}.threshold"), || {
            "must be a cosine, -1 to 1".to_owned()
        });
        let level = text.abstain_below.is_none_or(|level| (-1.0..=1.0).contains(&level));
        self.require(level, &format!("{part}.abstain_below"), || {
            "must be a cosine, -1 to 1".to_owned()
        });
        let ratio = text.ratio.is_none_or(|ratio| ratio > 0.0 && ratio <= 1.0);
        self.require(ratio, &format!("{part}.ratio"), || "must be above 0, at most 1".to_owned());
        let learned = text.learned.as_ref().and_then(|gate| match gate.check() {
            Ok(learned) => Some(learned),
            Err(problem) => {
                self.note(&format!("{part}.learned"), problem);
                None
            }
        });
        for (name, value) in [("top_k", text.top_k), ("max_per_server", text.max_per_server)] {
            let right = value.is_none_or(|value| (1..=TOP_K_MAX).contains(&value));
            self.require(right, &format!("{part}.{name}"), || "must be 1 to 100".to_owned());
        }
        let ChoosingText { threshold, top_k, max_per_server, abstain_below, ratio, .. } = *text;
        Choosing { threshold, top_k, max_per_server, abstain_below, ratio, learned }
    }

    fn list(&mut self, part: &str, texts: &[String]) {
        let right = texts.iter().all(|text| (1..=TEXT_MAX).contains(&text.len()));
        self.require(right, part, || "must be texts of 1 to 256 bytes".to_owned());
        self.require(texts.len() <= LIST_MAX, part, || "must be at most 64 texts".to_owned());
    }

    fn text(&mut self, part: &str, text: &str) -> Option<String> {
        let right = (1..=TEXT_MAX).contains(&text.len());
        self.require(right, part, || "names something of 1 to 256 bytes".to_owned());
        right.then(|| text.to_owned())
    }

    fn require(&mut self, is_right: bool, part: &str, problem: impl FnOnce() -> String) {
        if !is_right {
            self.note(part, problem());
        }
    }

    fn note(&mut self, part: &str, problem: String) {
        let (line, column) = self.place;
        if self.mistakes.len() < MISTAKES_MAX {
            self.mistakes.push(PolicyMistake { part: part.to_owned(), line, column, problem });
        }
    }
}
