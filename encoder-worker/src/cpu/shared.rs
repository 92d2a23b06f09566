//! Buffers that the members of a team fill together.

use std::cell::UnsafeCell;
use std::ops::Range;

/// A buffer whose parts belong to whoever the phase of the computation gives them to. Two phases are
/// separated by a barrier, which orders the writes of one before the reads of the next.
pub(super) struct Shared<T> {
    cells: Vec<UnsafeCell<T>>,
}

// SAFETY: access goes through `read` and `write`, whose callers keep to the phases.
#[allow(unsafe_code, reason = "members of a team write disjoint parts of one buffer")]
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self { cells: Vec::new() }
    }
}

#[allow(unsafe_code, reason = "members of a team write disjoint parts of one buffer")]
impl<T: Copy> Shared<T> {
    /// Makes room for `len` values; memory is kept for the next batch.
    pub(super) fn grow(&mut self, len: usize, empty: T) {
        if self.cells.len() < len {
            self.cells.resize_with(len, || UnsafeCell::new(empty));
        }
    }

    /// # Safety
    /// In this phase nobody writes into `range`.
    pub(super) unsafe fn read(&self, range: Range<usize>) -> &[T] {
        let cells = &self.cells[range];
        // SAFETY: `UnsafeCell<T>` is laid out as `T`; nobody writes, says the caller.
        unsafe { std::slice::from_raw_parts(cells.as_ptr().cast(), cells.len()) }
    }

    /// # Safety
    /// In this phase nobody else reads or writes any of `range`.
    #[allow(clippy::mut_from_ref)]
    pub(super) unsafe fn write(&self, range: Range<usize>) -> &mut [T] {
        let cells = &self.cells[range];
        // SAFETY: the cells allow writing through a shared borrow; nobody else looks, says the caller.
        unsafe { std::slice::from_raw_parts_mut(cells.as_ptr().cast_mut().cast(), cells.len()) }
    }
}
