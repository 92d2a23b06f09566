//! Activations in the form that a product takes, and views for writing them.

use std::ops::Range;

use super::kernel::{PANEL, PanelRow, RowScale, Rows};
use super::linear::Linear;
use super::shared::Shared;

/// Rows of activations with their scales; each thread has its own.
pub(super) struct Kept<V> {
    values: Shared<V>,
    scales: Shared<RowScale>,
}

impl<V> Default for Kept<V> {
    fn default() -> Self {
        Self { values: Shared::default(), scales: Shared::default() }
    }
}

impl<V: Copy + Default> Kept<V> {
    /// Returns the first `count` rows of the input of `linear`.
    pub(super) fn read(&mut self, count: usize, linear: &Linear) -> Rows<'_, V> {
        let inputs = linear.inputs();
        Rows {
            values: self.values.own(count * inputs, V::default()),
            scales: self.scales.own(count * linear.row_scales(), RowScale::default()),
            inputs,
        }
    }

    /// Returns the places of `columns` of `rows`. Columns must begin at the start of a group.
    pub(super) fn write(
        &mut self,
        rows: Range<usize>,
        columns: Range<usize>,
        linear: &Linear,
    ) -> KeptRows<'_, V> {
        let inputs = linear.inputs();
        let group = linear.group();
        let scales = linear.row_scales();
        KeptRows {
            values: &mut self.values.own(rows.end * inputs, V::default())[rows.start * inputs..],
            value_place: RowBlock { first: columns.start, stride: inputs, width: columns.len() },
            group: group.min(columns.len()),
            scales: &mut self.scales.own(rows.end * scales, RowScale::default())
                [rows.start * scales..],
            scale_place: RowBlock {
                first: columns.start / group,
                stride: scales,
                width: columns.len().div_ceil(group),
            },
        }
    }
}

/// Equal pieces of rows.
#[derive(Clone, Copy)]
struct RowBlock {
    first: usize,
    stride: usize,
    width: usize,
}

impl RowBlock {
    fn of(self, row: usize) -> Range<usize> {
        let start = self.first + row * self.stride;
        start..start + self.width
    }
}

/// Destination for some columns of some rows.
pub(super) struct KeptRows<'a, V> {
    values: &'a mut [V],
    value_place: RowBlock,
    scales: &'a mut [RowScale],
    scale_place: RowBlock,
    /// Columns that share a scale.
    group: usize,
}

impl<V> KeptRows<'_, V> {
    /// Returns the number of groups of columns.
    #[inline(always)]
    pub(super) fn groups(&self) -> usize {
        self.scale_place.width
    }

    /// Returns the columns of a group, relative to the first column of this view.
    #[inline(always)]
    pub(super) fn columns(&self, group: usize) -> Range<usize> {
        group * self.group..((group + 1) * self.group).min(self.value_place.width)
    }

    /// Returns the values of row `index`.
    #[inline(always)]
    pub(super) fn values(&mut self, index: usize) -> &mut [V] {
        &mut self.values[self.value_place.of(index)]
    }

    /// Returns the scales of row `index`, one per group. Not for formats without groups, whose scale belongs to no
    /// columns.
    #[inline(always)]
    pub(super) fn scales(&mut self, index: usize) -> &mut [RowScale] {
        &mut self.scales[self.scale_place.of(index)]
    }
}

/// Rows of activations, in blocks that may lie apart.
#[derive(Clone, Copy)]
pub(super) struct Blocks<'a> {
    values: &'a [f32],
    pub(super) rows: usize,
    row_stride: usize,
    /// Bits of a column's place within its block. A division would take longer than the work on a column.
    block_bits: u32,
    block_stride: usize,
}

/// Number of values that are read at a time.
pub(super) const LANES: usize = 16;

impl<'a> Blocks<'a> {
    /// Describes rows without gaps.
    pub(super) fn of_rows(values: &'a [f32], width: usize) -> Self {
        let rows = values.len() / width;
        Self { values, rows, row_stride: width, block_bits: usize::BITS - 1, block_stride: 0 }
    }

    /// Describes rows in panels of shape `[panels, rows]`.
    pub(super) fn of_panels(panels: &'a [PanelRow], rows: usize) -> Self {
        Self {
            values: panels.as_flattened(),
            rows,
            row_stride: PANEL,
            block_bits: PANEL.trailing_zeros(),
            block_stride: rows * PANEL,
        }
    }

    /// Returns `N` columns of a row from `column` on, which must be a multiple of `N`.
    #[inline(always)]
    pub(super) fn lanes<const N: usize>(&self, row: usize, column: usize) -> &'a [f32; N] {
        const { assert!(PANEL.is_multiple_of(N)) };
        let block = column >> self.block_bits;
        let within = column - (block << self.block_bits);
        let at = row * self.row_stride + block * self.block_stride + within;
        let lanes = self.values[at..].first_chunk();
        lanes.unwrap_or(&[0.0; N])
    }
}
