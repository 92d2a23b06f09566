//! File with what is kept of requests' embeddings, so that they need not be computed at every start. It is a safetensors
//! file with, for each tool, the SHA-256 of its requests, their mean and the centroids of their kinds with 8 bits per
//! value, and the scales of these values. Its metadata hold the fingerprint of the encoder.

use std::collections::HashMap;
use std::sync::Arc;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView, serialize};

use super::kinds::KINDS_MAX;
use toolgate_store::ContentHash;

/// Name of the file, both in this repository and in a directory of packs.
pub const MEANS_FILE: &str = "means.safetensors";

const FINGERPRINT: &str = "fingerprint";
/// Tensor of hashes: `[tools, 32]`, u8.
const HASHES: &str = "hashes";
/// Tensor of the means' values: `[tools, dimensions]`, i8.
const VALUES: &str = "values";
/// Tensor of the means' scales: `[tools]`, f32.
const SCALES: &str = "scales";
/// Tensor of the kinds' values: `[tools, kinds, dimensions]`, i8. Missing kinds have a scale of 0.
const KINDS: &str = "kinds";
/// Tensor of the kinds' scales: `[tools, kinds]`, f32.
const KIND_SCALES: &str = "kind_scales";
/// Tensor of [`Gist::nearness`]: `[tools]`, f32.
const NEARNESS: &str = "nearness";

/// Embeddings that stand for one tool's requests.
#[derive(Debug, PartialEq)]
pub(super) struct Gist {
    /// Mean. It does not have unit length.
    pub(super) mean: Arc<[f32]>,
    /// Centroids of the kinds, one after another.
    pub(super) kinds: Arc<[f32]>,
    /// Mean overlap of everyday requests with the nearest kind.
    pub(super) nearness: f32,
}

/// Gists by requests.
pub(super) type Gists = HashMap<MeanKey, Arc<Gist>>;

/// Encoder's fingerprint, and hash of the requests.
pub(super) type MeanKey = (String, ContentHash);

impl Gist {
    /// Creates the gist of a mean without kinds.
    pub(super) fn of_mean(mean: Arc<[f32]>) -> Self {
        Self { mean, kinds: Arc::default(), nearness: 0.0 }
    }
}

/// Reads the gists from a file. A file of an earlier version, which has no kinds, has none.
///
/// # Errors
/// Description of the mistake in the file.
pub(super) fn read(content: &[u8]) -> Result<Gists, String> {
    let said = |error: safetensors::SafeTensorError| error.to_string();
    let (_, header) = SafeTensors::read_metadata(content).map_err(said)?;
    let fingerprint = header.metadata().as_ref().and_then(|all| all.get(FINGERPRINT));
    let fingerprint = fingerprint.ok_or_else(|| format!("its metadata lack {FINGERPRINT}"))?;
    let tensors = SafeTensors::deserialize(content).map_err(said)?;
    let tensor = |name: &str, dtype: Dtype| {
        let view = tensors.tensor(name).map_err(said)?;
        let is_right = view.dtype() == dtype;
        is_right.then_some(view).ok_or_else(|| format!("{name} is not of {dtype:?}"))
    };
    let hashes = tensor(HASHES, Dtype::U8)?;
    let values = tensor(VALUES, Dtype::I8)?;
    let scales = tensor(SCALES, Dtype::F32)?;
    let [tools, dimensions] = *values.shape() else {
        return Err(format!("{VALUES} is no matrix"));
    };
    if dimensions == 0 || hashes.shape() != [tools, size_of::<ContentHash>()] {
        return Err(format!("{HASHES} and {VALUES} don't fit each other"));
    }
    if scales.shape() != [tools] {
        return Err(format!("{SCALES} and {VALUES} don't fit each other"));
    }
    if tensors.tensor(KINDS).is_err() {
        return Ok(Gists::new());
    }
    let kinds = tensor(KINDS, Dtype::I8)?;
    let kind_scales = tensor(KIND_SCALES, Dtype::F32)?;
    let nearness = tensor(NEARNESS, Dtype::F32)?;
    let fits = kinds.shape() == [tools, KINDS_MAX, dimensions]
        && kind_scales.shape() == [tools, KINDS_MAX]
        && nearness.shape() == [tools];
    if !fits {
        return Err(format!("{KINDS}, {KIND_SCALES} and {NEARNESS} don't fit {VALUES}"));
    }
    let means = dequantized(&values, &scales, dimensions);
    let kinds: Vec<Option<Vec<f32>>> = dequantized(&kinds, &kind_scales, dimensions).collect();
    let kinds = kinds
        .chunks(KINDS_MAX)
        .map(|kinds| -> Arc<[f32]> { kinds.iter().flatten().flatten().copied().collect() });
    let gists = means.zip(kinds).zip(floats(&nearness)).map(|((mean, kinds), nearness)| {
        let mean = mean.unwrap_or_else(|| vec![0.0; dimensions]).into();
        Arc::new(Gist { mean, kinds, nearness })
    });
    let hashes = hashes.data().as_chunks::<{ size_of::<ContentHash>() }>().0;
    let keys = hashes.iter().map(|hash| (fingerprint.clone(), *hash));
    Ok(keys.zip(gists).collect())
}

