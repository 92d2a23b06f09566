//! Conversation, played turn by turn by one method.

use std::collections::HashSet;

use serde_json::{Map, Value};
use toolgate_core::error::Error;
use toolgate_llm::SEARCH_TOOL_NAME;
use toolgate_llm::price::{LEAST_REQUESTS, PromptPrices};
use toolgate_llm::strategy::{Strategy, expected_requests};
use toolgate_routing::gate::handle::{ActiveSet, ShownTool};

use super::agent::Messages;
use super::bill::{Bill, Totals, Turned};
use super::pieces::Counter;
use super::requests::Requests;
use super::scene::{Past, Ranked, Scene};
use super::{Method, Provider};
use crate::eval::query_file::TurnCall;

/// Number of further turns for which a tool stays that the model searched for, as Route holds it.
const HELD: u8 = 3;

/// Conversation that is being played.
pub(super) struct Play<'a> {
    scene: &'a Scene<'a>,
    method: Method,
    requests: Requests<'a>,
    messages: Messages,
    /// Initial history, where the method depends on it.
    history: u32,
    previous: Option<ActiveSet>,
    discovered: Vec<String>,
    bills: Vec<Bill>,
    /// Tokens of the messages without the initial history, and the number of messages that were counted.
    own: Counted,
}

#[derive(Default)]
struct Counted {
    tokens: u32,
    messages: usize,
}

/// Tool part of the first request of a turn.
pub(super) struct Opening {
    /// Tokens before all messages without the system prompt.
    pub first: u32,
    /// Tokens amid the messages that the agent does not hold.
    pub amid: u32,
    /// Slots of the tools that it defines.
    pub shown: HashSet<u32>,
}

/// Turn that is being played.
struct Now {
    /// Slots of this turn's set, with what was found by a search.
    set: Vec<u32>,
    /// Slots of the tools that the last request defined.
    shown: HashSet<u32>,
    /// Place of the turn's message.
    at: usize,
}

impl Method {
    /// Returns true if the method needs the length of the history to make a request.
    pub(super) fn depends_on_history(self) -> bool {
        matches!(self, Self::Strategy(None | Some(Strategy::Cut)))
    }
}

impl<'a> Play<'a> {
    /// Begins a conversation. If the method depends on the history, there is only one of `histories`.
    pub(super) fn new(
        scene: &'a Scene<'a>,
        counter: &'a Counter,
        provider: Provider,
        method: Method,
        histories: &[u32],
    ) -> Result<Self, Error> {
        let rates = provider.rates();
        let history = histories.first().copied().unwrap_or(0);
        Ok(Self {
            requests: Requests::new(scene, counter, provider, method, history)?,
            messages: Messages::new(provider.api, history > 0),
            bills: histories.iter().map(|history| Bill::new(rates, *history)).collect(),
            history,
            previous: None,
            discovered: Vec::new(),
            own: Counted::default(),
            scene,
            method,
        })
    }

    /// Plays a turn. Returns the tool part of its first request, and the totals so far, one for each history.
    ///
    /// # Errors
    /// An internal error of the index, or a definition that can't be rendered.
    pub(super) fn turn(&mut self, ranked: &Ranked<'_>) -> Result<(Opening, Vec<Totals>), Error> {
        let turn = ranked.turn;
        let at = self.messages.all.len();
        self.messages.user(&turn.query.text);
        let (set, mut shown_tools) = self.set(ranked, at)?;
        let mut now = Now { set, shown: HashSet::new(), at };
        let opening = self.send(&mut now)?;
        let mut turned = self.turned(ranked, &now);
        for call in &turn.calls {
            let Some(own) = self.scene.slot(&call.tool) else { continue };
            let slot = self.served(ranked, &now, own);
            let is_shown = now.shown.contains(&slot);
            if self.requests.sends_everything() {
                turned.left_out += usize::from(!is_shown);
            } else if !is_shown {
                turned.searches += 1;
                self.search(call, slot, &turn.query.text);
                shown_tools.push(self.entry(slot));
                now.set.push(slot);
                self.send(&mut now)?;
            }
            self.call(call, slot);
            self.send(&mut now)?;
        }
        self.messages.answer(&turn.answer);
        let revision = self.scene.snapshot.revision;
        self.previous = Some(ActiveSet {
            revision,
            expires: u64::MAX,
            tools: shown_tools,
            carried: Vec::new(),
            intent_embedding: None,
        });
        Ok((opening, self.bills.iter_mut().map(|bill| bill.end(turned)).collect()))
    }

