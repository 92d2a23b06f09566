//! Team of threads that work on one job together, phase by phase. Any thread that is present takes the next part of a
//! phase, and none waits for a thread that has not started: if another process has its core, the rest is done without
//! it. Between two jobs the helpers poll for the next one for some microseconds, then sleep. A wakeup takes longer than
//! a tenth of a short text, and polling for longer would take the core from others.
//!
//! `tests/team_model.rs` compiles this file with loom in place of `super::sync`, and explores the orders in which the
//! threads may run. So this file names nothing of this crate but `super::sync`.

use std::any::Any;
use std::cell::Cell;
use std::io;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering::*;

use super::sync::{
    Arc, AtomicBool, AtomicUsize, JoinHandle, Mutex, Thread, look_out, look_until, thread,
};

/// Bit of [`Board::door`] that lets helpers enter; the other bits count the helpers inside.
const OPEN: usize = 1 << (usize::BITS - 1);

/// Progress of a phase.
struct Phase {
    /// Each member's share of the parts. A member that has finished its own takes from the others. The same member
    /// works on the same weights from job to job, and none waits for a late one.
    shares: Box<[Share]>,
    done: Share,
}

/// Number of parts that were taken of a share, or are done. Aligned, so that a thread which waits for one does not slow
/// a thread which works on the next: processors fetch cache lines in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Share(AtomicUsize);

impl Phase {
    fn new(members: usize) -> Self {
        Self { shares: (0..members).map(|_| Share::default()).collect(), done: Share::default() }
    }

    fn reset(&self) {
        self.shares.iter().for_each(|share| share.0.store(0, Relaxed));
        self.done.0.store(0, Relaxed);
    }

    /// Takes the next of `parts`: of the member's own share, or else of the share after it.
    fn take(&self, member: usize, parts: usize) -> Option<usize> {
        let count = self.shares.len();
        (member..member + count).find_map(|owner| {
            let owner = owner % count;
            let share = share(owner, count, parts);
            let taken = &self.shares[owner].0;
            if taken.load(Relaxed) >= share.len() {
                return None;
            }
            let part = share.start + taken.fetch_add(1, Relaxed);
            share.contains(&part).then_some(part)
        })
    }
}

/// Returns a member's share of the parts.
fn share(member: usize, members: usize, parts: usize) -> Range<usize> {
    member * parts / members..(member + 1) * parts / members
}

/// Membership of one thread in a team's job.
pub(super) struct Member<'a> {
    /// Index of the member, from 0 on.
    pub(super) index: usize,
    pub(super) count: usize,
    /// Board of the team; `None` for a thread that works alone.
    board: Option<&'a Board>,
    /// Index of the next phase.
    next: Cell<usize>,
}

impl Member<'_> {
    /// Creates the member of a team of one.
    pub(super) fn alone() -> Self {
        Self { index: 0, count: 1, board: None, next: Cell::new(0) }
    }

    /// Cuts `units` into `parts` and works on parts until none is left; returns when all are done. All members go
    /// through the same phases.
    ///
    /// # Panics
    /// Another member has panicked, so its part will never be done.
    pub(super) fn phase(&self, units: usize, parts: usize, mut work: impl FnMut(Range<usize>)) {
        let Some(board) = self.board else { return work(0..units) };
        let parts = parts.clamp(1, units.max(1));
        let (phase, done) = self.work_off(board, units, parts, work);
        // Once and not part by part, because all members write to this cache line.
        phase.done.0.fetch_add(done, Release);
        look_until(|| phase.done.0.load(Acquire) == parts || board.broken.load(Relaxed));
        assert!(!board.broken.load(Relaxed), "another thread of the encoder panicked");
    }

    /// Works like [`Self::phase`], for the last phase. It ends with the job, so a member that finds no part left
    /// returns at once.
    pub(super) fn last_phase(
        &self,
        units: usize,
        parts: usize,
        mut work: impl FnMut(Range<usize>),
    ) {
        match self.board {
            Some(board) => _ = self.work_off(board, units, parts.clamp(1, units.max(1)), work),
            None => work(0..units),
        }
    }

    /// Works on parts of the next phase until none is left; returns the phase and the number of parts.
    fn work_off<'b>(
        &self,
        board: &'b Board,
        units: usize,
        parts: usize,
        mut work: impl FnMut(Range<usize>),
    ) -> (&'b Phase, usize) {
        let phase = &board.phases[self.next.get()];
        self.next.set(self.next.get() + 1);
        let mut done = 0;
        while let Some(part) = phase.take(self.index, parts) {
            work(part * units / parts..(part + 1) * units / parts);
            done += 1;
        }
        (phase, done)
    }
}

