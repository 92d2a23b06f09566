//! Requests of a conversation: what each method makes of a turn's set and of the agent's messages.

use std::collections::HashSet;

use serde_json::Value;
use toolgate_core::error::Error;
use toolgate_llm::SEARCH_TOOL;
use toolgate_llm::price::Rates;
use toolgate_llm::render::{
    AnthropicOptions, Rendered, Tool, anthropic, gemini, openai_chat, openai_responses,
};
use toolgate_llm::strategy::{Api, Ledger, Listing, Offer, Prepared, Strategy, Turn, prepare};

use super::agent::HISTORY;
use super::pieces::{Counter, Piece};
use super::scene::Scene;
use super::{Method, Provider};

/// System prompt of the agent. It stands behind the tools.
pub(super) const SYSTEM: &str = "You are a helpful assistant. You work for one person, with the tools that you have. Say what you \
                      did in a sentence or two, and ask before you delete anything.";

/// Request as pieces.
pub(super) struct Sent {
    /// Pieces in their order.
    pub pieces: Vec<Piece>,
    /// Slots of the tools that it defines.
    pub shown: HashSet<u32>,
    /// Tokens that stand before all messages without the system prompt: definitions, or the summary pool.
    pub first: u32,
}

/// Maker of the requests of one conversation.
pub(super) struct Requests<'a> {
    scene: &'a Scene<'a>,
    counter: &'a Counter,
    provider: Provider,
    method: Method,
    names: Vec<&'a str>,
    system: Piece,
    /// All definitions, where the method sends them. The catalog stays the same.
    all: Vec<Piece>,
    /// Slots of the tools that they define: an API may have no place for all.
    all_shown: HashSet<u32>,
    ledger: Ledger,
    /// Tokens of the initial history.
    history: u32,
}

impl<'a> Requests<'a> {
    pub(super) fn new(
        scene: &'a Scene<'a>,
        counter: &'a Counter,
        provider: Provider,
        method: Method,
        history: u32,
    ) -> Result<Self, Error> {
        let mut requests = Self {
            names: scene.all().into_iter().map(|slot| scene.name(slot)).collect(),
            system: counter.piece_of_text(SYSTEM),
            all: Vec::new(),
            all_shown: HashSet::new(),
            ledger: Ledger::default(),
            history,
            scene,
            counter,
            provider,
            method,
        };
        if requests.sends_everything() {
            let prepared = requests.prepare(Some(Strategy::Pass), &scene.all(), &[])?;
            requests.all = prepared.tools.iter().map(|tool| counter.piece(tool)).collect();
            requests.all_shown = requests.shown(&prepared);
        }
        Ok(requests)
    }

    /// Returns true if the method sends all definitions.
    pub(super) fn sends_everything(&self) -> bool {
        matches!(self.method, Method::Naive | Method::Strategy(Some(Strategy::Pass)))
    }

    /// Makes the request with the set `set`. `at` is the place of the turn's message.
    ///
    /// # Errors
    /// A definition that can't be rendered.
    pub(super) fn send(
        &mut self,
        set: &[u32],
        messages: &[Value],
        at: usize,
    ) -> Result<Sent, Error> {
        if self.sends_everything() {
            let shown = self.all_shown.clone();
            return Ok(self.laid_out(&self.all, messages, shown));
        }
        match self.method {
            Method::Paper => self.paper(set, messages, at),
            Method::Strategy(strategy) => self.by_strategy(strategy, set, messages),
            Method::Naive | Method::Anew => self.by_strategy(Some(Strategy::Cut), set, messages),
        }
    }

    /// Returns the tokens of messages of the agent's, without the initial history.
    pub(super) fn tokens(&self, messages: &[Value]) -> u32 {
        messages.iter().map(|message| self.counter.piece(message).tokens).sum()
    }

    fn count(&self, text: &str) -> u32 {
        if text.contains(HISTORY) { self.history } else { self.counter.count(text) }
    }

