//! Interface of number formats: the storage of activations and weights, and the product of the two.
//!
//! Weights are packed once, in panels of 64 output columns. A panel is a list of steps. A step holds the weights of the
//! next few inputs for all 64 columns, in the order in which the product reads them.

use super::kept::{Blocks, KeptRows};
use crate::device::NumberFormat;

/// Output columns that are computed together: four vectors of the widest kind.
pub(super) const PANEL: usize = 64;

/// Divisor of the padded number of inputs, so that no kernel has a remainder.
pub(super) const INPUT_MULTIPLE: usize = 16;

/// Scale of a group of a row's activations: `value = scale * kept + zero`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RowScale {
    pub(super) scale: f32,
    pub(super) zero: f32,
}

impl RowScale {
    /// Returns the scale on which `0..=levels` reaches from `low` to `high`.
    #[inline(always)]
    pub(super) fn of_range(low: f32, high: f32, levels: f32) -> Self {
        Self { scale: ((high - low) / levels).max(f32::MIN_POSITIVE), zero: low }
    }
}

impl Default for RowScale {
    fn default() -> Self {
        Self { scale: 1.0, zero: 0.0 }
    }
}

/// Scales of a panel's columns in one group of inputs.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Columns {
    /// Value of one unit of a kept weight.
    pub(super) scale: [f32; PANEL],
    /// Sum of the column's weights, which a row's `zero` is multiplied by.
    pub(super) sum: [f32; PANEL],
}

impl Columns {
    pub(super) const fn empty() -> Self {
        Self { scale: [1.0; PANEL], sum: [0.0; PANEL] }
    }
}

/// Left side of a product.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows<'a, V> {
    /// Rows of `inputs` values, without gaps.
    pub(super) values: &'a [V],
    /// Rows of one scale per group.
    pub(super) scales: &'a [RowScale],
    /// Number of inputs, a multiple of [`INPUT_MULTIPLE`].
    pub(super) inputs: usize,
}

impl<'a, V> Rows<'a, V> {
    /// Returns row `index`.
    #[inline(always)]
    pub(super) fn row(&self, index: usize) -> &'a [V] {
        &self.values[index * self.inputs..][..self.inputs]
    }

    /// Returns `N` rows from `first` on.
    #[inline(always)]
    pub(super) fn take<const N: usize>(&self, first: usize) -> [&'a [V]; N] {
        std::array::from_fn(|r| self.row(first + r))
    }

    /// Returns `N` rows from `first` on, cut into the inputs of each of `steps` steps.
    ///
    /// # Panics
    /// A row is shorter than that.
    #[inline(always)]
    pub(super) fn take_steps<const N: usize, const STEP: usize>(
        &self,
        first: usize,
        steps: usize,
    ) -> [&'a [[V; STEP]]; N] {
        std::array::from_fn(|r| &self.row(first + r).as_chunks::<STEP>().0[..steps])
    }
}

/// Panel of the right side of a product.
#[derive(Debug, Clone, Copy)]
pub(super) struct Panel<'a, S> {
    pub(super) steps: &'a [S],
    /// Steps whose inputs share a scale; the last group may have fewer.
    pub(super) group_steps: usize,
    /// Scales, one entry per group of inputs.
    pub(super) groups: &'a [Columns],
    pub(super) bias: &'a PanelRow,
    /// Steps of the panel that comes next, which a kernel may prefetch.
    pub(super) ahead: &'a [S],
}

impl<'a, S> Panel<'a, S> {
    /// Returns this panel with `next` as the one to prefetch.
    pub(super) fn before(&self, next: &Self) -> Self {
        Self { ahead: next.steps, ..*self }
    }
}

/// Row of a panel's result.
pub(super) type PanelRow = [f32; PANEL];

