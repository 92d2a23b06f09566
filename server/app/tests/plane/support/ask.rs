//! Questions to the plane in few words, and what their answers hold.

use toolgate_core::state::AgentState;
use toolgate_routing::gate::calls::Call;
use toolgate_routing::router::caps::UntrustedCaps;
use toolgate_routing::router::intent::Intent;
use toolgate_routing::router::query::{Detail, MESSAGE_MAX, Options, RouteQuery};
use toolgate_routing::router::route::Answer;
use toolgate_routing::router::search::grammar::Query;
use toolgate_routing::router::search::{SearchAnswer, SearchQuery};

/// One intent, with [`options`], by an agent that has done nothing.
pub fn ask(text: &str) -> RouteQuery {
    let query = RouteQuery::of(vec![Intent::new(text.to_owned(), 1.0)]);
    RouteQuery { options: options(), ..query }
}

/// The defaults of the product, but that each tool must reach the threshold, so that tests can say who is in.
pub fn options() -> Options {
    Options { ratio: None, ..Options::default() }
}

/// A search with the defaults of the product, by an agent that has done nothing.
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

/// The model-facing names that a search found, in its order.
pub fn found(answer: &SearchAnswer) -> Vec<String> {
    let slots = answer.tools.iter().map(|active| active.chosen.slot);
    slots.map(|slot| answer.snapshot.tool(slot).model_name.to_string()).collect()
}

/// A state with these scopes granted.
pub fn granted(scopes: &[&str]) -> AgentState {
    let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
    AgentState { scopes, ..AgentState::default() }
}

/// A state with these milestones reached.
pub fn reached(milestones: &[&str]) -> AgentState {
    let milestones = milestones.iter().map(|name| (*name).to_owned()).collect();
    AgentState { milestones, ..AgentState::default() }
}

/// A call without arguments.
pub fn call(tool: &str) -> Call {
    Call { tool: tool.to_owned(), arguments: String::new() }
}

/// The active set's model-facing names, in its order.
pub fn model_names(answer: &Answer) -> Vec<String> {
    let slots = answer.active.iter().map(|active| active.chosen.slot);
    slots.map(|slot| answer.snapshot.tool(slot).model_name.to_string()).collect()
}

/// The active set's MCP names, in its order.
pub fn shown(answer: &Answer) -> Vec<String> {
    let slots = answer.active.iter().map(|active| active.chosen.slot);
    slots.map(|slot| answer.snapshot.tool(slot).id.name.as_str().to_owned()).collect()
}
