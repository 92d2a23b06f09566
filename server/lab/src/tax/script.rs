//! Tasks with the messages of their conversations. All methods play the same ones.

use super::methods::Method;
use super::tally::{Measured, Sent, Tally};
use super::tasks::{self, Task, Turn};
use crate::conversations::{Counter, Defaults, Places, Priced, Said, said};
use toolgate_core::error::Error;
use toolgate_routing::router::intent;

/// Tasks, and what is said in them.
pub(super) struct Script<'t> {
    /// The tasks.
    pub(super) tasks: &'t [Task],
    counter: Counter,
    said: Vec<Vec<Said>>,
}

impl<'t> Script<'t> {
    /// Counts the messages of these tasks.
    pub(super) fn of(tasks: &'t [Task]) -> Self {
        let counter = Counter::default();
        let of_task = |task: &Task| {
            let queries = tasks::queries(task);
            said(&counter, &tasks::conversation(task, &queries))
        };
        let said = tasks.iter().map(of_task).collect();
        Self { tasks, counter, said }
    }

    /// Plays all tasks by a method.
    ///
    /// # Errors
    /// Returns the errors of [`Method::turn`].
    pub(super) fn play(&self, method: &mut dyn Method) -> Result<Measured, Error> {
        let mut tally = Tally::default();
        for (task, said) in self.tasks.iter().zip(&self.said) {
            method.begin();
            let mut priced = Priced::new(&self.counter);
            for (number, (turn, said)) in task.iter().zip(said).enumerate() {
                let sent = method.turn(turn)?;
                let price = priced.turn(said, &sent.places);
                tally.add(number, &sent, price);
            }
        }
        Ok(tally.measured())
    }

    /// Plays all tasks as they are sent by default.
    ///
    /// # Errors
    /// Returns an internal error if the index is defective, or if a definition can't be rendered.
    pub(super) fn play_defaults(&self, defaults: &Defaults<'_>) -> Result<Measured, Error> {
        let mut tally = Tally::default();
        for task in self.tasks {
            let queries = tasks::queries(task);
            let sent = defaults.play(&tasks::conversation(task, &queries))?;
            for (number, (turn, sent)) in task.iter().zip(sent).enumerate() {
                let of_turn = Sent {
                    standing: u64::from(sent.first),
                    on_demand: u64::from(sent.amid),
                    tools: sent.tools.len(),
                    found: found(turn, &sent.tools),
                    places: Places::default(),
                };
                tally.add(number, &of_turn, sent.price);
            }
        }
        Ok(tally.measured())
    }
}

/// Returns the texts that Route embeds for these tasks by default.
pub(super) fn texts<'t>(tasks: impl IntoIterator<Item = &'t Task>) -> Vec<String> {
    let of_task = |task: &Task| {
        let queries = tasks::queries(task);
        let turns = tasks::conversation(task, &queries);
        turns.iter().flat_map(|turn| intent::texts(&turn.intents)).collect::<Vec<_>>()
    };
    tasks.into_iter().flat_map(of_task).collect()
}

/// Returns the number of needed tools that are defined, and the number of all needed tools.
fn found(turn: &Turn, tools: &[String]) -> (usize, usize) {
    let is_there = |name: &&String| tools.contains(name);
    (turn.needs.iter().filter(is_there).count(), turn.needs.len())
}
