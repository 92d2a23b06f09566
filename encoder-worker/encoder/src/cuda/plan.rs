//! Layout of a batch that the host computes before the GPU sees it: the upload, the number of blocks of each kernel,
//! and the sizes of the matrix products.

use std::ops::Range;

use crate::backend::Batch;

/// Queries of one text that one block of the attention kernel takes (`TILE_QUERIES` in `kernels/`).
const TILE_QUERIES: usize = 64;
/// Tokens that one block of a layer norm kernel takes (`NORM_WARPS`).
const NORM_TOKENS: usize = 4;
/// Words of a tile as the kernel reads it: the text's first token, the one after its last, the first query.
const TILE_WORDS: usize = 3;
/// Step in tokens by which buffers grow, so that few batches cause growth.
const TOKEN_STEP: usize = 1024;

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

/// Returns batches of a few to some thousand tokens, to be run before the first real one: libraries load and choose
/// their code for a size when they first see it. Texts have at most `max_tokens`.
pub(super) fn warm_up(max_tokens: usize) -> Vec<Batch> {
    let of = |tokens: usize| {
        let length = max_tokens.min(128).min(tokens);
        let mut batch = Batch::default();
        (0..tokens.div_ceil(length)).for_each(|_| batch.push(&vec![0; length]));
        batch
    };
    [16, 128, 512, 4_096].map(of).into()
}

fn texts(batch: &Batch) -> impl Iterator<Item = Range<usize>> {
    batch.bounds().windows(2).map(|text| text[0]..text[1])
}

/// Returns the tokens to make room for when there is room for `now` and `needed` come.
pub(super) fn room_for(needed: usize, now: usize) -> usize {
    if needed <= now { now } else { needed.max(now * 2).next_multiple_of(TOKEN_STEP) }
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
    fn warming_up_goes_from_one_short_text_to_many() {
        let sizes = |max_tokens: usize| -> Vec<(usize, usize)> {
            warm_up(max_tokens).iter().map(|batch| (batch.texts(), batch.tokens())).collect()
        };
        assert_eq!(sizes(256), [(1, 16), (1, 128), (4, 512), (32, 4_096)]);
        assert_eq!(sizes(10)[0], (2, 20));
    }

    #[test]
    fn room_grows_seldom_and_never_shrinks() {
        assert_eq!(room_for(14, 0), 1024);
        assert_eq!(room_for(1024, 1024), 1024);
        assert_eq!(room_for(1025, 1024), 2048);
        assert_eq!(room_for(9000, 1024), 9216);
        assert_eq!(room_for(3, 9216), 9216);
    }
}