/// Returns the rows of a tensor of values; `None` for one whose scale is 0.
fn dequantized<'a>(
    values: &TensorView<'a>,
    scales: &TensorView<'a>,
    dimensions: usize,
) -> impl Iterator<Item = Option<Vec<f32>>> {
    let rows = values.data().chunks_exact(dimensions).zip(floats(scales));
    rows.map(|(row, scale)| {
        let values = || row.iter().map(|value| f32::from(value.cast_signed()) * scale).collect();
        (scale > 0.0).then(values)
    })
}

fn floats<'a>(tensor: &TensorView<'a>) -> impl Iterator<Item = f32> + use<'a> {
    tensor.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes))
}

/// Rows with 8 bits per value.
#[derive(Default)]
struct Quantized {
    values: Vec<u8>,
    scales: Vec<u8>,
}

impl Quantized {
    fn push(&mut self, row: &[f32]) {
        let most = row.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
        let scale = if most > 0.0 { most / f32::from(i8::MAX) } else { 1.0 };
        self.values.extend(row.iter().map(|value| ((value / scale).round() as i8).cast_unsigned()));
        self.scales.extend(scale.to_le_bytes());
    }

    /// Adds a row that is missing.
    fn push_none(&mut self, dimensions: usize) {
        self.values.resize(self.values.len() + dimensions, 0);
        self.scales.extend(0.0_f32.to_le_bytes());
    }
}

