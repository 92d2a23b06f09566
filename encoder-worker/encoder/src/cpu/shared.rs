//! Buffers that the members of a team fill together.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Cache line. Buffers begin at one, so that a vector of values never spans two.
#[repr(C, align(64))]
struct Line(UnsafeCell<[MaybeUninit<u8>; 64]>);

/// Buffer whose parts belong to the members that a phase of the computation assigns them to. A barrier between two
/// phases orders the writes of one before the reads of the next.
pub(super) struct Shared<T> {
    lines: Vec<Line>,
    /// Number of values, all of them initialised.
    len: usize,
    values: PhantomData<T>,
}

// SAFETY: access goes through `read` and `write`, whose callers keep to the phases.
#[allow(unsafe_code, reason = "members of a team write disjoint parts of one buffer")]
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self { lines: Vec::new(), len: 0, values: PhantomData }
    }
}

#[allow(unsafe_code, reason = "members of a team write disjoint parts of one buffer")]
impl<T: Copy> Shared<T> {
    /// Makes room for `len` values and fills new ones with `empty`; memory is kept for the next batch.
    pub(super) fn grow(&mut self, len: usize, empty: T) {
        const { assert!(align_of::<T>() <= align_of::<Line>()) };
        if self.len >= len {
            return;
        }
        let lines = (len * size_of::<T>()).div_ceil(size_of::<Line>());
        self.lines.resize_with(lines, || Line(UnsafeCell::new([MaybeUninit::uninit(); 64])));
        let values: *mut T = self.lines.as_mut_ptr().cast();
        for index in self.len..len {
            // SAFETY: the lines hold `len` values and are aligned for them.
            unsafe { values.add(index).write(empty) };
        }
        self.len = len;
    }

    /// Returns the first `len` values; the caller has the buffer exclusively.
    pub(super) fn own(&mut self, len: usize, empty: T) -> &mut [T] {
        self.grow(len, empty);
        // SAFETY: the exclusive borrow rules out other users of this buffer.
        unsafe { self.write(0..len) }
    }

    /// # Safety
    /// No thread writes into `range` in this phase.
    pub(super) unsafe fn read(&self, range: Range<usize>) -> &[T] {
        let first = self.place(&range);
        // SAFETY: `place` checked that the values exist; the caller guarantees that no thread writes.
        unsafe { std::slice::from_raw_parts(first, range.len()) }
    }

    /// # Safety
    /// No other thread reads or writes any part of `range` in this phase.
    #[allow(clippy::mut_from_ref)]
    pub(super) unsafe fn write(&self, range: Range<usize>) -> &mut [T] {
        let first = self.place(&range);
        // SAFETY: as above; the cells allow writing through a shared borrow, and no other thread has access.
        unsafe { std::slice::from_raw_parts_mut(first.cast_mut(), range.len()) }
    }

    /// # Panics
    /// The buffer ends before `range` does.
    #[inline(always)]
    fn place(&self, range: &Range<usize>) -> *const T {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {}", self.len);
        self.lines.as_ptr().cast::<T>().wrapping_add(range.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_keeps_its_values_and_begins_at_a_cache_line() {
        let mut shared = Shared::<[f32; 3]>::default();
        shared.own(5, [1.0; 3])[4] = [7.0; 3];
        let values = shared.own(4_000, [2.0; 3]);
        assert_eq!((values[3], values[4], values[5]), ([1.0; 3], [7.0; 3], [2.0; 3]));
        assert!(values.as_ptr().addr().is_multiple_of(64));
        assert_eq!(shared.own(2, [0.0; 3]), [[1.0; 3]; 2]);
    }
}
