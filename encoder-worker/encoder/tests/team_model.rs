//! Model of the thread team of the CPU encoder. loom runs each test in every order in which the threads can take their
//! steps, with every value that a load may see under its memory ordering. It fails a test for an order in which threads
//! wait for each other for ever, or reach a cell without an order between them.
//!
//! The file under test is the encoder's own; only the types that it synchronises with are loom's.

#![expect(unsafe_code, reason = "loom hands out the values of its cells as raw pointers")]

#[path = "../src/cpu/team.rs"]
#[expect(dead_code, reason = "a member that works alone synchronises with nobody")]
mod team;

use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicBool;

use team::{Member, Team};

/// loom's types, by the names that the team knows.
mod sync {
    use loom::sync::MutexGuard;

    pub(super) use loom::sync::Arc;
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicUsize};

    pub(super) use super::thread::{self, JoinHandle, Thread};

    #[derive(Default)]
    pub(super) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(super) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("nothing panics under a lock")
        }
    }

    pub(super) fn look_until(there: impl Fn() -> bool) {
        while !there() {
            loom::thread::yield_now();
        }
    }

    /// Looks once: time does not pass in a model, so each look may be the last.
    pub(super) fn look_out(there: impl Fn() -> bool) -> bool {
        there()
    }
}

/// Threads that are parked and unparked as the standard library promises: what came before `unpark` is ordered before what
/// comes after the `park` that it ends. loom's own `unpark` orders it before all that the other thread does afterwards,
/// parked or not, which hides missing orders.
mod thread {
    use std::cell::OnceCell;
    use std::io;
    use std::sync::Arc;

    use loom::sync::{Condvar, Mutex};

    loom::thread_local! {
        static CURRENT: OnceCell<Thread> = OnceCell::new();
    }

    #[derive(Clone, Default)]
    pub(super) struct Thread(Arc<Token>);

    #[derive(Default)]
    struct Token {
        is_there: Mutex<bool>,
        came: Condvar,
    }

    impl Thread {
        pub(super) fn unpark(&self) {
            *self.0.is_there.lock().expect("no panic") = true;
            self.0.came.notify_one();
        }
    }

    pub(super) fn current() -> Thread {
        CURRENT.with(|thread| thread.get_or_init(Thread::default).clone())
    }

    pub(super) fn park() {
        let Thread(token) = current();
        let mut is_there = token.is_there.lock().expect("no panic");
        while !*is_there {
            is_there = token.came.wait(is_there).expect("no panic");
        }
        *is_there = false;
    }

    pub(super) struct JoinHandle<T> {
        handle: loom::thread::JoinHandle<T>,
        thread: Thread,
    }

    impl<T> JoinHandle<T> {
        pub(super) fn thread(&self) -> &Thread {
            &self.thread
        }

        pub(super) fn join(self) -> std::thread::Result<T> {
            self.handle.join()
        }
    }

    pub(super) struct Builder(loom::thread::Builder);

    impl Builder {
        pub(super) fn new() -> Self {
            Self(loom::thread::Builder::new())
        }

        pub(super) fn name(self, name: String) -> Self {
            Self(self.0.name(name))
        }

        pub(super) fn spawn(
            self,
            run: impl FnOnce() + Send + 'static,
        ) -> io::Result<JoinHandle<()>> {
            let thread = Thread::default();
            let own = thread.clone();
            let handle = self.0.spawn(move || {
                CURRENT.with(|current| current.get_or_init(|| own).clone());
                run();
            })?;
            Ok(JoinHandle { handle, thread })
        }
    }
}

/// Number that the caller of a job lends to its members. Access is ordered by the team alone.
struct Lent(UnsafeCell<usize>);

// SAFETY: loom fails the test where two threads reach the cell, one of them writing, without an order between them.
unsafe impl Sync for Lent {}

impl Lent {
    fn row<const N: usize>() -> [Self; N] {
        std::array::from_fn(|_| Self(UnsafeCell::new(0)))
    }

    fn get(&self) -> usize {
        // SAFETY: loom has checked that no thread writes.
        self.0.with(|value| unsafe { *value })
    }

    fn add_one(&self) {
        // SAFETY: loom has checked that no other thread reads or writes.
        self.0.with_mut(|value| unsafe { *value += 1 });
    }
}

/// Explores all orders in which the threads are interrupted at most `interruptions` times; waiting is no interruption.
/// The bounds keep the tests within seconds. Each further interruption takes ten times as long or more.
fn explore(interruptions: Option<usize>, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = interruptions;
    // Threads that wait for another take many steps in some orders.
    builder.max_branches = 10_000;
    builder.check(test);
}

