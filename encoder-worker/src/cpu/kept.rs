//! Activations as a product takes them, and how they get there.

use std::ops::Range;

use super::kernel::{PANEL, PanelRow, RowScale, Rows};
use super::linear::Linear;
use super::shared::Shared;

/// Rows of activations and their scales.
pub(super) struct Kept<V> {
    values: Shared<V>,
    scales: Shared<RowScale>,
}

impl<V> Default for Kept<V> {
    fn default() -> Self {
        Self { values: Shared::default(), scales: Shared::default() }
    }
}

#[allow(unsafe_code, reason = "members of a team write disjoint parts of one buffer")]
impl<V: Copy + Default> Kept<V> {
    /// Makes room for so many rows of what `linear` takes.
    pub(super) fn grow(&mut self, rows: usize, linear: &Linear) {
        self.values.grow(rows * linear.inputs(), V::default());
        self.scales.grow(rows * linear.row_scales(), RowScale::default());
    }

    /// # Safety
    /// In this phase nobody writes into these rows.
    pub(super) unsafe fn read(&self, rows: Range<usize>, linear: &Linear) -> Rows<'_, V> {
        let (inputs, scales) = (linear.inputs(), linear.row_scales());
        // SAFETY: nobody writes, says the caller.
        let (values, scales) = unsafe {
            (
                self.values.read(rows.start * inputs..rows.end * inputs),
                self.scales.read(rows.start * scales..rows.end * scales),
            )
        };
        Rows { values, scales, inputs }
    }

    /// The places of `columns` of the rows from `first_row` on. Columns begin where a group does.
    ///
    /// # Safety
    /// In this phase nobody else reads or writes any of them.
    pub(super) unsafe fn write(
        &self,
        first_row: usize,
        columns: Range<usize>,
        linear: &Linear,
    ) -> KeptRows<'_, V> {
        let (inputs, group, scales) = (linear.inputs(), linear.group(), linear.row_scales());
        KeptRows {
            kept: self,
            values: Place {
                first: first_row * inputs + columns.start,
                stride: inputs,
                width: columns.len(),
            },
            group: group.min(columns.len()),
            scales: Place {
                first: first_row * scales + columns.start / group,
                stride: scales,
                width: columns.len().div_ceil(group),
            },
        }
    }
}

/// Equal pieces of rows.
#[derive(Clone, Copy)]
struct Place {
    first: usize,
    stride: usize,
    width: usize,
}

impl Place {
    fn of(self, row: usize) -> Range<usize> {
        let start = self.first + row * self.stride;
        start..start + self.width
    }
}

/// Where some columns of some rows are kept.
pub(super) struct KeptRows<'a, V> {
    kept: &'a Kept<V>,
    values: Place,
    scales: Place,
    /// Columns that share a scale.
    group: usize,
}

#[allow(unsafe_code, reason = "members of a team write disjoint parts of one buffer")]
impl<V: Copy> KeptRows<'_, V> {
    /// Groups of columns.
    #[inline(always)]
    pub(super) fn groups(&self) -> usize {
        self.scales.width
    }

    /// The columns of a group, from the first of ours on.
    #[inline(always)]
    pub(super) fn columns(&self, group: usize) -> Range<usize> {
        group * self.group..((group + 1) * self.group).min(self.values.width)
    }

    /// The values of row `index`.
    #[inline(always)]
    pub(super) fn values(&mut self, index: usize) -> &mut [V] {
        // SAFETY: these columns are ours, said whoever made this.
        unsafe { self.kept.values.write(self.values.of(index)) }
    }

    /// The scales of row `index`, one per group. Not for formats without groups, whose scale belongs to
    /// no columns.
    #[inline(always)]
    pub(super) fn scales(&mut self, index: usize) -> &mut [RowScale] {
        // SAFETY: as above.
        unsafe { self.kept.scales.write(self.scales.of(index)) }
    }
}

/// Rows of activations, each in blocks that may lie apart.
#[derive(Clone, Copy)]
pub(super) struct Blocks<'a> {
    values: &'a [f32],
    pub(super) rows: usize,
    row_stride: usize,
    /// Columns in a block, a multiple of 16.
    block: usize,
    block_stride: usize,
}

/// What is read at a time.
pub(super) const LANES: usize = 16;

impl<'a> Blocks<'a> {
    /// Rows without gaps.
    pub(super) fn of_rows(values: &'a [f32], width: usize) -> Self {
        let rows = values.len() / width;
        Self { values, rows, row_stride: width, block: width, block_stride: 0 }
    }

    /// `[panels, rows]`.
    pub(super) fn of_panels(panels: &'a [PanelRow], rows: usize) -> Self {
        Self::of_matrices(panels.as_flattened(), (rows, PANEL))
    }

    /// Matrices of so many rows and columns, side by side.
    pub(super) fn of_matrices(values: &'a [f32], (rows, columns): (usize, usize)) -> Self {
        let block_stride = rows * columns;
        Self { values, rows, row_stride: columns, block: columns, block_stride }
    }

    /// Sixteen columns of a row, from `column` on, a multiple of 16.
    #[inline(always)]
    pub(super) fn lanes(&self, row: usize, column: usize) -> &'a [f32; LANES] {
        let block = column / self.block;
        let at = row * self.row_stride + block * self.block_stride + column - block * self.block;
        let lanes = self.values[at..].first_chunk();
        lanes.unwrap_or(&[0.0; LANES])
    }
}
