//! Place where the next batch waits for the device's thread, which takes it as soon as it is free. Until then the batch
//! may be replaced by a better one.

use parking_lot::{Condvar, Mutex};

use super::formed::Formed;

/// Place for one batch.
#[derive(Default)]
pub(super) struct Handover {
    place: Mutex<Place>,
    changed: Condvar,
}

#[derive(Default)]
struct Place {
    batch: Option<Formed>,
    rouse: bool,
    closed: bool,
}

/// Next thing to do for the device's thread.
pub(super) enum Work {
    /// Run this batch.
    Run(Formed),
    /// A batch will come soon.
    Rouse,
    /// Nothing will come any more.
    End,
}

/// Error of a batch that can't be replaced, because the device's thread has it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Taken;

impl Handover {
    /// Puts a batch in place of the one that waits, if `waits` says that one does.
    ///
    /// # Errors
    /// The device's thread has taken that one; the new one is dropped.
    pub(super) fn put(&self, batch: Option<Formed>, waits: bool) -> Result<(), Taken> {
        let mut place = self.place.lock();
        if waits && place.batch.is_none() {
            return Err(Taken);
        }
        let replaced = std::mem::replace(&mut place.batch, batch);
        drop(place);
        self.changed.notify_one();
        // Freed while nobody waits for the place.
        drop(replaced);
        Ok(())
    }

    /// Returns true if no batch waits.
    pub(super) fn is_empty(&self) -> bool {
        self.place.lock().batch.is_none()
    }

    /// Says that a batch will come soon.
    pub(super) fn rouse(&self) {
        self.place.lock().rouse = true;
        self.changed.notify_one();
    }

    /// Says that nothing will come any more. A batch that waits is dropped.
    pub(super) fn close(&self) {
        let mut place = self.place.lock();
        place.closed = true;
        place.batch = None;
        drop(place);
        self.changed.notify_one();
    }

    /// Waits for work.
    pub(super) fn wait(&self) -> Work {
        let mut place = self.place.lock();
        loop {
            if place.closed {
                return Work::End;
            }
            if let Some(batch) = place.batch.take() {
                place.rouse = false;
                return Work::Run(batch);
            }
            if std::mem::take(&mut place.rouse) {
                return Work::Rouse;
            }
            self.changed.wait(&mut place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_texts(texts: usize) -> Option<Formed> {
        let mut formed = Formed::default();
        (0..texts).for_each(|_| formed.batch.push(&[1]));
        Some(formed)
    }

    fn texts(work: Work) -> Option<usize> {
        match work {
            Work::Run(formed) => Some(formed.batch.texts()),
            Work::Rouse | Work::End => None,
        }
    }

    #[test]
    fn a_batch_is_replaced_until_it_is_taken() {
        let handover = Handover::default();
        handover.rouse();
        assert!(matches!(handover.wait(), Work::Rouse));
        assert_eq!(handover.put(of_texts(1), false), Ok(()));
        assert_eq!(handover.put(of_texts(2), true), Ok(()));
        assert!(!handover.is_empty());
        assert_eq!(texts(handover.wait()), Some(2));
        assert_eq!(handover.put(of_texts(3), true), Err(Taken));
        assert!(handover.is_empty());
        assert_eq!(handover.put(of_texts(3), false), Ok(()));
        assert_eq!(handover.put(None, true), Ok(()));
        assert!(handover.is_empty());
        handover.close();
        assert!(matches!(handover.wait(), Work::End));
    }
}
