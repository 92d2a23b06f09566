//! Pauses before a server is started again: `restart` of a server.

use std::time::Duration;

use serde::Deserialize;
use toolgate_upstream::Pauses;

use super::values::duration;

/// Shortest pause before a start: a server that fails at once must not keep the machine busy.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

/// Pauses before a server that failed is started again. They double from one to the next.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RestartConfig {
    /// First pause.
    #[serde(deserialize_with = "duration")]
    pub min: Duration,
    /// Longest pause.
    #[serde(deserialize_with = "duration")]
    pub max: Duration,
    /// Time of health after which pauses begin anew.
    #[serde(deserialize_with = "duration")]
    pub healthy_after: Duration,
}

impl Default for RestartConfig {
    fn default() -> Self {
        let Pauses { first, last, healthy_after } = Pauses::default();
        Self { min: first, max: last, healthy_after }
    }
}

impl RestartConfig {
    pub(super) fn pauses(&self) -> Result<Pauses, &'static str> {
        let Self { min, max, healthy_after } = *self;
        if min < SHORTEST_PAUSE || max < min {
            return Err("`restart` needs a `min` of at least 100ms and a `max` of at least `min`");
        }
        Ok(Pauses { first: min, last: max, healthy_after })
    }
}