    /// Returns the set of a turn, as slots and as the entries of its handle. `at` is the place of the turn's message.
    fn set(&self, ranked: &Ranked<'_>, at: usize) -> Result<(Vec<u32>, Vec<ShownTool>), Error> {
        if self.requests.sends_everything() {
            return Ok((self.scene.all(), Vec::new()));
        }
        let chosen = self.scene.choose(ranked, self.past(at))?;
        let entries = chosen.iter().map(|one| one.shown(&self.scene.snapshot)).collect();
        Ok((chosen.iter().map(|one| one.slot).collect(), entries))
    }

    fn past(&self, at: usize) -> Past<'_> {
        if matches!(self.method, Method::Naive | Method::Paper | Method::Anew) {
            return Past::default();
        }
        let before = &self.messages.all[..at];
        let said = self.requests.system_tokens() + self.requests.tokens(before);
        let requests = match self.method {
            Method::CUT => LEAST_REQUESTS,
            _ => expected_requests(self.requests.api(), &self.messages.all),
        };
        Past {
            prices: PromptPrices { rates: self.requests.rates(), requests },
            beside_tokens: self.requests.search_tokens(),
            previous: self.previous.as_ref(),
            discovered: &self.discovered,
            history_tokens: Some(self.history.saturating_add(said)),
        }
    }

    fn send(&mut self, now: &mut Now) -> Result<Opening, Error> {
        let sent = self.requests.send(&now.set, &self.messages.all, now.at)?;
        let own = self.own_tokens();
        self.bills.iter_mut().for_each(|bill| bill.request(&sent.pieces, own));
        now.shown.clone_from(&sent.shown);
        let all: u32 = sent.pieces.iter().map(|piece| piece.tokens).sum();
        let others = sent.first + self.requests.system_tokens() + own;
        Ok(Opening { first: sent.first, amid: all.saturating_sub(others), shown: sent.shown })
    }

    /// Returns the tokens of the agent's messages without the initial history.
    fn own_tokens(&mut self) -> u32 {
        let Counted { tokens, messages } = &mut self.own;
        *tokens += self.requests.tokens(&self.messages.all[*messages..]);
        *messages = self.messages.all.len();
        *tokens
    }

    /// Returns the tool that serves a call: its own, or one that does the same and is shown.
    fn served(&self, ranked: &Ranked<'_>, now: &Now, own: u32) -> u32 {
        let turn = ranked.turn;
        if now.shown.contains(&own)
            || !turn.query.relevant.iter().any(|id| self.scene.slot(id) == Some(own))
        {
            return own;
        }
        let is_other_calls =
            |slot: &u32| turn.calls.iter().any(|call| self.scene.slot(&call.tool) == Some(*slot));
        let relevant = turn.query.relevant.iter().filter_map(|id| self.scene.slot(id));
        let mut equal = relevant.filter(|slot| now.shown.contains(slot) && !is_other_calls(slot));
        equal.next().unwrap_or(own)
    }

    /// Adds what comes before a tool that is not shown can be called: a search that finds it, or a call that is
    /// refused, where the model knows it by its summary.
    fn search(&mut self, call: &TurnCall, slot: u32, message: &str) {
        let name = self.scene.name(slot).to_owned();
        if self.method == Method::Paper {
            let refusal = "This tool was not loaded. It is now: call it again.";
            self.messages.call(&name, &call.arguments, refusal);
        } else {
            let query = Map::from_iter([("query".to_owned(), Value::from(message))]);
            let found = format!("Found 1 tool, which can be called now: {name}");
            self.messages.call(SEARCH_TOOL_NAME, &query, &found);
        }
    }

    /// Adds a call. Where only the envelope can call the tool, the request's maker writes it so.
    fn call(&mut self, call: &TurnCall, slot: u32) {
        let name = self.scene.name(slot).to_owned();
        self.messages.call(&name, &call.arguments, &call.result);
        if !self.discovered.contains(&name) {
            self.discovered.push(name);
        }
    }

    fn entry(&self, slot: u32) -> ShownTool {
        let tool = self.scene.snapshot.tool(slot);
        ShownTool::new(tool.key, &tool.hash).held_for(HELD)
    }

    fn turned(&self, ranked: &Ranked<'_>, now: &Now) -> Turned {
        let tokens = |slot: &u32| u64::from(self.scene.snapshot.tool(*slot).schema_tokens);
        let mut relevant = ranked.turn.query.relevant.iter().filter_map(|id| self.scene.slot(id));
        Turned {
            searches: 0,
            left_out: 0,
            is_needing: !ranked.turn.query.relevant.is_empty(),
            is_right: relevant.any(|slot| now.shown.contains(&slot)),
            shown: now.shown.len(),
            definitions: now.shown.iter().map(tokens).sum(),
        }
    }
}
