//! Roster of the workers, which picks the one to ask next. Each worker is checked by its own task as long as it is
//! listed.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use tokio_util::sync::{CancellationToken, DropGuard};
use toolgate_encoder_client::EncoderOptions;
use tracing::{info, warn};

use super::member::{Load, Member, Tier};
use super::reference::Reference;
use super::watch::{self, Rounds};
use crate::encoder::EncoderMetrics;

/// Maximum workers from one source. A name with more is most likely a mistake.
const WORKERS_MAX: usize = 256;

/// Cores of this machine for each connection to a worker, and maximum connections by cores. Callers on few cores don't
/// wait for a connection's thread.
const CORES_OF_A_CONNECTION: usize = 4;
const CONNECTIONS_MAX: usize = 4;

/// Returns the connections to each worker where the configuration has no number.
pub(super) fn connections_by(cores: usize) -> NonZeroUsize {
    let connections = (cores / CORES_OF_A_CONNECTION).min(CONNECTIONS_MAX);
    NonZeroUsize::new(connections).unwrap_or(NonZeroUsize::MIN)
}

/// Returns a tier's name in metrics.
pub(super) fn tier_name(tier: Tier) -> &'static str {
    match tier {
        Tier::Gpu => "gpu",
        Tier::Cpu => "cpu",
    }
}

/// Roster of the workers.
pub(super) struct Roster {
    members: RwLock<Arc<Vec<Arc<Member>>>>,
    active: Mutex<BTreeMap<String, ActiveMember>>,
    turn: AtomicUsize,
    reference: Arc<Reference>,
    rounds: Rounds,
    options: EncoderOptions,
    metrics: EncoderMetrics,
}

/// Worker, the source of its address, and the task that checks it.
struct ActiveMember {
    member: Arc<Member>,
    source: usize,
    _watch: DropGuard,
}

impl Roster {
    pub(super) fn new(
        reference: Arc<Reference>,
        rounds: Rounds,
        options: EncoderOptions,
        metrics: EncoderMetrics,
    ) -> Self {
        Self {
            members: RwLock::default(),
            active: Mutex::default(),
            turn: AtomicUsize::new(0),
            reference,
            rounds,
            options,
            metrics,
        }
    }

    /// Sets the addresses of the workers from `source`. Workers already on the roster keep their state.
    pub(super) fn replace(&self, source: usize, addresses: &[String]) {
        let addresses = &addresses[..addresses.len().min(WORKERS_MAX)];
        let mut active = self.active.lock();
        active.retain(|address, worker| worker.source != source || addresses.contains(address));
        for address in addresses {
            if active.contains_key(address) {
                continue;
            }
            match Member::new(address, &self.options, &self.reference, self.metrics.worker(address))
            {
                Ok(member) => {
                    active.insert(address.clone(), self.start(member, source));
                }
                Err(error) => warn!(worker = address, %error, "invalid encoder worker address"),
            }
        }
        let members = active.values().map(|worker| Arc::clone(&worker.member)).collect();
        *self.members.write() = Arc::new(members);
    }

    fn start(&self, member: Member, source: usize) -> ActiveMember {
        info!(worker = member.address, "added an encoder worker");
        let member = Arc::new(member);
        let stop = CancellationToken::new();
        let watched = Arc::clone(&member);
        let reference = Arc::clone(&self.reference);
        let checks = watch::check_again_and_again(watched, reference, self.rounds);
        tokio::spawn(stop.clone().run_until_cancelled_owned(checks));
        ActiveMember { member, source, _watch: stop.drop_guard() }
    }

    /// Picks the best worker that has room for a request and was not tried: the one with the least outstanding tokens
    /// in the best tier. `tokens` is added to its load.
    pub(super) fn pick(&self, tokens: u64, tried: &[Arc<Member>]) -> Option<Load> {
        let members = self.members();
        // The start moves on with each request, so that equal workers take turns. If it moved with each attempt, a late
        // worker of two would be first again and again.
        let next = usize::from(tried.is_empty());
        let start = self.turn.fetch_add(next, Ordering::Relaxed);
        let in_turn = (0..members.len()).map(|i| &members[start.wrapping_add(i) % members.len()]);
        let untried = in_turn.filter(|member| !tried.iter().any(|one| Arc::ptr_eq(one, member)));
        let usable = untried.filter_map(|member| Some((member.usable()?, member.tokens(), member)));
        let best = usable.min_by_key(|(tier, outstanding, _)| (*tier, *outstanding));
        best.map(|(_, _, member)| Load::new(Arc::clone(member), tokens))
    }

    /// Returns the number of workers in use.
    pub(super) fn serving(&self) -> usize {
        self.members().iter().filter(|member| member.is_serving()).count()
    }

    fn members(&self) -> Arc<Vec<Arc<Member>>> {
        Arc::clone(&self.members.read())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_cores_have_a_connection_each_up_to_four() {
        for (cores, connections) in [(1, 1), (2, 1), (7, 1), (8, 2), (16, 4), (96, 4)] {
            assert_eq!(connections_by(cores).get(), connections, "{cores} cores");
        }
    }
}
