//! A few threads that work on one thing together, step by step. Between two requests the helpers look
//! out for the next for some microseconds, then sleep: waking a thread takes longer than a tenth of a
//! short text, and looking out for longer would take the core from others.

use std::any::Any;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crate::load_error::LoadError;

/// Looks at a flag before a thread gives up its core: some 20 us.
const LOOKS: u32 = 1_500;

/// One thread's part in a team's work.
pub(super) struct Member<'a> {
    /// From 0 on.
    pub(super) index: usize,
    pub(super) count: usize,
    barrier: &'a Barrier,
}

impl Member<'_> {
    /// This member's contiguous share of `units`.
    pub(super) fn share(&self, units: usize) -> Range<usize> {
        self.index * units / self.count..(self.index + 1) * units / self.count
    }

    /// Returns when all members have come here.
    pub(super) fn wait(&self) {
        self.barrier.wait(self.count);
    }

    /// A member with nobody to wait for.
    pub(super) fn alone(&self) -> Self {
        Self { index: 0, count: 1, barrier: self.barrier }
    }
}

/// Where members wait for each other.
#[derive(Default)]
struct Barrier {
    arrived: AtomicUsize,
    round: AtomicUsize,
    /// A member has panicked and will never come.
    broken: AtomicBool,
}

impl Barrier {
    fn wait(&self, count: usize) {
        if count == 1 {
            return;
        }
        let round = self.round.load(Acquire);
        if self.arrived.fetch_add(1, AcqRel) + 1 == count {
            self.arrived.store(0, Relaxed);
            self.round.store(round.wrapping_add(1), Release);
            return;
        }
        look_until(|| self.round.load(Acquire) != round || self.broken.load(Relaxed));
        assert!(!self.broken.load(Relaxed), "another thread of the encoder panicked");
    }
}

/// Looks again and again, giving up the core in between when it takes long.
fn look_until(there: impl Fn() -> bool) {
    let mut looks = 0_u32;
    while !there() {
        looks += 1;
        if looks.is_multiple_of(LOOKS) {
            thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}

type Job<'a> = &'a (dyn Fn(&Member<'_>) + Sync);

/// What helpers see of a job.
#[derive(Default)]
struct Board {
    /// The number of jobs so far; a new one is announced by it.
    number: AtomicUsize,
    job: Mutex<Option<Job<'static>>>,
    /// Helpers that have not finished the present job.
    busy: AtomicUsize,
    stopped: AtomicBool,
    barrier: Barrier,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// The calling thread and its helpers. Dropping it ends them.
pub(super) struct Team {
    board: Arc<Board>,
    helpers: Vec<JoinHandle<()>>,
}

impl Team {
    /// A team of `threads`, the caller's among them.
    pub(super) fn new(threads: NonZeroUsize) -> Result<Self, LoadError> {
        let board = Arc::new(Board::default());
        let mut team = Self { board, helpers: Vec::new() };
        for index in 1..threads.get() {
            let board = Arc::clone(&team.board);
            let helper = thread::Builder::new()
                .name(format!("encoder-{index}"))
                .spawn(move || help(&board, index, threads.get()))
                .map_err(|error| LoadError::Threads(error.to_string()))?;
            team.helpers.push(helper);
        }
        Ok(team)
    }

    pub(super) fn size(&self) -> usize {
        self.helpers.len() + 1
    }

    /// Wakes the helpers, so that they look out when the next job comes.
    pub(super) fn rouse(&self) {
        self.helpers.iter().for_each(|helper| helper.thread().unpark());
    }

    /// Runs `job` once per member and returns when all are through. A panic of any is passed on.
    pub(super) fn run(&mut self, job: Job<'_>) {
        let board = &*self.board;
        board.busy.store(self.helpers.len(), Relaxed);
        *lock(&board.job) = Some(forget_lifetime(job));
        board.number.fetch_add(1, Release);
        self.rouse();
        let member = Member { index: 0, count: self.size(), barrier: &board.barrier };
        board.take_part(job, &member);
        look_until(|| board.busy.load(Acquire) == 0);
        *lock(&board.job) = None;
        if let Some(panic) = lock(&board.panic).take() {
            resume_unwind(panic);
        }
    }
}

/// The job outlives its use: `Team::run` returns only when no helper is busy with it.
#[allow(unsafe_code, reason = "threads that live longer than the borrow work on it")]
fn forget_lifetime(job: Job<'_>) -> Job<'static> {
    // SAFETY: helpers use the job only until they count themselves off `busy`, for which `run` waits,
    // also when its own part panics.
    unsafe { std::mem::transmute::<Job<'_>, Job<'static>>(job) }
}

impl Board {
    fn take_part(&self, job: Job<'_>, member: &Member<'_>) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| job(member))) {
            self.barrier.broken.store(true, Relaxed);
            // The first panic is the cause; others follow from it.
            lock(&self.panic).get_or_insert(panic);
        }
    }
}

fn help(board: &Board, index: usize, count: usize) {
    let mut done = 0;
    loop {
        let mut looks = 0;
        while board.number.load(Acquire) == done {
            if board.stopped.load(Relaxed) {
                return;
            }
            looks += 1;
            if looks < LOOKS {
                std::hint::spin_loop();
            } else {
                thread::park();
                looks = 0;
            }
        }
        done = done.wrapping_add(1);
        let job = *lock(&board.job);
        if let Some(job) = job {
            board.take_part(job, &Member { index, count, barrier: &board.barrier });
        }
        board.busy.fetch_sub(1, Release);
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.board.stopped.store(true, Relaxed);
        self.rouse();
        for helper in self.helpers.drain(..) {
            // Helpers catch what the jobs do.
            let _ = helper.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn team(threads: usize) -> Team {
        Team::new(NonZeroUsize::new(threads).expect("not zero")).expect("threads start")
    }

    #[test]
    fn shares_cover_all_units_once() {
        let barrier = Barrier::default();
        for count in 1..6 {
            let members = (0..count).map(|index| Member { index, count, barrier: &barrier });
            let all: Vec<usize> = members.flat_map(|member| member.share(17)).collect();
            assert_eq!(all, (0..17).collect::<Vec<_>>());
        }
    }

    #[test]
    fn members_wait_for_each_other() {
        for threads in 1..5 {
            let mut team = team(threads);
            for _ in 0..200 {
                let steps = AtomicUsize::new(0);
                team.run(&|member| {
                    for step in 1..=10 {
                        steps.fetch_add(1, Relaxed);
                        member.wait();
                        assert_eq!(steps.load(Relaxed), step * threads);
                        member.wait();
                    }
                });
            }
        }
    }

    #[test]
    fn a_panic_ends_the_job_for_all_and_is_passed_on() {
        let mut team = team(3);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            team.run(&|member| {
                assert_ne!(member.index, 1, "member 1 fails");
                member.wait();
            });
        }));
        let panic = panicked.expect_err("the panic is passed on");
        assert!(panic.downcast_ref::<String>().expect("a text").contains("member 1 fails"));
    }
}
