//! Turns of conversations, from labelled queries: what the user says, what the agent calls, and what Route is told.

use serde_json::{Map, Value};
use toolgate_config::RouterConfig;
use toolgate_core::state::{AgentState, CallStatus, PriorCall};
use toolgate_routing::router::context::{self, Before, Rules};
use toolgate_routing::router::intent::{self, Intent};

use super::QuerySet;
use crate::eval::LabelledQuery;
use crate::eval::query_file::TurnCall;

/// Words of the result, and of the answer, of a query that comes without them. With the call itself they are about 300
/// tokens.
const WORDS: [usize; 2] = [170, 90];

/// Turn of a conversation.
#[derive(Debug, Clone)]
pub(crate) struct Turn<'a> {
    /// Query that the turn was made of.
    pub query: &'a LabelledQuery,
    /// Intents that Route gets: the message's, and those from what was said before it.
    pub intents: Vec<Intent>,
    /// State of the agent, with the calls of the turns before.
    pub state: AgentState,
    /// Calls of this turn.
    pub calls: Vec<TurnCall>,
    /// Answer at its end.
    pub answer: String,
}

/// Conversations of one set.
#[derive(Debug)]
pub(super) struct Turns<'a> {
    /// Name of the set.
    pub name: &'a str,
    /// Conversations, each with its turns.
    pub conversations: Vec<Vec<Turn<'a>>>,
}

impl<'a> Turns<'a> {
    /// Makes at most `most` conversations of up to `longest` turns. A recorded conversation begins one and is followed
    /// by the next, as a person goes on to other work in the same window.
    pub(super) fn of(
        set: &'a QuerySet,
        longest: usize,
        most: usize,
        router: &RouterConfig,
    ) -> Self {
        let queries = set.queries.as_slice();
        let mut conversations = Vec::new();
        let mut start = 0;
        while start < queries.len() && conversations.len() < most {
            let end = (start + longest).min(queries.len());
            // A remainder is too short to stand beside whole conversations.
            if start == 0 || end - start == longest {
                conversations.push(turns(&queries[start..end], router));
            }
            start =
                (end..queries.len()).find(|at| is_beginning(queries, *at)).unwrap_or(usize::MAX);
        }
        Self { name: &set.name, conversations }
    }

    /// Returns all texts to embed.
    pub(super) fn texts(&self) -> impl Iterator<Item = String> {
        self.conversations.iter().flatten().flat_map(|turn| intent::texts(&turn.intents))
    }
}

/// Returns true if a recorded conversation begins at this place, or a query that belongs to none.
fn is_beginning(queries: &[LabelledQuery], at: usize) -> bool {
    let conversation = &queries[at].conversation;
    conversation.is_none() || at == 0 || queries[at - 1].conversation != *conversation
}

/// Makes the turns of one conversation.
pub(crate) fn turns<'a>(queries: &'a [LabelledQuery], router: &RouterConfig) -> Vec<Turn<'a>> {
    let mut asks: Vec<String> = Vec::new();
    let mut answer_before = String::new();
    let mut before: Vec<PriorCall> = Vec::new();
    let mut turns = Vec::new();
    for (number, query) in (0..).zip(queries) {
        let calls = calls(query);
        let results: Vec<String> = turns
            .iter()
            .flat_map(|turn: &Turn<'_>| &turn.calls)
            .map(|c| c.result.clone())
            .collect();
        let before_it =
            Before { asks: &asks, results: &results, answer: Some(answer_before.as_str()) };
        let turn = Turn {
            query,
            intents: intents(&query.text, before_it, router),
            state: AgentState { calls: before.clone(), ..AgentState::default() },
            answer: answer(query),
            calls,
        };
        let call = |call: &TurnCall| PriorCall {
            tool: call.tool.clone(),
            status: CallStatus::Succeeded,
            turn: number,
        };
        before.extend(turn.calls.iter().map(call));
        asks.push(query.text.clone());
        answer_before.clone_from(&turn.answer);
        turns.push(turn);
    }
    turns
}

/// Returns the intents that the service makes of a message and of what stands before it.
fn intents(message: &str, before: Before<'_>, router: &RouterConfig) -> Vec<Intent> {
    let read = if router.clauses { Intent::new } else { Intent::undivided };
    let rules = Rules { courtesies: router.courtesies, context: router.context };
    context::read(vec![read(message.to_owned(), 1.0)], before, rules)
}

/// Returns the calls of a turn. Without recorded ones, it is one of the first right tool.
fn calls(query: &LabelledQuery) -> Vec<TurnCall> {
    if !query.calls.is_empty() || query.conversation.is_some() {
        return query.calls.clone();
    }
    query.relevant.first().map(|tool| assumed_call(tool, &query.text)).into_iter().collect()
}

/// Returns a call that is not recorded, of a tool that a message asks for.
pub(crate) fn assumed_call(tool: &str, message: &str) -> TurnCall {
    let arguments = Map::from_iter([("request".to_owned(), Value::from(message))]);
    TurnCall { tool: tool.to_owned(), arguments, result: words(WORDS[0]) }
}

fn answer(query: &LabelledQuery) -> String {
    if query.answer.is_empty() { words(WORDS[1]) } else { query.answer.clone() }
}

/// Returns a text of about so many tokens.
fn words(count: usize) -> String {
    vec!["word"; count].join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(conversations: &[Option<&str>]) -> QuerySet {
        let query = |(number, conversation): (usize, &Option<&str>)| LabelledQuery {
            text: format!("ask {number}"),
            relevant: ["git/log".to_owned()].into(),
            conversation: conversation.map(str::to_owned),
            ..LabelledQuery::default()
        };
        let queries = conversations.iter().enumerate().map(query).collect();
        QuerySet { name: "set".to_owned(), queries }
    }

    fn lengths(conversations: &[Option<&str>], longest: usize, most: usize) -> Vec<String> {
        let set = set(conversations);
        let made = Turns::of(&set, longest, most, &RouterConfig::default());
        let first_and_length = |turns: &Vec<Turn<'_>>| {
            format!("{} x{}", turns.first().map_or("", |turn| &turn.query.text), turns.len())
        };
        made.conversations.iter().map(first_and_length).collect()
    }

    #[test]
    fn conversations_begin_where_recorded_ones_do() {
        let [a, b, c] = ["a", "b", "c"].map(Some);
        assert_eq!(lengths(&[a, a, b, b, b, c, c, c], 3, 9), ["ask 0 x3", "ask 5 x3"]);
        assert_eq!(lengths(&[a, a, b, b, b, c, c, c], 3, 1), ["ask 0 x3"]);
        assert_eq!(lengths(&[None; 7], 3, 9), ["ask 0 x3", "ask 3 x3"]);
        assert_eq!(lengths(&[a, a], 3, 9), ["ask 0 x2"]);
    }

    #[test]
    fn what_is_not_recorded_is_assumed() {
        let set = set(&[None, None]);
        let made = Turns::of(&set, 2, 1, &RouterConfig::default());
        let [first, second] = &made.conversations[0][..] else { panic!("{made:?}") };
        assert_eq!((first.calls[0].tool.as_str(), first.calls.len()), ("git/log", 1));
        assert_eq!((first.state.calls.len(), second.state.calls.len()), (0, 1));
        let text = format!("{}{}{}", first.calls[0].result, first.answer, second.query.text);
        assert!((250..310).contains(&toolgate_core::tokens::count(&text)));
    }
}
