//! Registrations and tools that the plane does not take, with what people are told of them.

use std::sync::Arc;

use tokio::time::Instant;
use toolgate_client::{ErrorReason, v1};
use toolgate_upstream::Listing;

use super::Follower;
use crate::registrations::Registration;

/// Most characters that are shown of the name of a tool that was rejected.
const NAME_MAX: usize = 64;

/// Most characters that are shown of the problem of a tool.
const PROBLEM_MAX: usize = 400;

/// Registration that the plane refuses.
#[derive(Debug)]
pub(super) struct Refused {
    /// Listing that was refused; `None` for the announcement of a server.
    pub(super) listing: Option<Arc<Listing>>,
    pub(super) problem: String,
    /// Time before which the same is not tried again.
    pub(super) until: Instant,
}

impl Follower {
    /// Returns what a person does about a server whose registration the plane refuses. A limit is named in the plane's message.
    pub(super) fn problem(
        &self,
        (tenant, server): &Registration,
        listing: Option<&Arc<Listing>>,
        error: &toolgate_client::Error,
    ) -> String {
        let told = error.to_string();
        let told = one_line(told.lines().next().unwrap_or_default(), PROBLEM_MAX);
        let remedy = match error.reason() {
            Some(ErrorReason::LimitExceeded) => {
                let tools = listing.map_or(0, |listing| listing.tools.len());
                format!(
                    ": let fewer of its {tools} tools in (server.{server}.tools), or raise the limit in the routing plane's configuration"
                )
            }
            _ => String::new(),
        };
        let consequence = match self.registered.get(tenant, server) {
            Some(_) => "its tools are still those of an earlier list",
            None => "none of its tools can be found or called",
        };
        format!("{consequence}: {told}{remedy}")
    }
}

/// Returns true if the plane refuses a registration for what it is: it does so again until the list, the gateway's file or a limit
/// changes.
pub(super) fn is_refusal(error: &toolgate_client::Error) -> bool {
    let reasons =
        [ErrorReason::LimitExceeded, ErrorReason::InvalidField, ErrorReason::MalformedCatalog];
    error.reason().is_some_and(|reason| reasons.contains(&reason))
}

/// Returns true if a server is in no catalog already.
pub(super) fn is_absent(error: &toolgate_client::Error) -> bool {
    matches!(error.reason(), Some(ErrorReason::ServerNotFound | ErrorReason::TenantNotFound))
}

/// Returns the tools that the plane rejected, each with the problem.
pub(super) fn rejections(answer: &v1::RegisterServerResponse) -> Vec<String> {
    let rejected = v1::OutcomeKind::Rejected as i32;
    let rejected = answer.outcomes.iter().filter(|outcome| outcome.kind == rejected);
    let line = |v1::ToolOutcome { name, message, .. }: &v1::ToolOutcome| {
        format!("{} was rejected: {}", one_line(name, NAME_MAX), one_line(message, PROBLEM_MAX))
    };
    rejected.map(line).collect()
}

pub(super) fn warn_of_rejections(server: &str, answer: &v1::RegisterServerResponse) {
    for outcome in &answer.outcomes {
        if outcome.kind == v1::OutcomeKind::Rejected as i32 {
            let tool = one_line(&outcome.name, NAME_MAX);
            let message = one_line(&outcome.message, PROBLEM_MAX);
            tracing::warn!(server, tool, field = outcome.field, "the tool was rejected: {message}");
        }
    }
}

/// Joins a text of a server into one line of at most `width` characters. Control characters are removed, because a terminal
/// could take them for commands.
pub(crate) fn one_line(text: &str, width: usize) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut letters = words.chars().filter(|letter| !letter.is_control());
    let kept: String = letters.by_ref().take(width).collect();
    if letters.next().is_some() { format!("{kept}…") } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_rejected_tool_commands_no_terminal() {
        let outcome = |name: &str, message: &str| v1::ToolOutcome {
            name: name.to_owned(),
            kind: v1::OutcomeKind::Rejected as i32,
            message: message.to_owned(),
            ..Default::default()
        };
        let outcomes = vec![
            outcome("\u{1b}]0;x\u{7}\u{1b}[2Jread\nme", "its name has\r\u{9b}31m letters"),
            outcome(&"n".repeat(1_000), "too long"),
        ];
        let told = rejections(&v1::RegisterServerResponse { outcomes, ..Default::default() });
        assert_eq!(told[0], "]0;x[2Jread me was rejected: its name has 31m letters");
        assert_eq!(told[1], format!("{}… was rejected: too long", "n".repeat(NAME_MAX)));
    }
}
