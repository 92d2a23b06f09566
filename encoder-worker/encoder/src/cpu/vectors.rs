//! Kernels that multiply in f32 with the vectors of any CPU, for formats whose weights become f32 when read.
//! Activations stay f32, because rounding them gains nothing.

use std::marker::PhantomData;

use pulp::{Arch, Simd, WithSimd};

use super::kept::{Blocks, KeptRows, LANES};
use super::kernel::{Format, Kernel, NO_GROUPS, Panel, PanelRow, Rows, blocks, for_rows};

/// Rows of one tile: with two vectors of columns, 12 sums of AVX2's 16 registers.
const ROWS: usize = 6;

/// Format with a tile of its own.
pub(super) trait Tile: Format + Sized + Send + Sync {
    /// Multiplies `N` rows from `first` on by the whole panel.
    fn tile<S: Simd, const N: usize>(product: &mut Product<'_, Self>, simd: S, first: usize);
}

/// Kernel that runs on every CPU.
pub(super) struct Vectors<F> {
    arch: Arch,
    format: PhantomData<F>,
}

impl<F> Vectors<F> {
    pub(super) fn new(arch: Arch) -> Self {
        Self { arch, format: PhantomData }
    }
}

impl<F> Clone for Vectors<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for Vectors<F> {}

impl<F: Tile> Kernel for Vectors<F> {
    type Format = F;
    type Value = f32;
    const GROUP: usize = NO_GROUPS;

    fn keep(self, from: Blocks<'_>, mut to: KeptRows<'_, f32>) {
        for row in 0..from.rows {
            for (index, kept) in to.values(row).as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
                *kept = *from.lanes(row, index * LANES);
            }
        }
    }

    fn multiply(self, rows: Rows<'_, f32>, panel: Panel<'_, F::Step>, out: &mut [PanelRow]) {
        self.arch.dispatch(Product::<F> { rows, panel, out });
    }
}

/// Product of some rows and one panel.
pub(super) struct Product<'a, F: Format> {
    pub(super) rows: Rows<'a, f32>,
    pub(super) panel: Panel<'a, F::Step>,
    pub(super) out: &'a mut [PanelRow],
}

impl<F: Tile> WithSimd for Product<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        for (start, len) in blocks(self.out.len(), ROWS) {
            for_rows!(len, [1, 2, 3, 4, 5], 6, F::tile::<S, N>(&mut self, simd, start));
        }
    }
}
