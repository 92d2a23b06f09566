//! Rewriting of each tool's summary by the model.

use std::ops::ControlFlow;

use super::{answer, prompt};
use crate::language_model::{CallError, WorkerPool};
use crate::lint::tool::Tool;

/// Result for one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rewritten {
    /// Accepted summary.
    Written(String),
    /// The answer was rejected. Holds the reason.
    Unfit(String),
    /// The model gave no answer. Holds the reason.
    Unanswered(String),
}

/// Asks the model for each tool's summary. Calls `done` with the index in `tools` and the result, in order of
/// completion. `done` may stop all processing.
///
/// # Errors
/// Returns the error that makes the endpoint unusable. Earlier results were passed to `done`.
pub fn rewrite(
    pool: &WorkerPool<'_>,
    tools: &[&Tool<'_>],
    mut done: impl FnMut(usize, Rewritten) -> ControlFlow<()>,
) -> Result<(), CallError> {
    pool.run(
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
