//! Tests of the thread team with real threads. `tests/team_model.rs` explores the orders that these do not meet.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::thread;

use super::super::sync::{LOOK_OUT, look_until};
use super::super::team::Team;

fn team(threads: usize) -> Team {
    Team::new(NonZeroUsize::new(threads).expect("not zero"), 10, |_| {}).expect("threads start")
}

#[test]
fn every_unit_of_every_phase_is_worked_on_once_and_phases_are_in_order() {
    for threads in 1..5 {
        let mut team = team(threads);
        for units in [0, 1, 5, 17] {
            for parts in [1, 3, 17, 40] {
                let counts: Vec<AtomicUsize> = (0..17).map(|_| AtomicUsize::new(0)).collect();
                team.run(usize::MAX, &|member| {
                    let work = |step: usize, range: Range<usize>| {
                        for count in &counts[range] {
                            assert_eq!(count.fetch_add(1, Relaxed), step);
                        }
                    };
                    (0..9).for_each(|step| member.phase(units, parts, |range| work(step, range)));
                    member.last_phase(units, parts, |range| work(9, range));
                });
                for (i, count) in counts.iter().enumerate() {
                    assert_eq!(count.load(Relaxed), if i < units { 10 } else { 0 });
                }
            }
        }
    }
}

#[test]
fn a_panic_ends_the_job_for_all_and_is_passed_on() {
    let fails = |part: Range<usize>| assert_ne!(part.start, 1, "part 1 fails");
    for is_last in [false, true] {
        let mut team = team(3);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            team.run(usize::MAX, &|member| {
                if is_last {
                    return member.last_phase(3, 3, fails);
                }
                member.phase(3, 3, fails);
                member.phase(3, 3, |_| {});
            });
        }));
        let panic = panicked.expect_err("the panic is passed on");
        assert!(panic.downcast_ref::<String>().expect("a text").contains("part 1 fails"));
    }
}

#[test]
fn who_runs_a_job_sleeps_until_the_last_helper_is_through() {
    let mut team = team(2);
    let done = AtomicUsize::new(0);
    for round in 1..=3 {
        let entered = AtomicBool::new(false);
        team.run(usize::MAX, &|member| {
            if member.index == 0 {
                return look_until(|| entered.load(Relaxed));
            }
            entered.store(true, Relaxed);
            thread::sleep(10 * LOOK_OUT);
            done.fetch_add(1, Relaxed);
        });
        assert_eq!(done.load(Relaxed), round);
    }
}
