//! Permits that limit how many searches run in the graph at once. A waiting search blocks its thread, for less than the
//! millisecond that a search takes. There are more permits than cores, so a waiting search would wait for a core
//! anyway.

use parking_lot::{Condvar, Mutex};

/// Permits shared between threads.
#[derive(Debug)]
pub(super) struct Permits {
    total: usize,
    free: Mutex<usize>,
    returned: Condvar,
}

impl Permits {
    /// Creates twice as many permits as there are cores, and at least 16.
    pub(super) fn for_readers() -> Self {
        Self::new(std::thread::available_parallelism().map_or(16, |cores| 16.max(2 * cores.get())))
    }

    /// Creates `total` permits. `total` must be at least 1.
    pub(super) fn new(total: usize) -> Self {
        Self { total, free: Mutex::new(total), returned: Condvar::new() }
    }

    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// Waits until a permit is free. Dropping the permit returns it.
    pub(super) fn acquire(&self) -> Permit<'_> {
        let mut free = self.free.lock();
        while *free == 0 {
            self.returned.wait(&mut free);
        }
        *free -= 1;
        Permit(self)
    }
}

/// Right to use one search context.
#[derive(Debug)]
pub(super) struct Permit<'a>(&'a Permits);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.free.lock() += 1;
        self.0.returned.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn no_more_hold_a_permit_than_there_are() {
        let permits = Permits::new(3);
        let inside = AtomicUsize::new(0);
        let most = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..32 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let _permit = permits.acquire();
                        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!((1..=3).contains(&most.into_inner()));
        assert_eq!(*permits.free.lock(), 3);
    }
}
