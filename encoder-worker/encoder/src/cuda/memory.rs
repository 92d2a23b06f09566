//! Memory that successive batches share: on the GPU, and pinned on the host for uploads and downloads. It grows when a
//! batch needs more. The largest batches that there are run before the first real one, which then allocates nothing.

use std::sync::Arc;

use cudarc::driver::sys::CU_MEMHOSTALLOC_WRITECOMBINED;
use cudarc::driver::{
    CudaSlice, CudaStream, DeviceRepr, DriverError, PinnedHostSlice, ValidAsZeroBits,
};

use super::element::Element;
use super::forward::Slot;
use super::plan::{Plan, Room};
use crate::backend::Batch;

/// All buffers of one encoder. Each user waits for the stream before the next batch.
pub(super) struct Memory<T> {
    stream: Arc<CudaStream>,
    hidden: usize,
    wide: usize,
    room: Room,
    /// Buffers, indexed by [`Slot`].
    pub(super) slots: [CudaSlice<T>; 5],
    /// Uploaded batch, in the layout of [`Plan`].
    pub(super) upload: CudaSlice<u32>,
    upload_host: PinnedHostSlice<u32>,
    /// Result: `[texts, hidden]`.
    pub(super) result: CudaSlice<f32>,
    result_host: PinnedHostSlice<f32>,
}

impl<T: Element> Memory<T> {
    pub(super) fn new(
        stream: &Arc<CudaStream>,
        hidden: usize,
        wide: usize,
    ) -> Result<Self, DriverError> {
        let room = Room::default();
        let Room { tokens, texts } = room;
        Ok(Self {
            stream: Arc::clone(stream),
            hidden,
            wide,
            room,
            slots: slots(stream, tokens, hidden, wide)?,
            upload: stream.alloc_zeros(upload_words(tokens))?,
            upload_host: pinned(stream, upload_words(tokens), CU_MEMHOSTALLOC_WRITECOMBINED)?,
            result: stream.alloc_zeros(texts * hidden)?,
            result_host: pinned(stream, texts * hidden, 0)?,
        })
    }

    /// Makes room and uploads the batch.
    pub(super) fn send(&mut self, plan: &Plan, batch: &Batch) -> Result<(), DriverError> {
        self.make_room(plan)?;
        let words = &mut self.upload_host.as_mut_slice()?[..plan.words()];
        plan.write(batch, words);
        self.stream.memcpy_htod(words, &mut self.upload)
    }

    /// Waits for the batch and downloads its result.
    pub(super) fn receive(&mut self, texts: usize) -> Result<Vec<Vec<f32>>, DriverError> {
        let count = texts * self.hidden;
        let host = &mut self.result_host.as_mut_slice()?[..count];
        self.stream.memcpy_dtoh(&self.result.slice(..count), host)?;
        self.stream.synchronize()?;
        Ok(host.chunks_exact(self.hidden).map(<[f32]>::to_vec).collect())
    }

    /// Waits until nothing uses the buffers.
    pub(super) fn settle(&self) -> Result<(), DriverError> {
        self.stream.synchronize()
    }

    pub(super) fn room(&self) -> Room {
        self.room
    }

    fn make_room(&mut self, plan: &Plan) -> Result<(), DriverError> {
        let Room { tokens, texts } = self.room.with(plan);
        if tokens > self.room.tokens {
            self.slots = slots(&self.stream, tokens, self.hidden, self.wide)?;
            self.upload = self.stream.alloc_zeros(upload_words(tokens))?;
            self.upload_host =
                pinned(&self.stream, upload_words(tokens), CU_MEMHOSTALLOC_WRITECOMBINED)?;
            self.room.tokens = tokens;
        }
        if texts > self.room.texts {
            self.result = self.stream.alloc_zeros(texts * self.hidden)?;
            self.result_host = pinned(&self.stream, texts * self.hidden, 0)?;
            self.room.texts = texts;
        }
        Ok(())
    }
}

/// Returns the most words that a batch of `tokens` takes, which is when every token is a text.
fn upload_words(tokens: usize) -> usize {
    Plan { tokens, texts: tokens, tiles: tokens }.words()
}

fn slots<T: Element>(
    stream: &Arc<CudaStream>,
    tokens: usize,
    hidden: usize,
    wide: usize,
) -> Result<[CudaSlice<T>; 5], DriverError> {
    let [a, b, c, d, e] =
        Slot::ALL.map(|slot| stream.alloc_zeros::<T>(tokens * slot.width(hidden, wide)));
    Ok([a?, b?, c?, d?, e?])
}

#[allow(unsafe_code, reason = "pinned memory comes without contents")]
fn pinned<T: DeviceRepr + ValidAsZeroBits>(
    stream: &Arc<CudaStream>,
    count: usize,
    flags: u32,
) -> Result<PinnedHostSlice<T>, DriverError> {
    // SAFETY: any bits are a value of `T`, and all values are written before they are read: the upload by
    // `Plan::write`, the result by the copy from the GPU.
    unsafe { stream.context().alloc_pinned_with_flags(count, flags) }
}
