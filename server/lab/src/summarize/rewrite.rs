//! What becomes of each tool's summary.

use std::ops::ControlFlow;

use super::{answer, prompt};
use crate::language_model::{CallError, Crew};
use crate::lint::tool::Tool;

/// What became of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rewritten {
    /// The model wrote this.
    Written(String),
    /// What it wrote is not taken, for this reason.
    Unfit(String),
    /// No answer could be had, for this reason.
    Unanswered(String),
}

/// Has a crew ask for each tool's summary. `done` hears of each by its place in `tools`, in the order in which they
/// come, and may stop it all.
///
/// # Errors
/// Why the endpoint is of no use; what came before was told to `done`.
pub fn rewrite(
    crew: &Crew<'_>,
    tools: &[&Tool<'_>],
    mut done: impl FnMut(usize, Rewritten) -> ControlFlow<()>,
) -> Result<(), CallError> {
    crew.run(
        tools,
        |tool, asker| Ok(answer::summary(tool, &asker.ask(&prompt::messages(tool))?)),
        |place, made| {
            let rewritten = match made {
                Ok(Ok(summary)) => Rewritten::Written(summary),
                Ok(Err(why)) => Rewritten::Unfit(why),
                Err(error) => Rewritten::Unanswered(error.to_string()),
            };
            done(place, rewritten)
        },
    )
}
