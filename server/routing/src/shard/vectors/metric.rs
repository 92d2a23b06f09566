//! Distance function that usearch calls during a search: our kernel on byte codes. Without the numkong crate, usearch's
//! own is plain C++ for the oldest processors (100,000 rows: 81 s to build and 343 us a search in bf16, against 28 s
//! and 138 us here). This is the only unsafe code of the index.
#![allow(unsafe_code, reason = "usearch hands a custom metric two raw pointers")]

use super::codes;
use super::kernel::Kernel;

/// Row as the graph stores it: its codes, then the four bytes of its scale.
pub(super) struct CodedRow(Vec<i8>);

const SCALE_BYTES: usize = size_of::<f32>();

impl CodedRow {
    /// Returns the bytes of a coded row with this many dimensions.
    pub(super) fn bytes(dimensions: usize) -> usize {
        dimensions + SCALE_BYTES
    }

    pub(super) fn encode(row: &[f32]) -> Self {
        let mut bytes = Vec::with_capacity(Self::bytes(row.len()));
        let scale = codes::encode(row, &mut bytes);
        bytes.extend(scale.to_le_bytes().map(u8::cast_signed));
        Self(bytes)
    }

    pub(super) fn as_slice(&self) -> &[i8] {
        &self.0
    }
}

/// Makes `index` use the distance 1 - cosine. All its vectors must be coded rows of `dimensions`.
pub(super) fn install(index: &mut usearch::Index, dimensions: usize, kernel: Kernel) {
    let bytes = CodedRow::bytes(dimensions);
    index.change_metric::<i8>(Box::new(move |a, b| {
        // SAFETY: usearch passes either a vector it stores, which is as long as the index's
        // dimensions (`bytes`; `add` refuses any other length), or the query, whose length its
        // `search` checks against the same number. Both outlive this call and are not written to
        // while it runs; i8 needs no alignment.
        let (a, b) =
            unsafe { (std::slice::from_raw_parts(a, bytes), std::slice::from_raw_parts(b, bytes)) };
        distance(kernel, a, b)
    }));
}

fn distance(kernel: Kernel, a: &[i8], b: &[i8]) -> f32 {
    match (a.split_last_chunk::<SCALE_BYTES>(), b.split_last_chunk::<SCALE_BYTES>()) {
        (Some((a, a_scale)), Some((b, b_scale))) => {
            1.0 - kernel.code_dot(a, b) as f32 * scale(*a_scale) * scale(*b_scale)
        }
        _ => 1.0,
    }
}

fn scale(bytes: [i8; SCALE_BYTES]) -> f32 {
    f32::from_le_bytes(bytes.map(i8::cast_unsigned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::vectors::samples::Samples;

    #[test]
    fn the_distance_of_coded_rows_is_near_one_minus_their_cosine() {
        let rows = Samples::new(3, 96).clustered_rows(40, 4);
        for (a, b) in rows.chunks_exact(96).zip(rows.chunks_exact(96).skip(1)) {
            let cosine: f32 = a.iter().zip(b).map(|(a, b)| a * b).sum();
            let a = CodedRow::encode(a);
            let b = CodedRow::encode(b);
            let distance = distance(Kernel::detect(), a.as_slice(), b.as_slice());
            assert!((distance - (1.0 - cosine)).abs() < 0.01, "{distance} for {cosine}");
        }
    }
}
