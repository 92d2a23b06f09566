//! Search of a shard by names, prefixes and keywords. It also decides whether the encoder is needed.

use fixedbitset::FixedBitSet;

use super::empty::Nothing;
use super::grammar::{Query, Term};
use super::keywords;
use super::{Findings, Form, SearchQuery, beyond_caps};
use crate::gate::names;
use crate::gate::verdict::RefusalCode;
use crate::gate::visibility::{Visibilities, Visibility};
use crate::router::ranking::names::is_name;
use crate::router::ranking::rank::{Candidate, FoundBy, Parts, Recent};
use crate::router::selection::caps::Caps;
use crate::router::selection::left_out::LeftOut;
use crate::shard::snapshot::Snapshot;

/// Beginning of the model-facing names of MCP tools.
const PREFIX: &str = "mcp__";

/// Maximum number of tools returned for one name that several servers have.
const NAMESAKES_MAX: usize = 10;

/// Result of a search by words.
pub(super) enum Looked {
    /// Complete answer.
    Settled(Findings),
    /// Text that only the encoder can search for.
    AskEncoder(String),
}

/// Returns the tools that a precondition keeps from being called.
pub(super) fn locked(snapshot: &Snapshot, visibilities: &Visibilities) -> FixedBitSet {
    let slots = 0..snapshot.tools.len();
    let is_locked = |slot: &usize| {
        u32::try_from(*slot)
            .is_ok_and(|slot| visibilities.tool(snapshot, slot) == Visibility::Locked)
    };
    let mut set = FixedBitSet::with_capacity(snapshot.tools.len());
    set.extend(slots.filter(is_locked));
    set
}

/// Answers the query if words are enough.
pub(super) fn look(
    snapshot: &Snapshot,
    query: &SearchQuery,
    visibilities: &Visibilities,
) -> Looked {
    let allowed = visibilities.open(snapshot);
    let searched = allowed.as_ref().map_or(snapshot.tools.len(), |set| set.count_ones(..));
    let look = Look { snapshot, query, visibilities, allowed, searched };
    match &query.query {
        Query::Select(names) => Looked::Settled(look.select(names)),
        Query::Text { text, terms } => look.text(text, terms),
    }
}

struct Look<'a> {
    snapshot: &'a Snapshot,
    query: &'a SearchQuery,
    visibilities: &'a Visibilities,
    allowed: Option<FixedBitSet>,
    searched: usize,
}

