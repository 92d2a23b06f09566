//! The planner: which tools are added at which place of the conversation. It knows nothing of how an addition is
//! written. Tools that are added before the first message stand in `tools`.

use std::collections::HashSet;

use serde_json::Value;

use super::additions;
use super::ledger::{Added, Addition};
use super::listing::{Change, Kept, Listed};
use super::messages::{self, Speaker};
use super::toolset::{self, render_added};
use super::{Ledger, Turn, Way, digest, keep};
use crate::price::{Dropped, Rates};
use crate::render::{Loss, RenderError, Tool};

/// Share of conversations that are expected to drop the tools which stand in `tools` since their beginning, where that would
/// not pay soon. Few do, because it must pay for all messages.
const DROPPING: f64 = 0.1;

/// Factor by which a conversation may outlast what is expected of it. Tools whose dropping pays by then are expected to be
/// dropped.
const LONGER: f64 = 2.0;

/// Most changes of the tools that can be found that a conversation tells. With one more, `tools` list them anew.
const MOST_CHANGES: usize = 16;

/// Most bytes that a ledger has of the listing and its changes. `tools` with a longer listing change with the catalog.
const LISTED_MAX: usize = 32 << 10;

/// Most bytes of a ledger: a request may have no more.
const LEDGER_MAX: usize = 64 << 10;

/// Additions of a request.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The additions, in the order of the conversation.
    pub additions: Vec<Placed>,
    /// Parts of this turn's tools that the API's format can't express. Those of earlier turns were told then.
    pub losses: Vec<Loss>,
    /// Listing that the description of the search has.
    pub listed: Listed,
    /// Digest of each prefix of the conversation.
    prefixes: Vec<u64>,
    /// Names of tools whose current definitions the messages hold.
    loaded: Vec<String>,
}

/// Tools to add at one place.
#[derive(Debug)]
pub(super) struct Placed {
    /// Number of the agent's messages before the addition; 0 for tools that stand in `tools`.
    pub after: usize,
    /// The tools.
    pub tools: Vec<Defined>,
    /// Change of the tools that can be found, to tell there.
    pub change: Change,
}

impl Placed {
    fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.change.is_empty()
    }
}

/// A tool to add.
#[derive(Debug)]
pub(super) struct Defined {
    /// Name that the model sees.
    pub name: String,
    /// Its definition.
    pub definition: Value,
    /// Digest of the definition.
    digest: u64,
    /// True if it is added only because its earlier addition was lost.
    anew: bool,
}

#[cfg(test)]
impl Defined {
    /// Creates a tool of this name alone.
    pub(super) fn of(name: &str) -> Self {
        let definition = serde_json::json!({ "name": name });
        Self { name: name.to_owned(), digest: digest::of(&definition), definition, anew: false }
    }
}

impl Plan {
    /// Takes out the definitions that stand in `tools`.
    pub(super) fn take_base(&mut self) -> Vec<Value> {
        let is_base = |placed: &mut Placed| placed.after == 0;
        let base = self.additions.extract_if(.., is_base).flat_map(|placed| placed.tools);
        base.map(|tool| tool.definition).collect()
    }

    /// Returns the ledger for the next turn.
    pub(super) fn ledger(&self, way: Way) -> Ledger {
        let added = |tool: &Defined| {
            let name = tool.name.clone();
            Added { name, definition: tool.digest, anew: tool.anew }
        };
        let addition = |placed: &Placed| Addition {
            after: placed.after,
            digest: self.prefixes[placed.after],
            tools: placed.tools.iter().map(added).collect(),
            change: placed.change.clone(),
        };
        let additions = self.additions.iter().map(addition).collect();
        let listed = Some(self.listed.kept()).filter(|listed| self.fits(listed));
        let ledger = Ledger { way: Some(way), additions, listed };
        let is_too_long = ledger.to_json().to_string().len() > LEDGER_MAX;
        if is_too_long { Ledger { listed: None, ..ledger } } else { ledger }
    }

    /// Returns the names of the tools that the conversation has by additions.
    pub(super) fn defined(&self) -> Vec<String> {
        let added = self.additions.iter().flat_map(|placed| &placed.tools).map(|tool| &tool.name);
        added.chain(&self.loaded).cloned().collect()
    }