/// Writes a file with the gists that one encoder made.
///
/// # Errors
/// There is no gist of this encoder, or their vectors differ in length.
pub(super) fn write(fingerprint: &str, gists: &Gists) -> Result<Vec<u8>, String> {
    let mut rows: Vec<(&ContentHash, &Arc<Gist>)> = gists
        .iter()
        .filter(|((of, _), _)| of == fingerprint)
        .map(|((_, hash), gist)| (hash, gist))
        .collect();
    rows.sort_by_key(|(hash, _)| **hash);
    let dimensions =
        rows.first().map(|(_, gist)| gist.mean.len()).ok_or("there is nothing to write")?;
    let fits = |gist: &Gist| {
        gist.mean.len() == dimensions
            && (gist.kinds.is_empty() || gist.kinds.len().is_multiple_of(dimensions))
            && gist.kinds.len() <= KINDS_MAX * dimensions
    };
    if dimensions == 0 || !rows.iter().all(|(_, gist)| fits(gist)) {
        return Err("the encoder's answers differ in length".into());
    }
    let mut hashes = Vec::new();
    let mut means = Quantized::default();
    let mut kinds = Quantized::default();
    let mut nearness = Vec::new();
    for (hash, gist) in &rows {
        hashes.extend_from_slice(*hash);
        means.push(&gist.mean);
        let known = gist.kinds.chunks_exact(dimensions);
        let missing = KINDS_MAX - known.len();
        known.for_each(|kind| kinds.push(kind));
        (0..missing).for_each(|_| kinds.push_none(dimensions));
        nearness.extend(gist.nearness.to_le_bytes());
    }
    let view = |dtype, shape: &[usize], data| TensorView::new(dtype, shape.to_vec(), data);
    let count = rows.len();
    let views = [
        (HASHES, view(Dtype::U8, &[count, size_of::<ContentHash>()], &hashes)),
        (VALUES, view(Dtype::I8, &[count, dimensions], &means.values)),
        (SCALES, view(Dtype::F32, &[count], &means.scales)),
        (KINDS, view(Dtype::I8, &[count, KINDS_MAX, dimensions], &kinds.values)),
        (KIND_SCALES, view(Dtype::F32, &[count, KINDS_MAX], &kinds.scales)),
        (NEARNESS, view(Dtype::F32, &[count], &nearness)),
    ];
    let mut tensors = Vec::new();
    for (name, view) in views {
        tensors.push((name, view.map_err(|error| error.to_string())?));
    }
    let metadata = HashMap::from([(FINGERPRINT.to_owned(), fingerprint.to_owned())]);
    serialize(tensors, Some(metadata)).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(fingerprint: &str, byte: u8) -> MeanKey {
        (fingerprint.into(), [byte; 32])
    }

    fn gist(mean: &[f32], kinds: &[f32], nearness: f32) -> Arc<Gist> {
        Arc::new(Gist { mean: mean.into(), kinds: kinds.into(), nearness })
    }

    #[test]
    fn what_was_written_is_read() {
        let gists = Gists::from([
            (key("a", 1), gist(&[0.5, -0.25, 0.0], &[0.6, 0.8, 0.0, 0.0, 0.0, 1.0], 0.25)),
            (key("a", 2), gist(&[0.0, 0.0, 0.0], &[], 0.0)),
            (key("b", 1), gist(&[1.0], &[], 0.0)),
        ]);
        let file = write("a", &gists).expect("written");
        let read = read(&file).expect("read");
        assert_eq!(read.len(), 2, "the other encoder's is not of this file");
        let is_close = |a: &[f32], b: &[f32]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 0.5 / 127.0)
        };
        for (key, read) in read {
            let wrote = &gists[&key];
            assert!(is_close(&read.mean, &wrote.mean), "{read:?}");
            assert!(is_close(&read.kinds, &wrote.kinds), "{read:?}");
            assert!((read.nearness - wrote.nearness).abs() < 1e-6);
        }
        assert!(write("c", &gists).expect_err("none").contains("nothing to write"));
        let uneven =
            |other| Gists::from([(key("a", 1), gist(&[0.5], &[], 0.0)), (key("a", 2), other)]);
        for other in [gist(&[], &[], 0.0), gist(&[0.5], &[1.0; 4], 0.0)] {
            assert!(write("a", &uneven(other)).expect_err("uneven").contains("differ in length"));
        }
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        let refused = |tensors: &[(&'static str, Dtype, &[usize], &[u8])], said: Option<&str>| {
            let metadata = said.map(|said| HashMap::from([(FINGERPRINT.into(), said.to_owned())]));
            let views = tensors.iter().map(|(name, dtype, shape, data)| {
                (*name, TensorView::new(*dtype, shape.to_vec(), data).expect("a tensor"))
            });
            read(&serialize(views, metadata).expect("a file")).expect_err("refused")
        };
        let hashes = (HASHES, Dtype::U8, &[1, 32][..], &[0; 32][..]);
        let scales = (SCALES, Dtype::F32, &[1][..], &[0; 4][..]);
        let values = (VALUES, Dtype::I8, &[1, 2][..], &[0; 2][..]);
        assert!(read(b"none").is_err());
        assert!(refused(&[hashes, scales, values], None).contains(FINGERPRINT));
        assert!(refused(&[hashes, scales], Some("a")).contains(VALUES));
        let flat = (VALUES, Dtype::I8, &[2][..], &[0; 2][..]);
        assert!(refused(&[hashes, scales, flat], Some("a")).contains("no matrix"));
        let two = (VALUES, Dtype::I8, &[2, 1][..], &[0; 2][..]);
        assert!(refused(&[hashes, scales, two], Some("a")).contains("don't fit"));
        let more = (SCALES, Dtype::F32, &[2][..], &[0; 8][..]);
        assert!(refused(&[hashes, more, values], Some("a")).contains("don't fit"));
        let wide = (VALUES, Dtype::U8, &[1, 2][..], &[0; 2][..]);
        assert!(refused(&[hashes, scales, wide], Some("a")).contains("is not of I8"));
        let kinds = (KINDS, Dtype::I8, &[1, 1, 2][..], &[0; 2][..]);
        let kind_scales = (KIND_SCALES, Dtype::F32, &[1, 1][..], &[0; 4][..]);
        let nearness = (NEARNESS, Dtype::F32, &[1][..], &[0; 4][..]);
        let all = [hashes, scales, values, kinds, kind_scales, nearness];
        assert!(refused(&all[..4], Some("a")).contains(KIND_SCALES));
        assert!(refused(&all, Some("a")).contains("don't fit"), "of one kind a tool");
    }

    #[test]
    fn a_file_without_kinds_says_nothing() {
        let views = [
            (HASHES, TensorView::new(Dtype::U8, vec![1, 32], &[0; 32]).expect("a tensor")),
            (SCALES, TensorView::new(Dtype::F32, vec![1], &[0; 4]).expect("a tensor")),
            (VALUES, TensorView::new(Dtype::I8, vec![1, 2], &[0; 2]).expect("a tensor")),
        ];
        let metadata = HashMap::from([(FINGERPRINT.to_owned(), "a".to_owned())]);
        let file = serialize(views, Some(metadata)).expect("a file");
        assert!(read(&file).expect("read").is_empty(), "its requests are embedded anew");
    }
}
