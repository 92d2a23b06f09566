//! Prompt cache use of a conversation: the share of its prompts that a provider's cache can serve, by the way tools are
//! put into the prompts and by the length of the initial history. The queries are the turns, each with one call.
//! Halfway through, one more tool is registered. Nothing is sent anywhere. The cache is assumed to serve the prefix
//! that a prompt shares with the one before it. The parts of a prompt are tokenised separately.

mod prompt;

use toolgate_core::error::Error;
use toolgate_core::state::{AgentState, CallStatus, PriorCall};
use toolgate_llm::price::Rates;
use toolgate_routing::gate::handle::ActiveSet;
use toolgate_routing::gate::visibility::Visibilities;
use toolgate_routing::packs::Attached;
use toolgate_routing::router::allow::Allowed;
use toolgate_routing::router::intent::{self, Intent};
use toolgate_routing::router::query::{Options, RouteQuery};
use toolgate_routing::router::ranking::level::Level;
use toolgate_routing::router::ranking::rank::Embedded;
use toolgate_routing::router::selection::choose::{Choice, Chosen};
use toolgate_routing::shard::snapshot::{Known, Snapshot};
use toolgate_store::StoredCatalog;

use super::embeddings::Embeddings;
use super::query_file::LabelledQuery;

use prompt::{Part, Prompts};

/// Tokens of a turn's call, its result and the model's answer together. This is an assumption, because queries come
/// without answers.
pub const ANSWER_TOKENS: u32 = 300;

/// Tokens of messages that a conversation begins with, such as a document or an earlier conversation.
pub const HISTORIES: [u32; 4] = [0, 5_000, 20_000, 60_000];

/// Number of candidates that a set is chosen from, the same as Route ranks, whatever its `top_k`.
const CANDIDATES: usize = 100;

/// One way to put tools into prompts, measured over a whole conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// Name of the layout.
    pub name: &'static str,
    /// Tokens of all prompts together.
    pub tokens: u64,
    /// Tokens of the prefix that each prompt shares with the one before it, added up.
    pub cached: u64,
    /// Largest number of tools in one prompt.
    pub tools: usize,
    /// Largest number of schema tokens in one prompt.
    pub schema_tokens: u64,
    /// Number of turns without any of their right tools.
    pub missed: usize,
}

impl Layout {
    /// Returns the share of all tokens that a cache serves, 0 to 1.
    #[must_use]
    pub fn hit_rate(&self) -> f64 {
        self.cached as f64 / (self.tokens as f64).max(1.0)
    }

    /// Returns the cost in tokens at the price of uncached ones, by the rules for a provider of unknown prices.
    #[must_use]
    pub fn priced(&self) -> f64 {
        let Rates { write, read, .. } = Rates::UNKNOWN;
        (self.tokens - self.cached) as f64 * write + self.cached as f64 * read
    }
}

/// Conversation in every layout, after one initial history.
#[derive(Debug, Clone, PartialEq)]
pub struct Played {
    /// Tokens of the initial history.
    pub history: u32,
    /// Layout with every schema, before the history.
    pub all: Layout,
    /// Layout with each turn's set chosen anew, before the history.
    pub anew: Layout,
    /// Layout with all summaries in the prefix, then each turn's set chosen anew, before the history. It is the paper's
    /// layout if a provider takes definitions in `tools[]` only.
    pub paper_first: Layout,
    /// Layout with each turn's set chosen anew, directly before the message, and no other tools listed.
    pub anew_last: Layout,
    /// Layout with all summaries in the prefix, and each turn's set chosen anew directly before the message (Tool
    /// Attention).
    pub paper: Layout,
    /// Layout with the set that Route keeps, before the history. Route is told the length of the history.
    pub kept_first: Layout,
    /// Layout with the set that Route keeps, directly before the message, and no other tools listed. Route is told that
    /// nothing cached comes after the tools.
    pub kept_last: Layout,
    /// Layout with the set that Route keeps by default, before the history. Route is not told what comes after the
    /// tools.
    pub default_first: Layout,
    /// Layout with the set that Route keeps by default, directly before the message, and no other tools listed.
    pub default_last: Layout,
}