    /// Returns the texts of the changes that are told amid the conversation.
    pub(super) fn told(&self) -> Vec<String> {
        self.changes().map(Change::text).collect()
    }

    /// Returns the changes that are told amid the conversation.
    fn changes(&self) -> impl Iterator<Item = &Change> {
        self.additions.iter().map(|placed| &placed.change).filter(|change| !change.is_empty())
    }

    /// Returns true if a listing is short enough to be remembered, with the changes.
    fn fits(&self, listed: &Kept) -> bool {
        let changes = self.changes().map(|change| change.to_json().to_string().len());
        listed.to_json().to_string().len() + changes.sum::<usize>() <= LISTED_MAX
    }
}

/// Plans the additions of a turn. `place` is the number of messages before this turn's addition; `constant` names the
/// tools that the request has anyway.
///
/// # Errors
/// [`RenderError`] if a tool came without its full schema.
pub(super) fn plan(
    turn: &Turn<'_>,
    way: Way,
    place: usize,
    constant: &HashSet<&str>,
) -> Result<Plan, RenderError> {
    let prefixes = digest::of_prefixes(turn.messages);
    let holding = holding(turn, way, &prefixes);
    let (held, lost) = turn.ledger.additions.split_at(holding);
    let mut planner = Planner {
        turn,
        way,
        plan: Plan { prefixes, ..Plan::default() },
        known: constant.iter().map(|name| (*name).to_owned()).collect(),
        again: Vec::new(),
        beyond: keep::beyond(turn),
    };
    for addition in held {
        planner.hold(addition)?;
    }
    planner.drop_stale(place)?;
    planner.settle_listing(place);
    planner.know_loaded();
    planner.add(place, lost)?;
    Ok(planner.plan)
}

/// Returns the names of the tools that are active, were called, or are referred to: a request can't be sent with a reference
/// to a tool that it does not define.
fn used(turn: &Turn<'_>) -> HashSet<String> {
    let mut used = messages::called(turn.api, turn.messages);
    used.extend(messages::referred(turn.api, turn.messages).map(str::to_owned));
    used.extend(turn.offer.active.iter().map(|tool| tool.name.to_owned()));
    used
}

/// Returns the number of entries of the ledger that hold: those before the first change of the conversation.
fn holding(turn: &Turn<'_>, way: Way, prefixes: &[u64]) -> usize {
    if turn.ledger.way != Some(way) {
        return 0;
    }
    let mut before = None;
    let holds = |addition: &&Addition| {
        let is_next = before < Some(addition.after);
        before = Some(addition.after);
        is_next
            && prefixes.get(addition.after) == Some(&addition.digest)
            && messages::may_follow(turn.api, turn.messages, addition.after)
    };
    turn.ledger.additions.iter().take_while(holds).count()
}

struct Planner<'t, 'a> {
    turn: &'t Turn<'a>,
    way: Way,
    plan: Plan,
    /// Names of the tools that the request has already.
    known: HashSet<String>,
    /// Names of tools whose earlier addition does not stand any more, though they are wanted.
    again: Vec<String>,
    /// Names of tools of earlier turns that are too many.
    beyond: HashSet<String>,
}

impl Planner<'_, '_> {
    /// Keeps an entry of the ledger. A tool that vanished, or is one too many, drops out of it; one whose definition changed
    /// does too, and is added again, because the definition that the model saw is not known any more.
    fn hold(&mut self, addition: &Addition) -> Result<(), RenderError> {
        let mut tools = Vec::new();
        for added in &addition.tools {
            if self.known.contains(&added.name) || self.beyond.contains(&added.name) {
                continue;
            }
            let mut held = None;
            let way = self.way.at(addition.after);
            for tool in self.forms(&added.name) {
                let defined = define(way, tool, added.anew)?;
                held = held.or(defined.tool.filter(|tool| tool.digest == added.definition));
            }
            if let Some(tool) = held {
                self.known.insert(added.name.clone());
                tools.push(tool);
            } else {
                self.again.push(added.name.clone());
            }
        }
        self.place(addition.after, tools, addition.change.clone());
        Ok(())
    }

