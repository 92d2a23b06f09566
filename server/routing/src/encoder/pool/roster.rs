//! Who the workers are, and which one is asked next. Each worker is checked by a task of its own for as
//! long as it is here.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tokio_util::sync::{CancellationToken, DropGuard};
use toolgate_client::EncoderOptions;
use tracing::{info, warn};

use super::member::{Load, Member, Tier};
use super::reference::Reference;
use super::watch::{self, Rounds};
use crate::encoder::EncoderMetrics;

/// Workers that are taken from one name; a name with more is somebody's mistake.
const WORKERS_MAX: usize = 256;

/// Tiers as metrics and operators call them.
pub(super) fn tier_name(tier: Tier) -> &'static str {
    match tier {
        Tier::Gpu => "gpu",
        Tier::Cpu => "cpu",
    }
}

/// The workers.
pub(super) struct Roster {
    members: RwLock<Arc<Vec<Arc<Member>>>>,
    hired: Mutex<BTreeMap<String, Hired>>,
    turn: AtomicUsize,
    reference: Arc<Reference>,
    rounds: Rounds,
    options: EncoderOptions,
    metrics: EncoderMetrics,
}

/// A worker, who said that it is there, and the task that checks it.
struct Hired {
    member: Arc<Member>,
    source: usize,
    _watch: DropGuard,
}

impl Roster {
    pub(super) fn new(reference: Arc<Reference>, rounds: Rounds, metrics: EncoderMetrics) -> Self {
        Self {
            members: RwLock::default(),
            hired: Mutex::default(),
            turn: AtomicUsize::new(0),
            reference,
            rounds,
            options: EncoderOptions::default(),
            metrics,
        }
    }

    /// `source` knows exactly these addresses now. A worker that is there already stays as it is.
    pub(super) fn replace(&self, source: usize, addresses: &[String]) {
        let addresses = &addresses[..addresses.len().min(WORKERS_MAX)];
        let mut hired = self.hired.lock().unwrap_or_else(PoisonError::into_inner);
        hired.retain(|address, worker| worker.source != source || addresses.contains(address));
        for address in addresses {
            if hired.contains_key(address) {
                continue;
            }
            match Member::new(address, &self.options, self.metrics.worker(address)) {
                Ok(member) => {
                    hired.insert(address.clone(), self.hire(member, source));
                }
                Err(error) => warn!(worker = address, %error, "this is no encoder worker"),
            }
        }
        let members = hired.values().map(|worker| Arc::clone(&worker.member)).collect();
        *self.members.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(members);
    }

    fn hire(&self, member: Member, source: usize) -> Hired {
        info!(worker = member.address, "an encoder worker is to be had");
        let member = Arc::new(member);
        let stop = CancellationToken::new();
        let watched = Arc::clone(&member);
        let reference = Arc::clone(&self.reference);
        let checks = watch::check_again_and_again(watched, reference, self.rounds);
        tokio::spawn(stop.clone().run_until_cancelled_owned(checks));
        Hired { member, source, _watch: stop.drop_guard() }
    }

    /// The best worker that can take `tokens` more and was not tried: of the best tier, the one with the
    /// least to do.
    pub(super) fn pick(&self, tokens: u64, tried: &[Arc<Member>]) -> Option<Load> {
        let members = self.members();
        // From another one with each request, so that equals take turns. With each attempt, a late worker of
        // two would be first again and again.
        let next = usize::from(tried.is_empty());
        let start = self.turn.fetch_add(next, Ordering::Relaxed);
        let in_turn = (0..members.len()).map(|i| &members[start.wrapping_add(i) % members.len()]);
        let untried = in_turn.filter(|member| !tried.iter().any(|one| Arc::ptr_eq(one, member)));
        let usable = untried.filter_map(|member| Some((member.usable()?, member.tokens(), member)));
        let best = usable.min_by_key(|(tier, outstanding, _)| (*tier, *outstanding));
        best.map(|(_, _, member)| Load::new(Arc::clone(member), tokens))
    }

    /// Workers in use.
    pub(super) fn serving(&self) -> usize {
        self.members().iter().filter(|member| member.is_serving()).count()
    }

    fn members(&self) -> Arc<Vec<Arc<Member>>> {
        Arc::clone(&self.members.read().unwrap_or_else(PoisonError::into_inner))
    }
}