impl Played {
    /// Returns the layouts, the most naive first.
    #[must_use]
    pub fn layouts(&self) -> [&Layout; 9] {
        [
            &self.all,
            &self.paper_first,
            &self.anew,
            &self.default_first,
            &self.kept_first,
            &self.paper,
            &self.anew_last,
            &self.default_last,
            &self.kept_last,
        ]
    }

    /// Returns true if a kept set costs more than the cheaper of the paper's layout and routing anew at the same place,
    /// before the history or directly before the message. The check covers only the sets for which Route was told what
    /// comes after the tools. Otherwise Route cannot know whether keeping a set pays.
    #[must_use]
    pub fn is_dearer(&self) -> bool {
        let is_dearer = |kept: &Layout, others: [&Layout; 2]| {
            others.iter().any(|other| kept.priced() > other.priced())
        };
        is_dearer(&self.kept_first, [&self.paper_first, &self.anew])
            || is_dearer(&self.kept_last, [&self.paper, &self.anew_last])
    }
}

/// Conversation in every layout, played once with each of [`HISTORIES`].
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    /// Number of turns.
    pub turns: usize,
    /// Results in the order of [`HISTORIES`].
    pub played: Vec<Played>,
}

/// Catalog, embeddings and options that a conversation is played with.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// Catalog after the halfway registration.
    pub catalog: &'a StoredCatalog,
    /// Requests of packs for the catalog's tools.
    pub packs: &'a Attached,
    /// Embeddings of summaries and queries.
    pub embeddings: &'a Embeddings,
    /// Length of one embedding.
    pub dimensions: usize,
    /// Options that each turn is routed with.
    pub options: &'a Options,
}

impl Conversation {
    /// Plays `queries` as the turns of a conversation, in order.
    ///
    /// # Errors
    /// An internal error of the index.
    pub fn play(scene: Scene<'_>, queries: &[LabelledQuery]) -> Result<Self, Error> {
        let known = Known { embeddings: scene.embeddings.vectors(), packs: scene.packs };
        let after = Snapshot::build_with(scene.catalog.clone(), known, scene.dimensions)?;
        let before = Snapshot::build_with(without_one(scene.catalog), known, scene.dimensions)?;
        let play = |history: u32| -> Result<Played, Error> {
            let mut stage = Stage::new(scene, history);
            for (turn, query) in queries.iter().enumerate() {
                let snapshot = if turn < queries.len() / 2 { &before } else { &after };
                stage.turn(snapshot, turn, query)?;
            }
            Ok(stage.played(history))
        };
        let played = HISTORIES.into_iter().map(play).collect::<Result<_, _>>()?;
        Ok(Self { turns: queries.len(), played })
    }

    /// Returns true if [`Played::is_dearer`] holds with any history.
    #[must_use]
    pub fn is_dearer(&self) -> bool {
        self.played.iter().any(Played::is_dearer)
    }
}

/// Returns the catalog before the tool in its middle was registered.
fn without_one(catalog: &StoredCatalog) -> StoredCatalog {
    let mut catalog = catalog.clone();
    if catalog.tools.len() > 1 {
        catalog.tools.remove(catalog.tools.len() / 2);
    }
    catalog
}

/// Prompts so far in every layout.
struct Stage<'a> {
    scene: Scene<'a>,
    background: Vec<Vec<f32>>,
    all: Prompts,
    paper_first: Prompts,
    anew: Prompts,
    paper: Prompts,
    anew_last: Prompts,
    kept_first: Kept,
    kept_last: Kept,
    default_first: Kept,
    default_last: Kept,
    /// Parts of the initial history and of all turns so far.
    history: Vec<Part>,
    history_tokens: u32,
}

/// Layout that keeps its set from turn to turn.
#[derive(Default)]
struct Kept {
    prompts: Prompts,
    turns: Turns,
}

/// State from the turns before, for a set that is kept.
#[derive(Default)]
struct Turns {
    shown: Option<ActiveSet>,
    calls: Vec<PriorCall>,
    /// Tools with a successful call, which a scan of the history would report as discovered.
    discovered: Vec<String>,
}

/// Turn that is being played.
#[derive(Clone, Copy)]
struct Turn<'a> {
    snapshot: &'a Snapshot,
    number: usize,
    query: &'a LabelledQuery,
    message: Part,
}

