//! Pinning of a team's threads to different cores. The scheduler may put two of them on one core, where each phase of a
//! batch takes twice as long.

use std::num::NonZeroUsize;

/// Number of threads of a team that is pinned to cores.
const PAIR: usize = 2;

/// Cores that a team's threads are pinned to; empty if the scheduler decides.
#[derive(Debug, Clone, Default)]
pub(super) struct Cores(Vec<usize>);

impl Cores {
    /// Returns one core for each thread of a team of two, if the process may use only two cores. On more cores the
    /// scheduler knows better which of them other processes leave idle, and which belong to one physical core.
    pub(super) fn for_team(threads: NonZeroUsize) -> Self {
        let allowed = allowed();
        if threads.get() == PAIR && allowed.len() == PAIR { Self(allowed) } else { Self::default() }
    }

    /// Pins the calling thread to the core of this member of the team, counted from 0.
    pub(super) fn keep(&self, member: usize) {
        if let Some(&core) = self.0.get(member) {
            keep_on(core);
        }
    }
}

/// Returns the cores that the calling thread may run on, in order.
#[cfg(target_os = "linux")]
fn allowed() -> Vec<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};

    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect(),
        Err(_) => Vec::new(),
    }
}

#[cfg(target_os = "linux")]
fn keep_on(core: usize) {
    use rustix::thread::{CpuSet, sched_setaffinity};

    let mut set = CpuSet::new();
    set.set(core);
    if let Err(error) = sched_setaffinity(None, &set) {
        tracing::debug!(%error, core, "a thread that embeds is not kept on its core");
    }
}

#[cfg(not(target_os = "linux"))]
fn allowed() -> Vec<usize> {
    Vec::new()
}

#[cfg(not(target_os = "linux"))]
fn keep_on(_: usize) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::thread;

    use super::*;

    fn size(threads: usize) -> NonZeroUsize {
        NonZeroUsize::new(threads).expect("not zero")
    }

    #[test]
    fn a_team_of_two_on_two_cores_has_one_for_each_thread() {
        let all = allowed();
        let cores = Cores::for_team(size(PAIR));
        let kept: Vec<Vec<usize>> = (0..cores.0.len())
            .map(|member| {
                let cores = cores.clone();
                let there = thread::spawn(move || {
                    cores.keep(member);
                    allowed()
                });
                there.join().expect("no panic")
            })
            .collect();
        let one_each: Vec<Vec<usize>> = cores.0.iter().map(|&core| vec![core]).collect();
        assert_eq!(kept, one_each);
        assert_eq!(kept.is_empty(), all.len() != PAIR);
        assert_eq!(allowed(), all, "other threads stay where they may be");
    }

    #[test]
    fn the_scheduler_places_any_other_team() {
        for threads in [1, allowed().len() + 2] {
            assert!(Cores::for_team(size(threads)).0.is_empty(), "{threads} threads");
        }
    }
}