type Job<'a> = &'a (dyn Fn(&Member<'_>) + Sync);

/// Data about a job that helpers see.
struct Board {
    /// Number of jobs so far; its change announces a new one.
    number: AtomicUsize,
    /// Counter of the helpers inside, with the bit [`OPEN`].
    door: AtomicUsize,
    /// Job, with the thread that runs it and sleeps until the last helper has left.
    job: Mutex<Option<(Job<'static>, Thread)>>,
    phases: Box<[Phase]>,
    /// True if a member has panicked.
    broken: AtomicBool,
    stopped: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// Calling thread with its helpers. Dropping it ends them.
pub(super) struct Team {
    board: Arc<Board>,
    helpers: Vec<JoinHandle<()>>,
}

impl Team {
    /// Creates a team of `threads`, the caller's among them, for jobs of at most `phases` phases. Each helper calls
    /// `prepare` with its index, from 1 on, before it waits for jobs.
    pub(super) fn new(
        threads: NonZeroUsize,
        phases: usize,
        prepare: impl Fn(usize) + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let board = Arc::new(Board {
            number: AtomicUsize::new(0),
            door: AtomicUsize::new(0),
            job: Mutex::default(),
            phases: (0..phases).map(|_| Phase::new(threads.get())).collect(),
            broken: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            panic: Mutex::default(),
        });
        let mut team = Self { board, helpers: Vec::new() };
        for index in 1..threads.get() {
            let board = Arc::clone(&team.board);
            let prepare = prepare.clone();
            let helper = thread::Builder::new().name(format!("encoder-{index}"));
            team.helpers.push(helper.spawn(move || {
                prepare(index);
                help(&board, index, threads.get());
            })?);
        }
        Ok(team)
    }

    pub(super) fn size(&self) -> usize {
        self.helpers.len() + 1
    }

    /// Wakes the helpers of `members` members, so that they poll when the next job comes.
    pub(super) fn rouse(&self, members: usize) {
        let helpers = self.helpers.iter().take(members.saturating_sub(1));
        helpers.for_each(|helper| helper.thread().unpark());
    }

    /// Runs `job` on this thread and on those helpers of `members` members that start in time; returns when all are
    /// done. A panic of any member is passed on; the team is unusable after one.
    pub(super) fn run(&mut self, members: usize, job: Job<'_>) {
        let board = &*self.board;
        for phase in &board.phases {
            phase.reset();
        }
        *board.job.lock() = Some((forget_lifetime(job), thread::current()));
        board.door.store(OPEN, Release);
        board.number.fetch_add(1, Release);
        self.rouse(members);
        board.take_part(job, 0, self.size());
        board.door.fetch_and(!OPEN, AcqRel);
        // While asleep, this thread leaves its core to a helper whose own core is taken.
        while !look_out(|| board.door.load(Acquire) == 0) {
            thread::park();
        }
        *board.job.lock() = None;
        if let Some(panic) = board.panic.lock().take() {
            resume_unwind(panic);
        }
    }
}

/// Extends the lifetime of a job. The job outlives its use: `Team::run` returns only when no helper uses it.
#[allow(unsafe_code, reason = "threads that live longer than the borrow work on it")]
fn forget_lifetime(job: Job<'_>) -> Job<'static> {
    // SAFETY: helpers use the job only while they are inside, and they enter only while the door is open. `run` closes
    // it and waits until no helper is inside, even when its own part panics.
    unsafe { std::mem::transmute::<Job<'_>, Job<'static>>(job) }
}

impl Board {
    fn take_part(&self, job: Job<'_>, index: usize, count: usize) {
        let member = Member { index, count, board: Some(self), next: Cell::new(0) };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| job(&member))) {
            // The first panic is the cause; others follow from it.
            self.panic.lock().get_or_insert(panic);
            self.broken.store(true, Relaxed);
        }
    }

    /// Takes part in the present job, unless it is over.
    fn enter(&self, index: usize, count: usize) {
        let enter = |door: usize| (door & OPEN != 0).then_some(door + 1);
        if self.door.fetch_update(AcqRel, Relaxed, enter).is_err() {
            return;
        }
        let job = self.job.lock().clone();
        let runner = job.map(|(job, runner)| {
            self.take_part(job, index, count);
            runner
        });
        // The thread that runs the job may end it from here on.
        let was_last = self.door.fetch_sub(1, Release) == 1;
        if let (true, Some(runner)) = (was_last, runner) {
            runner.unpark();
        }
    }
}

fn help(board: &Board, index: usize, count: usize) {
    let mut seen = 0;
    while !board.stopped.load(Relaxed) {
        let number = board.number.load(Acquire);
        if number != seen {
            seen = number;
            board.enter(index, count);
            continue;
        }
        if !look_out(|| board.number.load(Acquire) != seen || board.stopped.load(Relaxed)) {
            thread::park();
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.board.stopped.store(true, Relaxed);
        self.rouse(usize::MAX);
        for helper in self.helpers.drain(..) {
            // Helpers catch the panics of jobs.
            let _ = helper.join();
        }
    }
}
