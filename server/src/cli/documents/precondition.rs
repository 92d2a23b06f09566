//! Preconditions in files of users: `{"all": [{"is_authenticated": "repo:write"}, {"not": ...}]}`.

use serde::Deserialize;
use toolgate_client::v1;

/// A condition on the agent's state.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::cli) enum Condition {
    IsAuthenticated(String),
    HasPriorToolOutput(String),
    MilestoneReached(String),
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    Cel(String),
}

impl From<Condition> for v1::Precondition {
    fn from(condition: Condition) -> Self {
        use v1::precondition::Condition as Wire;
        let list = |conditions: Vec<Condition>| v1::PreconditionList {
            preconditions: conditions.into_iter().map(Self::from).collect(),
        };
        Self {
            condition: Some(match condition {
                Condition::IsAuthenticated(scope) => Wire::IsAuthenticated(scope),
                Condition::HasPriorToolOutput(prefix) => Wire::HasPriorToolOutput(prefix),
                Condition::MilestoneReached(name) => Wire::MilestoneReached(name),
                Condition::All(conditions) => Wire::All(list(conditions)),
                Condition::Any(conditions) => Wire::Any(list(conditions)),
                Condition::Not(condition) => Wire::Not(Box::new(Self::from(*condition))),
                Condition::Cel(expression) => Wire::Cel(expression),
            }),
        }
    }
}