/// Storage format of weights, independent of the instructions that multiply them.
pub(super) trait Format: 'static {
    /// Weights of some inputs for a panel's columns.
    type Step: Copy + Send + Sync + 'static;
    /// Step of zeros.
    const EMPTY: Self::Step;
    /// Inputs per step; divides [`INPUT_MULTIPLE`].
    const STEP: usize;
    /// Public name of the format.
    const NAME: NumberFormat;

    /// Returns the value of one unit of a kept weight, from the largest absolute weight of its column in its group.
    fn weight_scale(_largest: f32) -> f32 {
        1.0
    }

    /// Stores `weight` as number `index` (`column * STEP + input`) of a step, and returns the value that the stored
    /// weight represents.
    fn pack(step: &mut Self::Step, index: usize, weight: f32, scale: f32) -> f32;
}

/// Weights of some inputs, in the format of `K`.
pub(super) type StepOf<K> = <<K as Kernel>::Format as Format>::Step;

/// Number format on an instruction set. Values of this type exist only if the CPU can run it.
pub(super) trait Kernel: Copy + Send + Sync + 'static {
    /// Storage format of its weights.
    type Format: Format;
    /// Type of a kept activation.
    type Value: Copy + Default + Send + Sync + 'static;
    /// Inputs that share a scale in the narrowing layer, whose inputs are not balanced: a multiple of [`PANEL`], or
    /// [`NO_GROUPS`] for a format without scales.
    const GROUP: usize;

    /// Keeps activations, and a scale for each group of each row.
    fn keep(self, from: Blocks<'_>, to: KeptRows<'_, Self::Value>);

    /// Computes `out[r] = rows[r] x panel + bias` for every row.
    fn multiply(
        self,
        rows: Rows<'_, Self::Value>,
        panel: Panel<'_, StepOf<Self>>,
        out: &mut [PanelRow],
    );
}

/// Runs `$tile` with the constant `N` set to `$len`, which is one of the numbers given. A tile's size must be known for
/// its sums to stay in registers.
macro_rules! for_rows {
    ($len:expr, [$($n:literal),*], $most:literal, $tile:expr) => {
        match $len {
            $($n => { const N: usize = $n; $tile })*
            _ => { const N: usize = $most; $tile }
        }
    };
}
pub(super) use for_rows;

/// Value for a single group of all inputs.
pub(super) const NO_GROUPS: usize = usize::MAX;

