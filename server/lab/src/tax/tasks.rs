//! Tasks of the testbed: single steps, a few steps, and conversations of 15 to 40 turns. Each turn has the user's text,
//! the needed tool and the agent's state. The kinds of tasks are the paper's; their shares (6, 3 and 1 of 10) are ours.

use std::collections::BTreeSet;

use super::testbed::{BedTool, CONFIRMED, Effect, Testbed};
use crate::conversations::{self, assumed_call};
use crate::eval::LabelledQuery;
use crate::random::Random;
use toolgate_config::RouterConfig;
use toolgate_core::state::{AgentState, CallStatus, PriorCall};

/// Number of turns in the longest tasks.
const LONGEST: usize = 40;

/// Maximum number of prior calls in a state; the latest ones are kept.
const CALLS_KEPT: usize = 40;

/// Topics of the users' texts.
const TOPICS: [&str; 10] = [
    "the login bug",
    "the outage on Monday",
    "the price change",
    "customer complaints",
    "the new onboarding",
    "the summer release",
    "slow checkouts",
    "the security review",
    "last week's numbers",
    "the data migration",
];

/// User texts that need no tool.
const TALK: [&str; 6] = [
    "thanks, that is what I wanted to know",
    "sum up in two sentences what we have so far",
    "hm, let me think about that for a moment",
    "explain that as if I were new here",
    "good, now say it more politely",
    "what would you do next?",
];

/// Single turn of a conversation.
#[derive(Debug, Clone, Default)]
pub(super) struct Turn {
    /// User's text.
    pub(super) text: String,
    /// Model-facing names of the needed tools; empty for small talk.
    pub(super) needs: Vec<String>,
    /// State of the agent: its calls so far and its permissions.
    pub(super) state: AgentState,
}

/// Conversation as a list of turns.
pub(super) type Task = Vec<Turn>;

/// Generates `count` tasks over the testbed's tools.
pub(super) fn generate(bed: &Testbed, count: usize, seed: u64) -> Vec<Task> {
    // The inverted seed gives another sequence than the one that wrote the definitions.
    let mut random = Random::new(!seed);
    let play = |task| {
        let (least, most) = turns(task);
        Play::begin(bed, &mut random).play(least, most)
    };
    (0..count).map(play).collect()
}

/// Generates `count` tasks of one prompt that asks for two or three things, with a tool for each. What the tools require
/// was done before.
pub(super) fn of_several(bed: &Testbed, count: usize, seed: u64) -> Vec<Task> {
    let mut random = Random::new(seed.rotate_left(32) ^ !seed);
    let prompt = |_| {
        let steps = Play::begin(bed, &mut random).play(2, 3);
        let texts = steps.iter().map(|step| step.text.trim_end_matches(['?', '.']));
        let text = texts.collect::<Vec<_>>().join(", then ");
        let needs: BTreeSet<String> = steps.iter().flat_map(|step| step.needs.clone()).collect();
        let state = steps.into_iter().last().map(|step| step.state).unwrap_or_default();
        vec![Turn { text, needs: needs.into_iter().collect(), state }]
    };
    (0..count).map(prompt).collect()
}

/// Converts labelled queries to tasks of one turn each. `model_name` finds a tool by its label.
pub(super) fn of_queries(
    queries: &[LabelledQuery],
    model_name: impl Fn(&str) -> Option<String>,
) -> Vec<Task> {
    let task = |query: &LabelledQuery| {
        // An unknown label stays, and counts as a tool that is never found.
        let needs = |label: &String| model_name(label).unwrap_or_else(|| label.clone());
        let needs = query.relevant.iter().map(needs).collect();
        vec![Turn { text: query.text.clone(), needs, state: AgentState::default() }]
    };
    queries.iter().map(task).collect()
}

/// Returns the turns of a task as queries, each with an assumed call of every tool that it needs.
pub(super) fn queries(task: &[Turn]) -> Vec<LabelledQuery> {
    let query = |turn: &Turn| LabelledQuery {
        text: turn.text.clone(),
        relevant: turn.needs.iter().cloned().collect(),
        needs_no_tool: turn.needs.is_empty(),
        conversation: Some("task".to_owned()),
        calls: turn.needs.iter().map(|tool| assumed_call(tool, &turn.text)).collect(),
        ..LabelledQuery::default()
    };
    task.iter().map(query).collect()
}

