//! Layout of a batch that the host computes before the GPU sees it: the upload, the number of blocks of each kernel,
//! and the sizes of the matrix products.

use std::ops::Range;

use crate::backend::{Batch, BatchLimits};

/// Queries of one text that one block of the attention kernel takes (`TILE_QUERIES` in `kernels/`).
const TILE_QUERIES: usize = 64;
/// Tokens that one block of a layer norm kernel takes (`NORM_WARPS`).
const NORM_TOKENS: usize = 4;
/// Words of a tile as the kernel reads it: the text's first token, the one after its last, the first query.
const TILE_WORDS: usize = 3;
/// Step in tokens or texts by which buffers grow, so that few batches cause growth.
const ROOM_STEP: usize = 1024;
/// Most tokens of a text of the smaller batches of the warm-up.
const WARM_UP_TEXT: usize = 128;

/// Batch as one upload of 32-bit words: token ids, positions, bounds, tiles, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    /// Number of tokens of all texts.
    pub(super) tokens: usize,
    /// Number of texts.
    pub(super) texts: usize,
    /// Blocks per head that the attention kernel gets.
    pub(super) tiles: usize,
}

impl Plan {
    pub(super) fn new(batch: &Batch) -> Self {
        let tiles = texts(batch).map(|text| text.len().div_ceil(TILE_QUERIES)).sum();
        Self { tokens: batch.tokens(), texts: batch.texts(), tiles }
    }

    /// Returns the range of the token ids, one word per token.
    pub(super) fn ids(&self) -> Range<usize> {
        0..self.tokens
    }

    /// Returns the range of each token's position in its text, one word per token.
    pub(super) fn positions(&self) -> Range<usize> {
        self.ids().end..self.ids().end + self.tokens
    }

    /// Returns the range of the texts' bounds, one word more than there are texts.
    pub(super) fn bounds(&self) -> Range<usize> {
        self.positions().end..self.positions().end + self.texts + 1
    }

    /// Returns the range of the tiles.
    pub(super) fn tiles(&self) -> Range<usize> {
        self.bounds().end..self.bounds().end + self.tiles * TILE_WORDS
    }

    /// Returns the number of words of the whole upload.
    pub(super) fn words(&self) -> usize {
        self.tiles().end
    }

    /// Returns the number of blocks of a layer norm kernel.
    pub(super) fn norm_blocks(&self) -> usize {
        self.tokens.div_ceil(NORM_TOKENS)
    }

    /// Writes the upload from front to back, because reading this memory may be slow. `into` has [`Self::words`] words.
    pub(super) fn write(&self, batch: &Batch, into: &mut [u32]) {
        let positions = texts(batch).flat_map(|text| 0..text.len());
        let bounds = batch.bounds().iter().copied();
        let tiles = texts(batch).flat_map(|text| {
            let begin = text.start;
            let end = text.end;
            text.step_by(TILE_QUERIES).flat_map(move |first| [begin, end, first])
        });
        let counts = positions.chain(bounds).chain(tiles).map(|count| count as u32);
        let words = batch.token_ids().iter().copied().chain(counts);
        into.iter_mut().zip(words).for_each(|(to, word)| *to = word);
    }
}

/// Returns batches to be run before the first real one, the largest first: one of the longest texts, then one of the
/// most texts, for which all memory is allocated, then smaller ones. Libraries choose their code for a size when they
/// first see it.
pub(super) fn warm_up(limits: BatchLimits) -> Vec<Batch> {
    let most = limits.tokens.max(limits.text_tokens);
    let longest = batch_of(most, limits.text_tokens);
    let shortest = batch_of(limits.tokens, 1);
    let smaller = [4_096, 512, 128, 16].into_iter().filter(|tokens| *tokens < most);
    let smaller = smaller.map(|tokens| batch_of(tokens, limits.text_tokens.min(WARM_UP_TEXT)));
    [longest, shortest].into_iter().chain(smaller).collect()
}

/// Returns a batch with `tokens` tokens in texts of at most `text_tokens`.
fn batch_of(tokens: usize, text_tokens: usize) -> Batch {
    let mut batch = Batch::default();
    let ids = vec![0; tokens];
    ids.chunks(text_tokens.max(1)).for_each(|text| batch.push(text));
    batch
}

fn texts(batch: &Batch) -> impl Iterator<Item = Range<usize>> {
    batch.bounds().windows(2).map(|text| text[0]..text[1])
}

/// Size of the batches that there is memory for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) tokens: usize,
    pub(super) texts: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self { tokens: ROOM_STEP, texts: ROOM_STEP }
    }
}

impl Room {
    /// Returns the room with which a batch fits too. It is this one if the batch fits.
    pub(super) fn with(self, plan: &Plan) -> Self {
        Self { tokens: grown(self.tokens, plan.tokens), texts: grown(self.texts, plan.texts) }
    }
}

fn grown(now: usize, needed: usize) -> usize {
    if needed <= now { now } else { needed.max(now * 2).next_multiple_of(ROOM_STEP) }
}

