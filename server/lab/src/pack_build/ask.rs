//! Calls to the model for the requests of each tool, with a second call for those that are still missing.

use std::ops::ControlFlow;

use super::claims::Claims;
use super::draft::Draft;
use super::prompt;
use super::wanted::Wanted;
use super::yaml::Voices;
use crate::language_model::{Asker, CallError, WorkerPool};
use crate::lint::tool::Tool;
use toolgate_routing::packs::lint::REQUESTS_MIN;

/// Maximum number of calls for each tool.
const ROUNDS: usize = 2;

/// Tool, and the tools that its requests must be told apart from.
#[derive(Debug)]
pub struct Asking<'a> {
    /// Tool that requests are written for.
    pub tool: &'a Tool<'a>,
    /// Similar tools of the same MCP server.
    pub siblings: Vec<&'a Tool<'a>>,
    /// Requests that tools of this MCP server already have.
    pub claims: &'a Claims,
}

/// Result for one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// Accepted requests, and notes on the rejected ones.
    Requests {
        /// Requests by voice.
        voices: Voices,
        /// Reasons for rejected requests.
        dropped: Vec<String>,
    },
    /// Too few requests passed the checks. Holds the reason.
    Unfit(String),
    /// The model gave no answer. Holds the reason.
    Unanswered(String),
}

/// Asks the model for the requests of each tool. Calls `done` with the index and the result of each tool, in order of
/// completion. `done` may stop all processing.
///
/// # Errors
/// Returns the error that makes the endpoint unusable. Earlier results were passed to `done`.
pub fn write(
    pool: &WorkerPool<'_>,
    tools: &[Asking<'_>],
    wanted: &Wanted,
    mut done: impl FnMut(usize, Written) -> ControlFlow<()>,
) -> Result<(), CallError> {
    let one = |asking: &Asking<'_>, asker: &Asker<'_>| {
        let written = asking.write(asker, wanted);
        if !matches!(written, Ok(Written::Requests { .. })) {
            asking.claims.give_back(asking.tool.name);
        }
        written
    };
    pool.run(tools, one, |place, made| {
        done(place, made.unwrap_or_else(|error| Written::Unanswered(error.to_string())))
    })
}

impl Asking<'_> {
    fn write(&self, asker: &Asker<'_>, wanted: &Wanted) -> Result<Written, CallError> {
        let mut draft = Draft::new(self.tool.name, self.claims);
        for _ in 0..ROUNDS {
            let lacking = draft.lacking(wanted);
            if lacking.is_empty() {
                break;
            }
            let messages = prompt::messages(self.tool, &self.siblings, &lacking, &draft);
            draft.take(&asker.ask(&messages)?, &lacking);
        }
        let dropped = std::mem::take(&mut draft.dropped);
        if draft.count() >= REQUESTS_MIN {
            return Ok(Written::Requests { voices: draft.into_voices(), dropped });
        }
        let count = draft.count();
        let why = dropped.first().map(|first| format!("; {first}")).unwrap_or_default();
        Ok(Written::Unfit(format!("{count} of {REQUESTS_MIN} requests are of use{why}")))
    }
}