impl Look<'_> {
    /// Finds every named tool, loaded or not. Selecting a tool that is already loaded succeeds without a message.
    fn select(&self, names: &[String]) -> Findings {
        let mut tools: Vec<Candidate> = Vec::new();
        let mut left_out = Vec::new();
        let mut nothing = Nothing::default();
        for name in names {
            let slots = names::find(self.snapshot, name, |slot| self.is_visible(slot));
            let (open, shut): (Vec<u32>, Vec<u32>) =
                slots.into_iter().partition(|slot| self.contains(*slot));
            for slot in open.iter().take(NAMESAKES_MAX) {
                if tools.iter().all(|tool| tool.slot != *slot) {
                    tools.push(found(*slot, 0, FoundBy::Name));
                }
            }
            match shut.first() {
                _ if !open.is_empty() => {}
                Some(slot) => {
                    nothing.locked.push(*slot);
                    left_out.push(refused(Some(*slot), name, RefusalCode::PreconditionUnmet));
                }
                None => {
                    left_out.push(refused(None, name, RefusalCode::UnknownTool));
                    nothing.add_unknown(self.snapshot, name, |slot| self.is_visible(slot));
                }
            }
        }
        let message = nothing.message_if_any(self.snapshot, self.visibilities);
        Findings { left_out, message, ..self.findings(Form::Select, tools) }
    }

    fn text(&self, text: &str, terms: &[Term]) -> Looked {
        if let Some(findings) = self.named(text) {
            return Looked::Settled(findings);
        }
        let hits = keywords::search(self.snapshot, terms, self.allowed.as_ref());
        if !hits.hits.is_empty() {
            let places = self.query.max_results;
            let caps = Caps::new(&self.snapshot.policy, self.query.untrusted, places);
            let best = hits.hits.iter().map(|hit| found(hit.slot, hit.score, FoundBy::Words));
            let tools = caps.share(self.snapshot, best, places);
            let locked = self.locked_beside(terms, &tools);
            let message = beyond_caps(tools.len(), hits.hits.len(), places);
            let findings = Findings { message, ..self.findings(Form::Keywords, tools) };
            return Looked::Settled(self.beside(findings, locked));
        }
        // A name that does not exist has no meaning that could be near any tool.
        let is_name = begins_with(text, PREFIX);
        if !self.query.query.has_required() && !is_name {
            return Looked::AskEncoder(text.to_owned());
        }
        let locked = locked(self.snapshot, self.visibilities);
        let locked = keywords::search(self.snapshot, terms, Some(&locked));
        let mut nothing = Nothing {
            locked: locked.hits.iter().map(|hit| hit.slot).collect(),
            lacking_required: hits.lacking_required,
            required: terms.iter().filter(|t| t.required).map(|t| t.text.clone()).collect(),
            ..Nothing::default()
        };
        if is_name {
            nothing.add_unknown(self.snapshot, text, |slot| self.is_visible(slot));
        }
        Looked::Settled(Findings {
            left_out: nothing.left_out(),
            message: nothing.message(self.snapshot, self.visibilities),
            lacking_required: hits.lacking_required,
            ..self.findings(Form::Keywords, Vec::new())
        })
    }

    /// Returns findings if the text is a tool's name, the beginning of names, or a server's name.
    fn named(&self, text: &str) -> Option<Findings> {
        // A plain word that is also the name of a tool is a keyword like any other.
        if text.contains('/') || (is_name(text) && !text.contains(char::is_whitespace)) {
            let open = names::find(self.snapshot, text, |slot| self.contains(slot));
            if let [slot] = open[..] {
                return Some(self.findings(Form::Select, vec![found(slot, 0, FoundBy::Name)]));
            }
        }
        let begins = begins_with(text, PREFIX);
        let named = |slot: &u32| {
            let tool = self.snapshot.tool(*slot);
            let server = tool.id.server.as_str();
            if begins {
                begins_with(&tool.model_name, text)
            } else {
                server.eq_ignore_ascii_case(text)
            }
        };
        let visible =
            (0u32..).take(self.snapshot.tools.len()).filter(|slot| self.is_visible(*slot));
        let (mut open, locked): (Vec<u32>, Vec<u32>) =
            visible.filter(named).partition(|slot| self.contains(*slot));
        if open.is_empty() && locked.is_empty() {
            return None;
        }
        open.sort_by_key(|slot| &self.snapshot.tool(*slot).model_name);
        let message = more(open.len(), self.query.max_results);
        open.truncate(self.query.max_results);
        let tools: Vec<_> = open.into_iter().map(|slot| found(slot, 0, FoundBy::Name)).collect();
        let findings = Findings { message, ..self.findings(Form::Prefix, tools) };
        Some(self.beside(findings, locked))
    }

    /// Returns the locked tools that would rank among the tools found.
    fn locked_beside(&self, terms: &[Term], tools: &[Candidate]) -> Vec<u32> {
        if self.allowed.is_none() {
            return Vec::new();
        }
        let is_full = tools.len() == self.query.max_results;
        let scores = tools.iter().map(|tool| tool.score);
        let least = scores.reduce(f32::min).filter(|_| is_full).unwrap_or(0.0);
        let locked = locked(self.snapshot, self.visibilities);
        let hits = keywords::search(self.snapshot, terms, Some(&locked)).hits;
        hits.iter().filter(|hit| hit.score as f32 > least).map(|hit| hit.slot).collect()
    }

    /// Adds to the findings the tools that a precondition keeps out, with a message.
    fn beside(&self, mut findings: Findings, locked: Vec<u32>) -> Findings {
        let nothing = Nothing { locked, ..Nothing::default() };
        findings.left_out = nothing.left_out();
        let locked = nothing.locked_message(self.snapshot, self.visibilities);
        let parts = [std::mem::take(&mut findings.message), locked];
        findings.message =
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        findings
    }

    fn findings(&self, form: Form, tools: Vec<Candidate>) -> Findings {
        let left_out = Vec::new();
        let message = String::new();
        Findings { form, tools, left_out, message, searched: self.searched, lacking_required: 0 }
    }

    fn contains(&self, slot: u32) -> bool {
        self.allowed.as_ref().is_none_or(|set| set.contains(slot as usize))
    }

    fn is_visible(&self, slot: u32) -> bool {
        self.visibilities.tool(self.snapshot, slot) != Visibility::Hidden
    }
}

/// Returns a message that a list by name is longer than shown; empty if it is whole.
fn more(tools: usize, shown: usize) -> String {
    if tools <= shown {
        return String::new();
    }
    format!("{shown} of {tools} tools by name: ask for {tools} results to see all of them.")
}

fn begins_with(text: &str, prefix: &str) -> bool {
    let start = text.as_bytes().get(..prefix.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
}

fn found(slot: u32, weight: u32, found_by: FoundBy) -> Candidate {
    // Weights are far below 2^24, where f32 stops counting by ones.
    Candidate {
        slot,
        overlap: 0.0,
        score: weight as f32,
        found_by,
        parts: Parts::default(),
        leads: false,
        recent: Recent::default(),
        from_context: false,
        is_reserved: false,
    }
}

fn refused(slot: Option<u32>, name: &str, code: RefusalCode) -> LeftOut {
    LeftOut::named(slot, name, code)
}