/// Product `[tokens, outputs] = [tokens, inputs] x [outputs, inputs] transposed`, in cuBLAS's terms. cuBLAS stores
/// matrices by columns and so sees ours transposed: the weights come first and are transposed back, and the result has
/// one column per token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Product {
    /// Rows of the result: outputs.
    pub(super) m: i32,
    /// Columns of the result: tokens.
    pub(super) n: i32,
    /// Length of the sums: inputs.
    pub(super) k: i32,
    /// Distance between two columns of the weights.
    pub(super) lda: i32,
    /// Distance between two columns of the tokens.
    pub(super) ldb: i32,
    /// Distance between two columns of the result.
    pub(super) ldc: i32,
}

impl Product {
    pub(super) fn new(tokens: usize, inputs: usize, outputs: usize) -> Self {
        let tokens = tokens as i32;
        let inputs = inputs as i32;
        let outputs = outputs as i32;
        Self { m: outputs, n: tokens, k: inputs, lda: inputs, ldb: inputs, ldc: outputs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(lengths: &[usize]) -> Batch {
        let mut batch = Batch::default();
        for (text, length) in lengths.iter().enumerate() {
            batch.push(&vec![text as u32 + 100; *length]);
        }
        batch
    }

    fn written(batch: &Batch) -> (Plan, Vec<u32>) {
        let plan = Plan::new(batch);
        let mut words = vec![u32::MAX; plan.words()];
        plan.write(batch, &mut words);
        (plan, words)
    }

    #[test]
    fn one_upload_holds_everything_in_its_place() {
        let (plan, words) = written(&batch(&[3, 1, 2]));
        assert_eq!(words[plan.ids()], [100, 100, 100, 101, 102, 102]);
        assert_eq!(words[plan.positions()], [0, 1, 2, 0, 0, 1]);
        assert_eq!(words[plan.bounds()], [0, 3, 4, 6]);
        assert_eq!(words[plan.tiles()], [0, 3, 0, 3, 4, 3, 4, 6, 4]);
        assert!(!words.contains(&u32::MAX), "every word is written");
    }

    #[test]
    fn long_texts_are_cut_into_tiles() {
        for (length, tiles) in [(1, 1), (64, 1), (65, 2), (128, 2), (512, 8)] {
            assert_eq!(Plan::new(&batch(&[length])).tiles, tiles, "{length} tokens");
        }
        let (plan, words) = written(&batch(&[2, 130]));
        assert_eq!(words[plan.tiles()], [0, 2, 0, 2, 132, 2, 2, 132, 66, 2, 132, 130]);
    }

    #[test]
    fn blocks_cover_all_tokens() {
        for (tokens, blocks) in [(1, 1), (4, 1), (5, 2), (256, 64)] {
            assert_eq!(Plan::new(&batch(&[tokens])).norm_blocks(), blocks);
        }
    }

    #[test]
    fn warming_up_goes_from_the_largest_batches_to_one_short_text() {
        let sizes = |tokens: usize, text_tokens: usize| -> Vec<(usize, usize)> {
            let batches = warm_up(BatchLimits { tokens, text_tokens });
            batches.iter().map(|batch| (batch.texts(), batch.tokens())).collect()
        };
        let smaller = [(32, 4_096), (4, 512), (1, 128), (1, 16)];
        assert_eq!(sizes(16_384, 256)[..2], [(64, 16_384), (16_384, 16_384)]);
        assert_eq!(sizes(16_384, 256)[2..], smaller);
        // A text may be longer than a batch of several.
        assert_eq!(sizes(100, 256), [(1, 256), (100, 100), (1, 128), (1, 16)]);
        assert_eq!(sizes(20, 10), [(2, 20), (20, 20), (2, 16)]);
        let longest = &warm_up(BatchLimits { tokens: 1_000, text_tokens: 300 })[0];
        assert_eq!(longest.bounds(), [0, 300, 600, 900, 1_000]);
    }

    #[test]
    fn after_the_warm_up_no_batch_needs_more_room() {
        for (tokens, text_tokens) in [(16_384, 256), (5_000, 512), (256, 8_192), (1, 1)] {
            let limits = BatchLimits { tokens, text_tokens };
            let warm_up = warm_up(limits);
            let grown = |room: Room, batch: &Batch| room.with(&Plan::new(batch));
            let warm = warm_up.iter().fold(Room::default(), grown);
            for length in [1, 2, 3, 14, 100, text_tokens].map(|length| length.min(text_tokens)) {
                let texts = (tokens / length).max(1);
                let largest = batch(&vec![length; texts]);
                assert_eq!(grown(warm, &largest), warm, "{limits:?}: {texts} texts of {length}");
            }
            // What is not needed is not taken, other than for a round number.
            assert!(warm.tokens < tokens.max(text_tokens) + ROOM_STEP, "{limits:?}: {warm:?}");
        }
    }

    #[test]
    fn room_grows_seldom_and_never_shrinks() {
        for (now, needed, room) in [
            (1_024, 14, 1_024),
            (1_024, 1_024, 1_024),
            (1_024, 1_025, 2_048),
            (1_024, 9_000, 9_216),
            (9_216, 3, 9_216),
        ] {
            assert_eq!(grown(now, needed), room, "{needed} after {now}");
        }
    }
}
