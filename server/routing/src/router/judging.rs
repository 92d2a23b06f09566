//! State of one Gate call. It owns everything that the verdicts depend on, so that it can move to other threads. Calls
//! whose schemas are compiled are judged at once. Other schemas are compiled in pieces, in the share of the cores for
//! such work.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use crate::catalog::share::Behind;
use crate::gate::calls::{Call, CallCheck};
use crate::gate::handle::ActiveSet;
use crate::gate::schemas::Schemas;
use crate::gate::verdict::Verdict;
use crate::router::warmer::{PIECE_UNITS, Warmer};
use crate::shard::snapshot::Snapshot;
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_core::state::AgentState;

/// Calls, and the verdicts found so far.
pub(in crate::router) struct Judging {
    pub(in crate::router) tenant: TenantId,
    pub(in crate::router) snapshot: Arc<Snapshot>,
    pub(in crate::router) state: AgentState,
    pub(in crate::router) active: ActiveSet,
    pub(in crate::router) schemas: Arc<Schemas>,
    pub(in crate::router) now: SystemTime,
    pub(in crate::router) deadline: Option<Instant>,
    pub(in crate::router) calls: Vec<Call>,
    pub(in crate::router) verdicts: Vec<Option<Verdict>>,
}

impl Judging {
    /// Returns the verdicts in the order of the calls.
    ///
    /// # Errors
    /// [`Error::DeadlineExceeded`] if the deadline passes first.
    pub(in crate::router) async fn verdicts(self, warmer: &Warmer) -> Result<Vec<Verdict>, Error> {
        // Matching a long argument may take milliseconds, too long for an async thread.
        let at_once = tokio::task::spawn_blocking(move || self.go_on(0));
        let mut judging = at_once.await.map_err(Error::internal)??;
        while judging.verdicts.iter().any(Option::is_none) {
            let tenant = judging.tenant.clone();
            let piece = move || judging.go_on(PIECE_UNITS);
            judging = warmer.share().run(&tenant, Behind::Answers, piece).await??;
        }
        Ok(judging.verdicts.into_iter().flatten().collect())
    }

    fn go_on(mut self, most_units: usize) -> Result<Self, Error> {
        let check = CallCheck {
            tenant: &self.tenant,
            snapshot: &self.snapshot,
            state: &self.state,
            active: &self.active,
            schemas: &self.schemas,
            now: self.now,
            deadline: self.deadline,
        };
        check.judge(&self.calls, &mut self.verdicts, most_units)?;
        Ok(self)
    }
}