/// Returns a task as a conversation. `queries` is what [`queries`] made of it.
pub(super) fn conversation<'q>(
    task: &[Turn],
    queries: &'q [LabelledQuery],
) -> Vec<conversations::Turn<'q>> {
    let mut turns = conversations::turns(queries, &RouterConfig::default());
    for (turn, own) in turns.iter_mut().zip(task) {
        turn.state = own.state.clone();
    }
    turns
}

/// Returns the minimum and maximum number of turns of the task with this number.
fn turns(task: usize) -> (usize, usize) {
    match task % 10 {
        0 => (if task == 0 { LONGEST } else { 15 }, LONGEST),
        1..=3 => (2, 4),
        _ => (1, 1),
    }
}

/// Task that is being generated.
struct Play<'a> {
    bed: &'a Testbed,
    random: &'a mut Random,
    /// Indexes of the tools of the MCP servers that the task is about.
    tools: Vec<usize>,
    state: AgentState,
}

impl<'a> Play<'a> {
    /// Begins a task about one to three MCP servers. The agent may read there, and perhaps elsewhere.
    fn begin(bed: &'a Testbed, random: &'a mut Random) -> Self {
        let mut servers = BTreeSet::new();
        for _ in 0..=random.below(3) {
            servers.insert(random.pick(&bed.tools).domain.server);
        }
        let about = |place: &usize| servers.contains(bed.tools[*place].domain.server);
        let tools = (0..bed.tools.len()).filter(about).collect();
        let mut state = AgentState::default();
        for tool in &bed.tools {
            let server = tool.domain.server;
            let scope = format!("{server}:read");
            if !state.scopes.contains(&scope) && (servers.contains(server) || random.one_in(2)) {
                state.scopes.insert(scope);
            }
        }
        Self { bed, random, tools, state }
    }

    fn play(mut self, least: usize, most: usize) -> Task {
        let turns = least + self.random.below(most + 1 - least);
        (0..turns).map(|turn| self.turn(turn, turns > 4)).collect()
    }

    /// Generates one turn. In a long task one turn in five is small talk, on average.
    fn turn(&mut self, number: usize, may_talk: bool) -> Turn {
        if may_talk && self.random.one_in(5) {
            let text = (*self.random.pick(&TALK)).to_owned();
            return Turn { text, needs: Vec::new(), state: self.state.clone() };
        }
        let bed = self.bed;
        // Taking the lower of two draws makes some tools much more frequent than others.
        let draw = [(); 2].map(|()| self.random.below(self.tools.len()));
        let tool = &bed.tools[self.tools[draw[0].min(draw[1])]];
        self.prepare(tool, number);
        let text = tool.intent(self.random, &TOPICS);
        let turn = Turn { text, needs: vec![tool.model_name.clone()], state: self.state.clone() };
        self.called(&tool.model_name, number);
        turn
    }

    /// Changes the state so that the tool's precondition holds.
    fn prepare(&mut self, tool: &BedTool, number: usize) {
        if tool.verb.effect != Effect::Reads {
            self.state.scopes.insert(format!("{}:write", tool.domain.server));
        }
        match tool.verb.effect {
            Effect::Destroys => {
                self.state.milestones.insert(CONFIRMED.to_owned());
            }
            Effect::Edits => {
                let of_server = |other: &&BedTool| other.domain.server == tool.domain.server;
                let mut others = self.bed.tools.iter().filter(of_server);
                if let Some(reader) = others.find(|other| other.verb.effect == Effect::Reads) {
                    self.called(&reader.model_name, number.saturating_sub(1));
                }
            }
            Effect::Reads | Effect::Writes => {}
        }
    }