/// Cuts `rows` rows into blocks of nearly equal size, at most `most`: a block of one row costs almost as much as a full
/// one.
pub(super) fn blocks(rows: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = rows.div_ceil(most);
    // One block is the usual case, and a division takes as long as a few rows of a product.
    let (len, longer) = if count <= 1 { (rows, 0) } else { (rows / count, rows % count) };
    (0..count).map(move |i| (i * len + i.min(longer), len + usize::from(i < longer)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::isa::Isa;
    use crate::cpu::kept::Kept;
    use crate::cpu::linear::{Dense, Linear, Packed};
    use crate::cpu::vectors::Vectors;
    use crate::cpu::{bf16, f32, int8};

    fn values(count: usize, seed: usize) -> Vec<f32> {
        (0..count).map(|i| (((i + seed) * 7_919) % 1_009) as f32 / 504.5 - 1.0).collect()
    }

    /// Keeps rows for `linear`.
    fn keep<K: Kernel>(kernel: K, rows: &[f32], linear: &Linear) -> Kept<K::Value> {
        let mut kept = Kept::default();
        let inputs = linear.inputs();
        let rows = Blocks::of_rows(rows, inputs);
        kernel.keep(rows, kept.write(0..rows.rows, 0..inputs, linear));
        kept
    }

    /// Multiplies rows in blocks of every size by a layer of odd sizes, and compares with plain sums.
    fn check<K: Kernel>(kernel: K, tolerance: f32) {
        let inputs = 300;
        let outputs = 130;
        let rows = 30;
        let dense =
            Dense { weights: values(inputs * outputs, 3), bias: values(outputs, 5), inputs };
        let mut packed = Packed::<K>::default();
        let linear = packed.pack(&dense, K::GROUP);
        let padded = linear.inputs();
        let mut input = vec![0.0; rows * padded];
        for (r, row) in input.chunks_exact_mut(padded).enumerate() {
            row[..inputs].copy_from_slice(&values(inputs, 11 * r));
        }
        let mut kept = keep(kernel, &input, &linear);
        for count in 1..=rows {
            let rows = kept.read(count, &linear);
            for panel in 0..linear.panels() {
                let mut out = vec![[f32::NAN; PANEL]; count];
                kernel.multiply(rows, packed.panel(&linear, panel), &mut out);
                for (r, c) in (0..count).flat_map(|r| (0..PANEL).map(move |c| (r, c))) {
                    let output = panel * PANEL + c;
                    let want = if output < outputs {
                        let row = input[r * padded..].iter().zip(&dense.weights[output * inputs..]);
                        row.take(inputs).map(|(x, w)| x * w).sum::<f32>() + dense.bias[output]
                    } else {
                        0.0
                    };
                    let error = (out[r][c] - want).abs();
                    assert!(
                        error < tolerance,
                        "{:?}, {r}, {output}: off by {error}",
                        K::Format::NAME
                    );
                }
            }
        }
    }

    #[test]
    fn every_kernel_follows_the_definition() {
        let isa = Isa::detect().expect("no limit is set");
        check(Vectors::<f32::F32>::new(isa.arch), 1e-4);
        check(Vectors::<bf16::Bf16>::new(isa.arch), 0.1);
        check(int8::portable::Int8Portable(isa.arch), 0.2);
        #[cfg(target_arch = "x86_64")]
        {
            bf16::avx512::Bf16Avx512::new(isa).into_iter().for_each(|kernel| check(kernel, 0.2));
            int8::avx512::Int8Avx512::new(isa).into_iter().for_each(|kernel| check(kernel, 0.2));
            int8::avx2::Int8AvxVnni::new(isa).into_iter().for_each(|kernel| check(kernel, 0.2));
            int8::avx2::Int8Avx2::new(isa).into_iter().for_each(|kernel| check(kernel, 0.3));
        }
    }

    #[test]
    fn the_vnni_kernels_agree_with_the_portable_one() {
        let isa = Isa::detect().expect("no limit is set");
        let row = values(208, 1);
        let dense = values(208 * 64, 2);
        let dense = Dense { weights: dense, bias: vec![0.5; 64], inputs: 208 };
        let portable = int8::portable::Int8Portable(isa.arch);
        let want = one_row(portable, &row, &dense);
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(kernel) = int8::avx512::Int8Avx512::new(isa) {
                assert_close(&one_row(kernel, &row, &dense), &want);
            }
            if let Some(kernel) = int8::avx2::Int8AvxVnni::new(isa) {
                assert_close(&one_row(kernel, &row, &dense), &want);
            }
        }
    }

    fn one_row<K: Kernel>(kernel: K, row: &[f32], dense: &Dense) -> PanelRow {
        let mut packed = Packed::<K>::default();
        let linear = packed.pack(dense, K::GROUP);
        let mut kept = keep(kernel, row, &linear);
        let mut out = [[f32::NAN; PANEL]];
        kernel.multiply(kept.read(1, &linear), packed.panel(&linear, 0), &mut out);
        out[0]
    }

    /// Compares results whose integer sums are equal; only the fused operations of the last step differ.
    fn assert_close(got: &PanelRow, want: &PanelRow) {
        for (got, want) in got.iter().zip(want) {
            assert!((got - want).abs() <= want.abs() * 1e-6 + 1e-6, "{got}, not {want}");
        }
    }

    #[test]
    fn blocks_cover_all_rows_evenly() {
        for rows in 0..40 {
            let cut: Vec<_> = blocks(rows, 6).collect();
            let mut next = 0;
            for &(start, len) in &cut {
                assert_eq!(start, next);
                assert!((1..=6).contains(&len));
                next += len;
            }
            assert_eq!(next, rows);
            let lens = || cut.iter().map(|block| block.1);
            assert!(lens().max().unwrap_or(0) - lens().min().unwrap_or(0) <= 1);
        }
    }
}
