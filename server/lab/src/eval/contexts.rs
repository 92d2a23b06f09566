//! Turns of conversations, routed by the message alone and by what stands beside it.

use toolgate_core::error::Error;
use toolgate_core::state::{CallStatus, PriorCall};
use toolgate_routing::router::context::{Before, Weights, beside};
use toolgate_routing::router::intent::{self, Intent};
use toolgate_routing::router::query::RouteQuery;
use toolgate_routing::shard::snapshot::{Known, Snapshot};

use super::Embedded;
use super::bootstrap::Bootstrap;
use super::measured::{Field, Group, groups};
use super::query_file::LabelledQuery;
use super::ranking::{Ranking, Way};

/// Context that a turn is routed by, beside its message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Form {
    /// Name in reports.
    pub name: &'static str,
    /// Weight of each of the user's last three messages as an intent of its own.
    earlier: f32,
    /// Weight of the agent's last answer.
    answer: f32,
    /// Weight of the last result.
    observation: f32,
    /// True if the earlier calls are told.
    calls: bool,
    /// Weights of the router's own context; `None` without it.
    product: Option<Weights>,
}

const ALONE: Form = Form {
    name: "message",
    earlier: 0.0,
    answer: 0.0,
    observation: 0.0,
    calls: false,
    product: None,
};
const CALLS: Form = Form { name: "calls", calls: true, ..ALONE };

const fn joined(name: &'static str, weights: (usize, f32, f32, f32)) -> Form {
    let (words, leaning, standing, result) = weights;
    Form { name, product: Some(Weights { words, leaning, standing, result }), ..CALLS }
}

/// Forms that are compared.
fn forms() -> Vec<Form> {
    vec![
        ALONE,
        CALLS,
        Form { name: "calls, earlier .5", earlier: 0.5, ..CALLS },
        Form { name: "calls, earlier .9", earlier: 0.9, ..CALLS },
        Form { name: "calls, answer .5", answer: 0.5, ..CALLS },
        Form { name: "calls, result .5", observation: 0.5, ..CALLS },
        joined("joined 6w .7", (6, 0.7, 0.0, 0.0)),
        joined("joined 6w .9", (6, 0.9, 0.0, 0.0)),
        joined("joined 9w .7", (9, 0.7, 0.0, 0.0)),
        joined("joined 9w .9", (9, 0.9, 0.0, 0.0)),
        joined("joined 9w .99", (9, 0.99, 0.0, 0.0)),
        joined("joined 12w .9", (12, 0.9, 0.0, 0.0)),
        joined("joined 9w .9, all .7", (9, 0.9, 0.7, 0.0)),
        joined("joined 9w .9, all .9", (9, 0.9, 0.9, 0.0)),
        joined("joined 9w .9, result .5", (9, 0.9, 0.0, 0.5)),
        joined("joined 9w .9, result .7", (9, 0.9, 0.0, 0.7)),
        Form { name: "joined 9w .9, no calls", calls: false, ..joined("", (9, 0.9, 0.0, 0.0)) },
        Form { name: "product", product: Some(Weights::default()), ..CALLS },
        Form {
            name: "product, result .5",
            product: Some(Weights::default()),
            observation: 0.5,
            ..CALLS
        },
    ]
}

/// Measures of one form.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextRow {
    /// Name of the form.
    pub form: &'static str,
    /// Measures by kind of turn.
    pub kinds: Vec<Group>,
}

/// Turn with the turns of its conversation before it.
struct Turn<'a> {
    turn: &'a LabelledQuery,
    before: &'a [&'a LabelledQuery],
}

fn turns<'a>(queries: &'a [&'a LabelledQuery]) -> impl Iterator<Item = Turn<'a>> {
    queries.iter().enumerate().map(|(at, turn)| {
        let same = |other: &&&LabelledQuery| {
            other.conversation.is_some() && other.conversation == turn.conversation
        };
        let length = queries[..at].iter().rev().take_while(same).count();
        Turn { turn, before: &queries[at - length..at] }
    })
}

impl Turn<'_> {
    fn intents(&self, form: Form, clauses: bool) -> Vec<Intent> {
        let read = if clauses { Intent::new } else { Intent::undivided };
        let mut intents = vec![read(self.turn.text.clone(), 1.0)];
        if let Some(weights) = form.product {
            let asks: Vec<String> = self.before.iter().map(|turn| turn.text.clone()).collect();
            let results = self.results();
            let before = Before { asks: &asks, results: &results, answer: None };
            let context = beside(&intents, before, weights);
            intents.extend(context);
        }
        let mut add = |text: &str, weight: f32| {
            if weight > 0.0 && !text.trim().is_empty() {
                intents.push(Intent::undivided(text.to_owned(), weight));
            }
        };
        self.before.iter().rev().take(3).for_each(|turn| add(&turn.text, form.earlier));
        self.before.last().iter().for_each(|turn| add(&turn.answer, form.answer));
        self.results().last().iter().for_each(|result| add(result, form.observation));
        intents
    }

    fn results(&self) -> Vec<String> {
        let results = self.before.iter().flat_map(|turn| &turn.calls).map(|call| &call.result);
        results.map(|result| result.chars().take(300).collect()).collect()
    }

    fn query(&self, form: Form, clauses: bool) -> RouteQuery {
        let mut query = RouteQuery::of(self.intents(form, clauses));
        if form.calls {
            let calls = (0..).zip(self.before).flat_map(|(turn, before)| {
                let call = move |tool: &String| PriorCall {
                    tool: tool.clone(),
                    status: CallStatus::Succeeded,
                    turn,
                };
                before.calls.iter().map(move |made| call(&made.tool))
            });
            query.state.calls = calls.collect();
        }
        query
    }
}

/// Returns all texts to embed for the turns of conversations; none without conversations.
pub(super) fn texts(queries: &[&LabelledQuery], clauses: bool) -> Vec<String> {
    if queries.iter().all(|query| query.conversation.is_none()) {
        return Vec::new();
    }
    let forms = forms();
    let of_turn = |turn: Turn<'_>| {
        let texts = forms.iter().flat_map(|form| intent::texts(&turn.intents(*form, clauses)));
        texts.collect::<Vec<_>>()
    };
    turns(queries).flat_map(of_turn).collect()
}

/// Returns a row for each form; none without conversations.
pub(super) fn rows(
    embedded: &Embedded<'_>,
    bootstrap: &Bootstrap,
) -> Result<Vec<ContextRow>, Error> {
    let Embedded { stock, embeddings, packs, encoder, queries, options, clauses } = *embedded;
    if queries.iter().all(|query| query.conversation.is_none()) {
        return Ok(Vec::new());
    }
    let known = Known { embeddings: embeddings.vectors(), packs };
    let snapshot = Snapshot::build_with(stock.catalog.clone(), known, encoder.dimensions())?;
    let names = &stock.names;
    let way = Way::Router;
    let ranking = Ranking { embeddings, names, options, clauses, way, memory: None };
    let background = embeddings.background();
    let row = |form: Form| {
        let answers = turns(queries).map(|turn| {
            let query = RouteQuery { options: options.clone(), ..turn.query(form, clauses) };
            ranking.answer_route(&snapshot, &query, &background)
        });
        let answers = answers.collect::<Result<Vec<_>, Error>>()?;
        let kinds = groups(&answers, queries, Field::Kind, bootstrap);
        Ok(ContextRow { form: form.name, kinds })
    };
    forms().into_iter().map(row).collect()
}