    /// Returns the forms in which a tool may have been added, if it stays. A tool that was shown in full may be active
    /// with its signature alone now, but not the other way round.
    fn forms(&self, name: &str) -> Vec<Tool<'_>> {
        let found = (self.turn.offer.find)(name);
        let brief = found.filter(|tool| !tool.signature.is_empty());
        let brief = brief.map(|tool| Tool { input_schema_json: "", ..tool });
        match self.active(name) {
            Some(active) if active.input_schema_json.is_empty() => {
                found.into_iter().chain([active]).collect()
            }
            Some(active) => vec![active],
            None => found.into_iter().chain(brief).collect(),
        }
    }

    fn active(&self, name: &str) -> Option<Tool<'_>> {
        self.turn.offer.active.iter().find(|tool| tool.name == name).copied()
    }

    /// Drops tools that were added by earlier turns and are not used, where that is cheaper than to keep them. It happens
    /// only at a new message of the user, so that within a turn nothing is lost, nor when a turn is prepared again.
    fn drop_stale(&mut self, place: usize) -> Result<(), RenderError> {
        let speaks = |last| messages::speaker(self.turn.api, last) == Speaker::User;
        let is_again = self.plan.additions.last().is_some_and(|last| last.after == place);
        if is_again || !self.turn.messages.last().is_some_and(speaks) {
            return Ok(());
        }
        let used = used(self.turn);
        let is_stale = |tool: &Defined| !used.contains(tool.name.as_str());
        let constant = toolset::constant(self.turn, self.way.strategy, &Listed::of(self.turn))?;
        let constant = messages::tokens(self.turn.count, &constant.tools);
        let from = keep::stale_from(self.turn, &self.plan.additions, constant, &is_stale);
        let Some(from) = from else { return Ok(()) };
        let mut dropped = Vec::new();
        for placed in self.plan.additions.iter_mut().skip(from) {
            dropped.extend(placed.tools.extract_if(.., |tool| is_stale(tool)));
        }
        self.plan.additions.retain(|placed| !placed.is_empty());
        for tool in dropped {
            self.known.remove(&tool.name);
        }
        Ok(())
    }

    /// Keeps the listing of the turn before as long as `tools` and its lines stay, and tells what changed since. Where they do
    /// not stay, all is listed anew, and no change is left to tell.
    fn settle_listing(&mut self, place: usize) {
        let fresh = Listed::of(self.turn);
        let before = self.turn.ledger.listed.as_ref();
        let is_told = toolset::has_search(&self.turn.offer) && self.turn.offer.listing.tokens > 0;
        let before = before.filter(|_| is_told && self.is_kept());
        if let Some(listed) = before.and_then(|kept| kept.again(&fresh, self.turn)) {
            let change = listed.change(self.plan.changes(), self.turn);
            self.place(place, Vec::new(), change);
            if self.plan.changes().count() <= MOST_CHANGES && self.plan.fits(&listed.kept()) {
                self.plan.listed = listed;
                return;
            }
        }
        for placed in &mut self.plan.additions {
            placed.change = Change::default();
        }
        self.plan.additions.retain(|placed| !placed.is_empty());
        self.plan.listed = fresh;
    }

    /// Returns true if the tools that stand in `tools` are those of the turn before.
    fn is_kept(&self) -> bool {
        let before = self.turn.ledger.additions.first().filter(|first| first.after == 0);
        let before = before.into_iter().flat_map(|first| &first.tools).map(|tool| tool.definition);
        let now = self.plan.additions.first().filter(|first| first.after == 0);
        let now = now.into_iter().flat_map(|first| &first.tools).map(|tool| tool.digest);
        self.turn.ledger.way == Some(self.way) && before.eq(now)
    }

    /// Notes the tools whose current definition an answer of the provider's search holds.
    fn know_loaded(&mut self) {
        for loaded in messages::loaded(self.turn.api, self.turn.messages) {
            let Some(name) = toolset::name(loaded) else { continue };
            let Some(tool) = (self.turn.offer.find)(name) else { continue };
            let Ok(rendered) = toolset::render(self.turn.api, &[tool]) else { continue };
            let same =
                |key: &str| rendered.tools.first().is_some_and(|t| t.get(key) == loaded.get(key));
            if same("description") && same("parameters") {
                self.known.insert(name.to_owned());
                self.plan.loaded.push(name.to_owned());
            }
        }
    }

    /// Adds what the conversation has not: the active set, and what was added before and does not stand any more.
    fn add(&mut self, place: usize, lost: &[Addition]) -> Result<(), RenderError> {
        let mut tools = Vec::new();
        if self.begins_in_tools(place)? {
            for tool in self.turn.offer.active {
                self.take(self.way.at(0), *tool, false, &mut tools)?;
            }
            self.place(0, std::mem::take(&mut tools), Change::default());
        }
        for tool in self.turn.offer.active {
            self.take(self.way, *tool, false, &mut tools)?;
        }
        let used = used(self.turn);
        for name in std::mem::take(&mut self.again) {
            self.take_found(&name, false, &mut tools)?;
        }
        let lost = lost.iter().flat_map(|addition| &addition.tools);
        let lost: Vec<_> = lost.filter(|added| !self.beyond.contains(&added.name)).collect();
        for added in lost {
            let is_used = used.contains(added.name.as_str());
            if is_used || !added.anew {
                self.take_found(&added.name, !is_used, &mut tools)?;
            }
        }
        self.place(place, tools, Change::default());
        Ok(())
    }

    /// Returns true if the active set is to stand in `tools`: at the beginning of a conversation whose strategy is chosen
    /// by itself, if that is cheaper. The first request is written to the cache anyway, and definitions are shorter there,
    /// but to drop them would cost all messages, and a longer request may be one that is cached.
    fn begins_in_tools(&self, place: usize) -> Result<bool, RenderError> {
        let Turn { strategy, ledger, offer, messages, count, .. } = self.turn;
        if strategy.is_some() || ledger.way == Some(self.way) {
            return Ok(false);
        }
        let added = added(self.turn, self.way)?;
        let base = defined(self.turn, self.way.at(0))?;
        let constant = toolset::constant(self.turn, self.way.strategy, &self.plan.listed)?.tools;
        let rest = messages::tokens(count, offer.own.iter().chain(&constant).chain(*messages));
        let rest = rest.saturating_add(self.turn.system_tokens);
        let behind = messages::tokens(count, messages.iter().take(place.saturating_sub(1)));
        let rates = Rates::of(self.turn.api, &self.turn.endpoint);
        let following = keep::following(self.turn);
        let price = |tokens: u32| rates.price_of_all(rest.saturating_add(tokens), &following);
        let size = messages::tokens(count, base.iter().map(|tool| &tool.definition));
        let requests = f64::from(following.requests + 1) * LONGER;
        let prompt = u64::from(rest) + u64::from(size);
        let dropping = rates.dropping(&Dropped {
            tokens: size.into(),
            behind: behind.into(),
            searched: 0,
            prompt,
            left: rest.into(),
            requests,
        });
        let share = if dropping.gain() > 0.0 { 1.0 } else { DROPPING };
        let dropping = dropping.lost.min(rates.price_of_writing_again(behind)) * share;
        Ok(price(size) + dropping < price(messages::tokens(count, &added)))
    }

    fn take_found(
        &mut self,
        name: &str,
        anew: bool,
        tools: &mut Vec<Defined>,
    ) -> Result<(), RenderError> {
        match (self.turn.offer.find)(name) {
            Some(tool) => self.take(self.way, tool, anew, tools),
            None => Ok(()),
        }
    }

    fn take(
        &mut self,
        way: Way,
        tool: Tool<'_>,
        anew: bool,
        tools: &mut Vec<Defined>,
    ) -> Result<(), RenderError> {
        if self.known.insert(tool.name.to_owned()) {
            let definition = define(way, tool, anew)?;
            tools.extend(definition.tool);
            self.plan.losses.extend(definition.losses);
        }
        Ok(())
    }

    /// Puts tools and a change at a place, beside those that are there already.
    fn place(&mut self, after: usize, tools: Vec<Defined>, change: Change) {
        let placed = Placed { after, tools, change };
        if placed.is_empty() {
            return;
        }
        match self.plan.additions.last_mut().filter(|last| last.after == after) {
            Some(last) => {
                last.tools.extend(placed.tools);
                last.change.add(placed.change);
            }
            None => self.plan.additions.push(placed),
        }
    }
}