    fn called(&mut self, tool: &str, turn: usize) {
        let turn = u32::try_from(turn).unwrap_or(u32::MAX);
        let call = PriorCall { tool: tool.to_owned(), status: CallStatus::Succeeded, turn };
        self.state.calls.push(call);
        let beyond = self.state.calls.len().saturating_sub(CALLS_KEPT);
        self.state.calls.drain(..beyond);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_core::condition::Fuel;

    fn bed() -> Testbed {
        Testbed::new(42, 120).expect("the testbed")
    }

    #[test]
    fn the_kinds_of_tasks_have_their_lengths_and_shares() {
        let tasks = generate(&bed(), 100, 42);
        let of = |lengths: std::ops::RangeInclusive<usize>| {
            tasks.iter().filter(|task| lengths.contains(&task.len())).count()
        };
        assert_eq!((of(1..=1), of(2..=4), of(15..=40), tasks.len()), (60, 30, 10, 100));
        assert_eq!(tasks[0].len(), LONGEST);
        let talk = tasks.iter().flatten().filter(|turn| turn.needs.is_empty()).count();
        assert!(talk > 20, "{talk}");
    }

    #[test]
    fn a_prompt_of_several_tools_needs_two_or_three_that_are_open() {
        let bed = bed();
        let prompts = of_several(&bed, 100, 42);
        assert!(prompts.iter().all(|task| task.len() == 1));
        let needs =
            |count: usize| prompts.iter().filter(|task| task[0].needs.len() == count).count();
        assert!(needs(2) > 20 && needs(3) > 20 && needs(1) < 20, "{} {}", needs(2), needs(3));
        for turn in prompts.iter().flatten() {
            assert!(turn.text.contains(", then "), "{}", turn.text);
            let needed = bed.tools.iter().filter(|tool| turn.needs.contains(&tool.model_name));
            for precondition in needed.filter_map(BedTool::precondition) {
                for condition in precondition.conditions().expect("conditions") {
                    let holds = condition.holds(&turn.state, &mut Fuel::default());
                    assert_eq!(holds.ok(), Some(true), "{}: {precondition}", turn.text);
                }
            }
        }
    }

    #[test]
    fn a_seed_names_one_set_of_tasks() {
        let texts = |seed| {
            let tasks = generate(&bed(), 20, seed);
            tasks.into_iter().flatten().map(|turn| turn.text).collect::<Vec<_>>()
        };
        assert_eq!(texts(42), texts(42));
        assert_ne!(texts(42), texts(7));
        assert!(texts(42).iter().all(|text| !text.contains('{')), "a placeholder is left");
    }

    #[test]
    fn the_tool_of_a_turn_is_open_to_its_agent() {
        let bed = bed();
        for turn in generate(&bed, 100, 42).iter().flatten() {
            let needed = bed.tools.iter().filter(|tool| turn.needs.contains(&tool.model_name));
            for precondition in needed.filter_map(BedTool::precondition) {
                for condition in precondition.conditions().expect("conditions") {
                    let holds = condition.holds(&turn.state, &mut Fuel::default());
                    assert_eq!(holds.ok(), Some(true), "{}: {precondition}", turn.text);
                }
            }
        }
    }

    #[test]
    fn a_task_becomes_a_conversation_with_its_states_and_calls() {
        let tasks = generate(&bed(), 10, 42);
        let queries = queries(&tasks[0]);
        let turns = conversation(&tasks[0], &queries);
        assert_eq!(turns.len(), tasks[0].len());
        for (turn, own) in turns.iter().zip(&tasks[0]) {
            assert_eq!(turn.query.text, own.text);
            assert_eq!(turn.state.scopes, own.state.scopes);
            assert_eq!(turn.state.calls.len(), own.state.calls.len());
            let called: Vec<_> = turn.calls.iter().map(|call| &call.tool).collect();
            assert_eq!(called, own.needs.iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn labels_become_names_and_unknown_ones_stay() {
        let relevant = ["git/git_log".to_owned(), "git/gone".to_owned()].into();
        let queries = [LabelledQuery {
            text: "what happened?".to_owned(),
            relevant,
            ..LabelledQuery::default()
        }];
        let known = |label: &str| (label == "git/git_log").then(|| "mcp__git__git_log".to_owned());
        let tasks = of_queries(&queries, known);
        assert_eq!(tasks[0][0].needs, ["mcp__git__git_log", "git/gone"]);
    }
}
