//! State of one Gate call. It owns everything that the verdicts depend on, so that it can move to other threads. Calls
//! whose schemas are compiled are judged at once. Other schemas are compiled in pieces, in the share of the cores for
//! such work.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use super::calls::{Call, CallCheck};
use super::handle::ActiveSet;
use super::schemas::Schemas;
use super::verdict::Verdict;
use super::warmer::{PIECE_UNITS, Warmer};
use crate::catalog::share::Behind;
use crate::shard::snapshot::Snapshot;
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_core::state::AgentState;

/// Calls, and the verdicts found so far.
pub(super) struct Judging {
    pub(super) tenant: TenantId,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) state: AgentState,
    pub(super) active: ActiveSet,
    pub(super) now: SystemTime,
    pub(super) deadline: Option<Instant>,
    pub(super) calls: Vec<Call>,
    pub(super) verdicts: Vec<Option<Verdict>>,
}

impl Judging {
    /// Returns the verdicts in the order of the calls.
    ///
    /// # Errors
    /// [`Error::DeadlineExceeded`] if the deadline passes first.
    pub(super) async fn verdicts(self, warmer: &Warmer) -> Result<Vec<Verdict>, Error> {
        // Matching a long argument may take milliseconds, too long for an async thread.
        let schemas = Arc::clone(warmer.schemas());
        let at_once = tokio::task::spawn_blocking(move || self.go_on(&schemas, 0));
        let mut judging = at_once.await.map_err(Error::internal)??;
        while judging.verdicts.iter().any(Option::is_none) {
            let tenant = judging.tenant.clone();
            let schemas = Arc::clone(warmer.schemas());
            let piece = move || judging.go_on(&schemas, PIECE_UNITS);
            judging = warmer.share().run(&tenant, Behind::Answers, piece).await??;
        }
        Ok(judging.verdicts.into_iter().flatten().collect())
    }

    fn go_on(mut self, schemas: &Schemas, most_units: usize) -> Result<Self, Error> {
        let check = CallCheck {
            tenant: &self.tenant,
            snapshot: &self.snapshot,
            state: &self.state,
            active: &self.active,
            schemas,
            now: self.now,
            deadline: self.deadline,
        };
        check.judge(&self.calls, &mut self.verdicts, most_units)?;
        Ok(self)
    }
}