/// A tool as an addition has it.
struct Definition {
    /// The tool; `None` if the API takes none of that name.
    tool: Option<Defined>,
    /// Parts that the API's format can't express.
    losses: Vec<Loss>,
}

/// Returns the messages that add the active set amid a conversation that has none of it.
///
/// # Errors
/// [`RenderError`] if a tool came without its full schema.
pub(super) fn added(turn: &Turn<'_>, way: Way) -> Result<Vec<Value>, RenderError> {
    let mut added = Vec::new();
    let placed = Placed { after: 1, tools: defined(turn, way)?, change: Change::default() };
    additions::add(way, &mut added, &placed);
    Ok(added)
}

/// Defines the active set.
fn defined(turn: &Turn<'_>, way: Way) -> Result<Vec<Defined>, RenderError> {
    let definitions = turn.offer.active.iter().map(|tool| define(way, *tool, false));
    let definitions = definitions.collect::<Result<Vec<_>, _>>()?;
    Ok(definitions.into_iter().filter_map(|definition| definition.tool).collect())
}

fn define(way: Way, tool: Tool<'_>, anew: bool) -> Result<Definition, RenderError> {
    let rendered = render_added(way, tool)?;
    let defined = |definition: Value| {
        let name = tool.name.to_owned();
        Defined { name, digest: digest::of(&definition), definition, anew }
    };
    Ok(Definition { tool: rendered.tools.into_iter().next().map(defined), losses: rendered.losses })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Api, Endpoint, Listing, Offer, Strategy};
    use super::*;

    /// Tokens of a request whose first tool is to be placed.
    struct Tokens {
        system: u32,
        history: u32,
        /// Tokens of the tool in `tools`.
        defined: u32,
        /// Tokens of the tool in the text of an envelope.
        told: u32,
    }

    /// Returns true if a tool stands in `tools` at the beginning.
    fn begins_in_tools(api: Api, model: &str, tokens: &Tokens) -> bool {
        let active = [Tool {
            name: "a",
            description: "[tool]",
            input_schema_json: r#"{"type":"object"}"#,
            ..Tool::default()
        }];
        let offer = Offer {
            own: &[],
            always_on: &[],
            active: &active,
            deferred: 1,
            catalog_tokens: None,
            search: true,
            deferred_names: &["a"],
            listing: Listing::default(),
            budget: None,
            find: &|_| None,
        };
        let turn = Turn {
            api,
            strategy: None,
            endpoint: Endpoint { model, ..Endpoint::default() },
            offer,
            system_tokens: tokens.system,
            messages: &[
                json!({ "role": "user", "content": "[history]" }),
                json!({ "role": "assistant", "content": "done" }),
                json!({ "role": "user", "content": "next" }),
            ],
            ledger: &Ledger::default(),
            count: &|text| match text {
                text if text.contains("[history]") => tokens.history,
                text if text.contains("[tool]") && text.contains("\"role\"") => tokens.told,
                text if text.contains("[tool]") => tokens.defined,
                _ => 10,
            },
        };
        let way = Way { api: turn.api, strategy: Strategy::Envelope };
        let plan = plan(&turn, way, turn.messages.len(), &HashSet::new()).expect("it has a schema");
        plan.additions.iter().any(|placed| placed.after == 0)
    }

    #[test]
    fn the_first_tools_are_added_amid_the_conversation_where_dropping_them_soon_pays() {
        let begins_in_tools = |history| {
            let tokens = Tokens { system: 0, history, defined: 3_000, told: 3_500 };
            begins_in_tools(Api::OpenAiChat, "gpt-5.5", &tokens)
        };
        assert!(begins_in_tools(10), "to drop them costs next to nothing");
        assert!(!begins_in_tools(1_000), "they will be dropped, and the history written again");
        assert!(begins_in_tools(5_000), "they will hardly ever be dropped");
        assert!(!begins_in_tools(100_000), "a small share of all that is too much");
    }

    #[test]
    fn to_drop_tools_costs_nothing_where_the_whole_prompt_is_too_short_for_the_cache() {
        let begins_in_tools = |model, system| {
            let tokens = Tokens { system, history: 1_000, defined: 300, told: 310 };
            begins_in_tools(Api::Anthropic, model, &tokens)
        };
        assert!(begins_in_tools("claude-haiku-4-5", 0), "caching begins at 4,096 tokens");
        assert!(!begins_in_tools("claude-haiku-4-5", 10_000), "the system prompt makes it longer");
        assert!(!begins_in_tools("claude-opus-4-8", 0), "caching begins at 1,024 tokens");
    }
}
