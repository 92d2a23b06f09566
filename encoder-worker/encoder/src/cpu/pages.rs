//! Memory for weights, which are read from one end to the other for every text. On pages of 4 KiB, 10 MB of weights
//! take more pages than the processor's address cache (TLB) holds. Large pages save 7% of the time on one short text,
//! by measurement.

/// Copies `values` to large pages if the system provides them on request.
pub(super) fn on_large_pages<T: Copy>(values: &[T]) -> Vec<T> {
    let mut copy = Vec::with_capacity(values.len());
    #[cfg(target_os = "linux")]
    advise(copy.spare_capacity_mut());
    copy.extend_from_slice(values);
    copy
}

/// Requests large pages before the memory is touched. A refusal only costs speed.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "advice on memory has no safe form")]
fn advise<T>(memory: &mut [std::mem::MaybeUninit<T>]) {
    use rustix::mm::{Advice, madvise};
    let page = rustix::param::page_size();
    let bytes = memory.as_mut_ptr_range();
    let start = (bytes.start as usize).next_multiple_of(page);
    let len = (bytes.end as usize).saturating_sub(start) / page * page;
    let first = start - bytes.start as usize;
    if len > 0 {
        // SAFETY: these pages lie entirely in `memory`, and the advice does not change its content.
        let _ = unsafe {
            madvise(bytes.start.wrapping_byte_add(first).cast(), len, Advice::LinuxHugepage)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_a_copy() {
        for len in [0, 1, 1_000, 3 << 20] {
            let values: Vec<u32> = (0..len).collect();
            assert_eq!(on_large_pages(&values), values);
        }
    }
}
