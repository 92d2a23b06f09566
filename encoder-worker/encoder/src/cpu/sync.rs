//! What the threads of a team synchronise with: the standard library's types, and how they poll. `tests/team_model.rs` has
//! loom's in their place.

pub(super) use std::sync::Arc;
pub(super) use std::sync::atomic::{AtomicBool, AtomicUsize};
pub(super) use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

pub(super) use parking_lot::Mutex;

/// Time that a thread polls for the next job, or for the end of this one, before it sleeps.
pub(super) const LOOK_OUT: Duration = Duration::from_micros(20);

/// Polls of a flag before a thread yields its core once.
const LOOKS: u32 = 200;

/// Polls until the condition holds; yields the core in between when it takes long.
pub(super) fn look_until(there: impl Fn() -> bool) {
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

/// Polls for some microseconds; returns true if the condition came to hold.
pub(super) fn look_out(there: impl Fn() -> bool) -> bool {
    let since = Instant::now();
    while !there() {
        if since.elapsed() >= LOOK_OUT {
            return false;
        }
        std::hint::spin_loop();
    }
    true
}