impl<'a> Stage<'a> {
    fn new(scene: Scene<'a>, history: u32) -> Self {
        Self {
            scene,
            background: scene.embeddings.background(),
            all: Prompts::default(),
            paper_first: Prompts::default(),
            anew: Prompts::default(),
            paper: Prompts::default(),
            anew_last: Prompts::default(),
            kept_first: Kept::default(),
            kept_last: Kept::default(),
            default_first: Kept::default(),
            default_last: Kept::default(),
            history: vec![Part::history(history)],
            history_tokens: history,
        }
    }

    fn turn(
        &mut self,
        snapshot: &Snapshot,
        turn: usize,
        query: &LabelledQuery,
    ) -> Result<(), Error> {
        let message = Part::message(turn, toolgate_core::tokens::count(&query.text));
        let answer = Part::answer(turn, ANSWER_TOKENS);
        let all: Vec<Part> = snapshot.tools.iter().map(Part::schema).collect();
        let pool: Vec<Part> = snapshot.tools.iter().map(Part::summary).collect();
        let anew = self.route(snapshot, query, &Turns::default(), None)?;
        let best = schemas(snapshot, &anew);
        let told = Some(self.history_tokens);
        let kept_first = self.route(snapshot, query, &self.kept_first.turns, told)?;
        let kept_last = self.route(snapshot, query, &self.kept_last.turns, Some(0))?;
        let default_first = self.route(snapshot, query, &self.default_first.turns, None)?;
        let default_last = self.route(snapshot, query, &self.default_last.turns, None)?;

        self.all.push(&all, [&all, &self.history, &[message]]);
        self.paper_first.push(&best, [&pool, &best, &self.history, &[message]]);
        self.anew.push(&best, [&best, &self.history, &[message]]);
        self.paper.push(&best, [&pool, &self.history, &best, &[message]]);
        self.anew_last.push(&best, [&self.history, &best, &[message]]);
        if !query.relevant.is_empty() {
            let of_anew =
                [&mut self.paper_first, &mut self.anew, &mut self.paper, &mut self.anew_last];
            for prompts in of_anew {
                prompts.miss_unless(has_right(snapshot, query, &anew));
            }
        }
        let now = Turn { snapshot, number: turn, query, message };
        self.kept_first.end(now, &kept_first, [&[], &self.history]);
        self.kept_last.end(now, &kept_last, [&self.history, &[]]);
        self.default_first.end(now, &default_first, [&[], &self.history]);
        self.default_last.end(now, &default_last, [&self.history, &[]]);
        self.history.extend([message, answer]);
        self.history_tokens += message.tokens() + answer.tokens();
        Ok(())
    }

    /// Returns the set that Route chooses after the turns `before`.
    fn route(
        &self,
        snapshot: &Snapshot,
        query: &LabelledQuery,
        before: &Turns,
        history_tokens: Option<u32>,
    ) -> Result<Vec<Chosen>, Error> {
        let intents = vec![Intent::new(query.text.clone(), 1.0)];
        let route = RouteQuery {
            options: Options { history_tokens, ..self.scene.options.clone() },
            state: before.state(),
            ..RouteQuery::of(intents)
        };
        let texts = intent::texts(&route.intents);
        let vectors = texts.iter().filter_map(|text| self.scene.embeddings.vector(text));
        let vectors: Vec<_> = vectors.map(<[f32]>::to_vec).collect();
        let visibilities = Visibilities::of(snapshot, &route.state);
        let allowed = Allowed::new(snapshot, visibilities, &route.options, &[])?;
        let level = Level::of(
            snapshot,
            &route.intents,
            &route.options,
            &self.background,
            allowed.slots.as_ref(),
        );
        let embedded = Embedded { level, ..Embedded::new(&route.intents, &vectors) };
        let candidates = embedded.rank(snapshot, CANDIDATES, allowed.slots.as_ref())?;
        let choice = Choice::new(snapshot, &allowed, &embedded, &route, level);
        Ok(choice.make(before.shown.as_ref(), &candidates, true).active)
    }

