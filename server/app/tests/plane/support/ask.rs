//! Short forms of requests to the plane, and of reading their answers.

use toolgate_core::state::AgentState;
use toolgate_routing::gate::calls::Call;
use toolgate_routing::router::intent::Intent;
use toolgate_routing::router::query::{Detail, MESSAGE_MAX, Options, RouteQuery};
use toolgate_routing::router::route::Answer;
use toolgate_routing::router::search::grammar::Query;
use toolgate_routing::router::search::{SearchAnswer, SearchQuery};
use toolgate_routing::router::selection::caps::UntrustedCaps;

/// Returns a request with one intent and [`options`], by an agent without any history.
pub fn ask(text: &str) -> RouteQuery {
    let query = RouteQuery::of(vec![Intent::new(text.to_owned(), 1.0)]);
    RouteQuery { options: options(), ..query }
}

/// Returns the product's defaults with a threshold for each tool, so that tests can predict the active set.
pub fn options() -> Options {
    Options { ratio: None, ..Options::default() }
}

/// Returns a search with the product's defaults, by an agent without any history.
pub fn look_for(query: &str) -> SearchQuery {
    SearchQuery {
        query: Query::parse(query).expect("a query"),
        max_results: 5,
        detail: Detail::Schemas,
        least_overlap: 0.14,
        untrusted: UntrustedCaps::default(),
        state: AgentState::default(),
        previous: String::new(),
        min_revision: 0,
        message_max: MESSAGE_MAX,
    }
}

/// Returns the model-facing names that a search found, in its order.
pub fn found(answer: &SearchAnswer) -> Vec<String> {
    let slots = answer.tools.iter().map(|active| active.chosen.slot);
    slots.map(|slot| answer.snapshot.tool(slot).model_name.to_string()).collect()
}

/// Returns a state with these scopes granted.
pub fn granted(scopes: &[&str]) -> AgentState {
    let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
    AgentState { scopes, ..AgentState::default() }
}

/// Returns a state with these milestones reached.
pub fn reached(milestones: &[&str]) -> AgentState {
    let milestones = milestones.iter().map(|name| (*name).to_owned()).collect();
    AgentState { milestones, ..AgentState::default() }
}

/// Returns a call without arguments.
pub fn call(tool: &str) -> Call {
    Call { tool: tool.to_owned(), ..Call::default() }
}

/// Returns the model-facing names of the active set, in its order.
pub fn model_names(answer: &Answer) -> Vec<String> {
    let slots = answer.active.iter().map(|active| active.chosen.slot);
    slots.map(|slot| answer.snapshot.tool(slot).model_name.to_string()).collect()
}

/// Returns the MCP names of the active set, in its order.
pub fn shown(answer: &Answer) -> Vec<String> {
    let slots = answer.active.iter().map(|active| active.chosen.slot);
    slots.map(|slot| answer.snapshot.tool(slot).id.name.as_str().to_owned()).collect()
}
