//! Asks for each tool's requests, and a second time for what the first answer left open.

use std::ops::ControlFlow;

use super::claims::Claims;
use super::draft::Draft;
use super::prompt;
use super::wanted::Wanted;
use super::yaml::Voices;
use crate::language_model::{Asker, CallError, Crew};
use crate::lint::tool::Tool;
use toolgate_routing::packs::lint::REQUESTS_MIN;

/// How often a tool is asked for.
const ROUNDS: usize = 2;

/// A tool, and those that it must be told apart from.
#[derive(Debug)]
pub struct Asking<'a> {
    /// The tool.
    pub tool: &'a Tool<'a>,
    /// The others.
    pub siblings: Vec<&'a Tool<'a>>,
    /// Which requests the tools of its MCP server have.
    pub claims: &'a Claims,
}

/// What became of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// Requests, and what was not taken.
    Requests {
        /// By voice.
        voices: Voices,
        /// Why others were dropped.
        dropped: Vec<String>,
    },
    /// Too little of what the model wrote is taken, for these reasons.
    Unfit(String),
    /// No answer could be had, for this reason.
    Unanswered(String),
}

/// Has a crew ask for the requests of each tool. `done` hears of each by its place, in the order in which they come, and
/// may stop it all.
///
/// # Errors
/// Why the endpoint is of no use; what came before was told to `done`.
pub fn write(
    crew: &Crew<'_>,
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
    crew.run(tools, one, |place, made| {
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
