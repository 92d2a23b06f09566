//! Looking into candle's tensors from our own operations. Only contiguous f32 on the CPU is accepted.

use candle_core::{CpuStorage, Error, Layout, Result};

/// The tensor's values.
pub(super) fn floats<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    let CpuStorage::F32(values) = storage else {
        return Err(Error::Msg("expected an f32 tensor".into()));
    };
    let (start, end) = offsets(layout)?;
    Ok(&values[start..end])
}

/// The tensor's values, to be changed in place.
pub(super) fn floats_mut<'a>(
    storage: &'a mut CpuStorage,
    layout: &Layout,
) -> Result<&'a mut [f32]> {
    let CpuStorage::F32(values) = storage else {
        return Err(Error::Msg("expected an f32 tensor".into()));
    };
    let (start, end) = offsets(layout)?;
    Ok(&mut values[start..end])
}

/// The last dimension.
pub(super) fn width_of(layout: &Layout) -> Result<usize> {
    match layout.dims().last() {
        Some(&width) if width > 0 => Ok(width),
        _ => Err(Error::Msg("expected a tensor with columns".into())),
    }
}

fn offsets(layout: &Layout) -> Result<(usize, usize)> {
    layout.contiguous_offsets().ok_or_else(|| Error::Msg("expected a contiguous tensor".into()))
}