fn team(threads: usize) -> Team {
    let threads = NonZeroUsize::new(threads).expect("not zero");
    Team::new(threads, 2, |_| {}).expect("loom starts every thread")
}

/// Lends two rows to jobs, one after the other, for which that many `members` are woken. Each job adds one to every
/// number of the first row in its first phase; in its second it reads what another part has written, and adds one to the
/// second row.
fn check_jobs<const UNITS: usize>(threads: usize, members: &[usize]) {
    let mut team = team(threads);
    let first = Lent::row::<UNITS>();
    let second = Lent::row::<UNITS>();
    for (&members, round) in members.iter().zip(1..) {
        team.run(members, &|member| {
            member.phase(UNITS, UNITS, |units| first[units].iter().for_each(Lent::add_one));
            member.last_phase(UNITS, UNITS, |units| {
                for unit in units {
                    assert_eq!(first[(unit + 1) % UNITS].get(), round);
                    second[unit].add_one();
                }
            });
        });
        // The caller has all numbers back.
        for unit in 0..UNITS {
            assert_eq!([first[unit].get(), second[unit].get()], [round; 2]);
        }
    }
}

#[test]
fn two_threads_work_on_every_part_once_and_give_back_what_was_lent() {
    explore(Some(2), || check_jobs::<2>(2, &[2, 2]));
}

#[test]
fn a_helper_that_was_not_woken_may_join_late() {
    explore(Some(2), || check_jobs::<2>(2, &[1, 2]));
}

#[test]
fn three_threads_work_on_every_part_once_and_give_back_what_was_lent() {
    explore(Some(1), || check_jobs::<3>(3, &[3]));
}

/// One phase alone, for which the threads can be interrupted more often.
fn check_one_phase() {
    let mut team = team(2);
    let lent = Lent::row::<2>();
    team.run(2, &|member| {
        member.last_phase(2, 2, |units| lent[units].iter().for_each(Lent::add_one));
    });
    assert_eq!(lent.each_ref().map(Lent::get), [1, 1]);
}

#[test]
fn the_caller_waits_for_what_it_has_lent() {
    explore(Some(4), check_one_phase);
}

/// A helper that was the last of one job can wake the caller in the next one, and so can anybody else.
#[test]
fn a_caller_that_is_woken_early_waits_on() {
    explore(Some(4), || {
        thread::current().unpark();
        check_one_phase();
    });
}

/// The caller finishes its own part only when the helper has begun the job.
#[test]
fn a_helper_wakes_up_for_every_job() {
    explore(Some(4), || {
        let mut team = team(2);
        for _ in 0..2 {
            let entered = AtomicBool::new(false);
            team.run(2, &|member| match member.index {
                0 => sync::look_until(|| entered.load(Relaxed)),
                _ => entered.store(true, Relaxed),
            });
        }
    });
}

fn check_panic(threads: usize, work: impl Fn(&Member<'_>, &dyn Fn(Range<usize>)) + Sync) {
    let mut team = team(threads);
    let lent = Lent::row::<2>();
    let part = |units: Range<usize>| {
        lent[units.start].add_one();
        if units.start == 1 {
            // Without the message of `panic!`, once for each of many orders.
            resume_unwind(Box::new("part 1 fails"));
        }
    };
    let job = |member: &Member<'_>| work(member, &part);
    let panicked = catch_unwind(AssertUnwindSafe(|| team.run(threads, &job)));
    let panic = panicked.expect_err("the panic is passed on");
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"part 1 fails"));
    // The caller has both numbers back. The first part may have had nobody left to work on it.
    assert!(lent[0].get() <= 1);
    assert_eq!(lent[1].get(), 1);
}

#[test]
fn a_panic_of_a_part_ends_the_job_for_all() {
    explore(Some(3), || {
        check_panic(2, |member, part| {
            member.phase(2, 2, part);
            member.last_phase(2, 2, |_| unreachable!("no phase follows one that failed"));
        });
    });
    explore(Some(1), || check_panic(3, |member, part| member.phase(2, 2, part)));
}

#[test]
fn a_panic_of_a_last_part_is_passed_on() {
    explore(Some(3), || check_panic(2, |member, part| member.last_phase(2, 2, part)));
}

/// loom fails a test in which the main thread ends and another waits for ever.
#[test]
fn a_team_that_is_dropped_ends_its_helpers() {
    explore(Some(3), || {
        let helpers = Arc::new(());
        let held = Arc::clone(&helpers);
        let threads = NonZeroUsize::new(3).expect("not zero");
        let team = Team::new(threads, 1, move |_| _ = &held).expect("loom starts every thread");
        team.rouse(2);
        drop(team);
        assert_eq!(Arc::strong_count(&helpers), 1, "a helper is still there");
    });
}