    fn played(&self, history: u32) -> Played {
        Played {
            history,
            all: self.all.total("all schemas first"),
            paper_first: self
                .paper_first
                .total("summaries first, schemas anew behind them (the paper's in tools[])"),
            anew: self.anew.total("the best schemas first, anew each turn"),
            kept_first: self.kept_first.prompts.total("the kept set first"),
            default_first: self.default_first.prompts.total("the default's set first"),
            paper: self
                .paper
                .total("summaries first, schemas anew before the message (the paper's)"),
            anew_last: self.anew_last.total("the best schemas before the message, anew each turn"),
            kept_last: self.kept_last.prompts.total("the kept set before the message"),
            default_last: self.default_last.prompts.total("the default's set before the message"),
        }
    }
}

impl Kept {
    /// Ends a turn that was played with `set`. `before` and `behind` are the parts of the history on either side of the
    /// tools.
    fn end(&mut self, turn: Turn<'_>, set: &[Chosen], [before, behind]: [&[Part]; 2]) {
        let Turn { snapshot, number, query, message } = turn;
        let tools = schemas(snapshot, set);
        self.prompts.push(&tools, [before, &tools, behind, &[message]]);
        if !query.relevant.is_empty() {
            self.prompts.miss_unless(has_right(snapshot, query, set));
        }
        self.turns.end(snapshot, number, query, set);
    }
}

impl Turns {
    /// Returns the agent state that an integration would send.
    fn state(&self) -> AgentState {
        let calls = self.calls.clone();
        let discovered = self.discovered.clone();
        AgentState { calls, discovered, ..AgentState::default() }
    }

    /// Records a turn. Its call is of the first right tool in the set, if there is one.
    fn end(&mut self, snapshot: &Snapshot, turn: usize, query: &LabelledQuery, set: &[Chosen]) {
        let called =
            set.iter().find(|one| is_right(snapshot, query, one)).map(|chosen| PriorCall {
                tool: snapshot.tool(chosen.slot).model_name.to_string(),
                status: CallStatus::Succeeded,
                turn: u32::try_from(turn).unwrap_or(u32::MAX),
            });
        if let Some(call) = called {
            if !self.discovered.contains(&call.tool) {
                self.discovered.push(call.tool.clone());
            }
            self.calls.push(call);
        }
        let tools = set.iter().map(|chosen| chosen.shown(snapshot)).collect();
        let revision = snapshot.revision;
        self.shown = Some(ActiveSet {
            revision,
            expires: u64::MAX,
            tools,
            carried: Vec::new(),
            intent_embedding: None,
        });
    }
}

fn schemas(snapshot: &Snapshot, tools: &[Chosen]) -> Vec<Part> {
    tools.iter().map(|tool| Part::schema(snapshot.tool(tool.slot))).collect()
}

fn is_right(snapshot: &Snapshot, query: &LabelledQuery, chosen: &Chosen) -> bool {
    let id = &snapshot.tool(chosen.slot).id;
    query.relevant.contains(&format!("{}/{}", id.server.as_str(), id.name.as_str()))
}

fn has_right(snapshot: &Snapshot, query: &LabelledQuery, set: &[Chosen]) -> bool {
    set.iter().any(|chosen| is_right(snapshot, query, chosen))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn priced(tokens: u64) -> Layout {
        Layout { name: "x", tokens, cached: 0, tools: 0, schema_tokens: 0, missed: 0 }
    }

    /// Returns a conversation with these costs of the kept sets and the default sets, each before the history and
    /// before the message.
    fn played(
        [kept_first, kept_last]: [u64; 2],
        [default_first, default_last]: [u64; 2],
    ) -> Played {
        Played {
            history: 0,
            all: priced(900),
            paper_first: priced(200),
            anew: priced(100),
            kept_first: priced(kept_first),
            paper: priced(70),
            anew_last: priced(50),
            kept_last: priced(kept_last),
            default_first: priced(default_first),
            default_last: priced(default_last),
        }
    }

    #[test]
    fn a_kept_set_is_held_against_what_stands_at_the_same_place() {
        assert!(!played([100, 50], [100, 50]).is_dearer());
        assert!(played([101, 50], [100, 50]).is_dearer());
        assert!(played([100, 51], [100, 50]).is_dearer());
        assert!(!played([100, 50], [101, 51]).is_dearer(), "nobody said what stands behind it");
    }
}