    fn paper(&self, set: &[u32], messages: &[Value], at: usize) -> Result<Sent, Error> {
        let tools = &self.scene.snapshot.tools;
        // Lines of the summary pool never change, so that one piece stands for all of them.
        let tokens = tools.iter().map(|tool| tool.summary_tokens).sum();
        let pool = Piece { tokens, ..self.counter.piece_of_text("summaries") };
        let defined: Vec<Tool<'_>> = set.iter().map(|slot| self.scene.tool(*slot)).collect();
        let defined = render(self.provider.api, &defined)?.tools;
        let piece = |value: &Value| self.counter.piece(value);
        let (before, now) = messages.split_at(at);
        let mut pieces = vec![pool, self.system];
        pieces.extend(before.iter().chain(&defined).chain(now).map(piece));
        Ok(Sent { pieces, shown: set.iter().copied().collect(), first: tokens })
    }

    fn by_strategy(
        &mut self,
        strategy: Option<Strategy>,
        set: &[u32],
        messages: &[Value],
    ) -> Result<Sent, Error> {
        let mut prepared = self.prepare(strategy, set, messages)?;
        if prepared.missing > 0 {
            prepared = self.prepare(strategy, &self.scene.all(), messages)?;
        }
        let tools: Vec<Piece> =
            prepared.tools.iter().map(|tool| self.counter.piece(tool)).collect();
        let sent = self.laid_out(&tools, &prepared.messages, self.shown(&prepared));
        self.ledger = prepared.ledger;
        Ok(sent)
    }

    fn prepare(
        &self,
        strategy: Option<Strategy>,
        set: &[u32],
        messages: &[Value],
    ) -> Result<Prepared, Error> {
        let scene = self.scene;
        let active: Vec<Tool<'_>> = set.iter().map(|slot| scene.tool(*slot)).collect();
        let find = |name: &str| scene.snapshot.names.model_name(name).map(|slot| scene.tool(slot));
        let turn = Turn {
            api: self.provider.api,
            strategy,
            endpoint: self.provider.endpoint(),
            offer: Offer {
                own: &[],
                always_on: &[],
                active: &active,
                deferred: scene.snapshot.tools.len() - active.len(),
                catalog_tokens: Some(scene.catalog_tokens()),
                search: true,
                deferred_names: &self.names,
                listing: Listing::default(),
                budget: None,
                find: &find,
            },
            // Integrations tell it by default.
            system_tokens: self.system.tokens,
            messages,
            ledger: &self.ledger,
            count: &|text| self.count(text),
        };
        prepare(&turn).map_err(Error::internal)
    }

    /// Returns the slots of the tools that a request defines, in `tools` or amid the conversation.
    fn shown(&self, prepared: &Prepared) -> HashSet<u32> {
        let slot = |name: &str| self.scene.snapshot.names.model_name(name);
        let name = |tool: &Value| {
            let definition = tool.get("function").unwrap_or(tool);
            definition["name"].as_str().and_then(slot)
        };
        let ledger = prepared.ledger.to_json();
        let additions = ledger["additions"].as_array().into_iter().flatten();
        let added = additions.filter_map(|addition| addition["tools"].as_array()).flatten();
        prepared.tools.iter().chain(added).filter_map(name).collect()
    }

    fn laid_out(&self, tools: &[Piece], messages: &[Value], shown: HashSet<u32>) -> Sent {
        let first = tools.iter().map(|tool| tool.tokens).sum();
        let messages = messages.iter().map(|message| self.counter.piece(message));
        let pieces = tools.iter().copied().chain([self.system]).chain(messages).collect();
        Sent { pieces, shown, first }
    }

    /// Returns the tokens of the search without what it lists.
    pub(super) fn search_tokens(&self) -> u32 {
        let texts = [SEARCH_TOOL.description, SEARCH_TOOL.input_schema_json];
        texts.into_iter().map(|text| self.counter.count(text)).sum()
    }

    /// Returns the provider's API.
    pub(super) fn api(&self) -> Api {
        self.provider.api
    }

    /// Returns the provider's rates.
    pub(super) fn rates(&self) -> Rates {
        self.provider.rates()
    }

    /// Returns the tokens of the system prompt.
    pub(super) fn system_tokens(&self) -> u32 {
        self.system.tokens
    }
}

fn render(api: Api, tools: &[Tool<'_>]) -> Result<Rendered, Error> {
    let rendered = match api {
        Api::Anthropic => anthropic(tools, &AnthropicOptions::default()),
        Api::OpenAiChat => openai_chat(tools),
        Api::OpenAiResponses => openai_responses(tools),
        Api::Gemini => gemini(tools),
    };
    rendered.map_err(Error::internal)
}
