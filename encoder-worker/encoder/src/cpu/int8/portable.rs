//! 8-bit products in plain Rust, vectorised as far as the compiler can.

use pulp::Arch;

use super::{GROUP, Int8, STEP, Step};
use crate::cpu::isa::vectorised;
use crate::cpu::kept::{Blocks, KeptRows};
use crate::cpu::kernel::{Columns, Kernel, PANEL, Panel, PanelRow, RowScale, Rows};

/// Kernel that runs on every CPU.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct Int8Portable(pub(in crate::cpu) Arch);

impl Kernel for Int8Portable {
    type Format = Int8;
    type Value = u8;
    const GROUP: usize = GROUP;

    fn keep(self, from: Blocks<'_>, to: KeptRows<'_, u8>) {
        super::keep(self.0, 255.0, from, to);
    }

    fn multiply(self, rows: Rows<'_, u8>, panel: Panel<'_, Step>, out: &mut [PanelRow]) {
        for (index, out) in out.iter_mut().enumerate() {
            let row = rows.row(index);
            let scales = &rows.scales[index * panel.groups.len()..];
            vectorised(
                self.0,
                #[inline(always)]
                || {
                    *out = *panel.bias;
                    let groups = row
                        .chunks(STEP * panel.group_steps)
                        .zip(panel.steps.chunks(panel.group_steps));
                    for (g, (row, steps)) in groups.enumerate() {
                        add(sums(row, steps), scales[g], &panel.groups[g], out);
                    }
                },
            );
        }
    }
}

#[inline(always)]
fn sums(row: &[u8], steps: &[Step]) -> [i32; PANEL] {
    let mut sums = [0_i32; PANEL];
    for (values, step) in row.chunks_exact(STEP).zip(steps) {
        for (sum, weights) in sums.iter_mut().zip(step.0.chunks_exact(STEP)) {
            for (&value, &weight) in values.iter().zip(weights) {
                *sum += i32::from(value) * i32::from(weight);
            }
        }
    }
    sums
}

#[inline(always)]
fn add(sums: [i32; PANEL], row: RowScale, columns: &Columns, out: &mut PanelRow) {
    for (i, (out, sum)) in out.iter_mut().zip(sums).enumerate() {
        *out += sum as f32 * row.scale * columns.scale[i] + row.zero * columns.sum[i];
    }
}
