//! File with what is kept of requests' embeddings, so that they need not be computed at every start. It is a safetensors
//! file with, for each tool, the SHA-256 of its requests, their mean and the centroids of their kinds with 8 bits per
//! value, and the scales of these values. It also holds the embeddings of the background requests. Its metadata hold the
//! fingerprint of the encoder.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
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
/// Tensor of the background requests' embeddings: `[texts, dimensions]`, f32. A level is cut from them, so they are whole.
const BACKGROUND: &str = "background";
/// Tensor of the SHA-256 of the background requests: `[32]`, u8.
const BACKGROUND_TEXTS: &str = "background_texts";

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

/// Embeddings of the background requests, by one encoder.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BackgroundRows {
    /// Hash of the texts.
    pub(super) texts: ContentHash,
    /// One vector a text.
    pub(super) vectors: Arc<Vec<Vec<f32>>>,
}

impl Gist {
    /// Creates the gist of a mean without kinds.
    pub(super) fn of_mean(mean: Arc<[f32]>) -> Self {
        Self { mean, kinds: Arc::default(), nearness: 0.0 }
    }
}

/// File of gists. They are made of its values when they are asked for: most servers use few of the packs.
#[derive(Debug)]
pub(super) struct MeansFile {
    content: Cow<'static, [u8]>,
    /// Fingerprint of the encoder that made the gists.
    pub(super) fingerprint: String,
    /// Background requests, if the file has them.
    pub(super) background: Option<BackgroundRows>,
    dimensions: usize,
    /// Places of the rows by the hashes of their requests.
    rows: HashMap<ContentHash, usize>,
    means: QuantizedRows,
    kinds: QuantizedRows,
    nearness: Range<usize>,
}

/// Where rows with 8 bits a value are in the file, and their scales.
#[derive(Debug, Default)]
struct QuantizedRows {
    values: Range<usize>,
    scales: Range<usize>,
}

impl MeansFile {
    /// Reads a file. One of an earlier version, which has no kinds, has no gists.
    ///
    /// # Errors
    /// Description of the mistake in the file.
    pub(super) fn read(content: impl Into<Cow<'static, [u8]>>) -> Result<Self, String> {
        let content = content.into();
        let said = |error: safetensors::SafeTensorError| error.to_string();
        let (_, header) = SafeTensors::read_metadata(&content).map_err(said)?;
        let metadata = header.metadata().as_ref();
        let fingerprint = metadata.and_then(|all| all.get(FINGERPRINT));
        let fingerprint = fingerprint.ok_or_else(|| format!("its metadata lack {FINGERPRINT}"))?;
        let tensors = SafeTensors::deserialize(&content).map_err(said)?;
        let parts = Parts { tensors: &tensors, content: &content };
        let hashes = parts.tensor(HASHES, Dtype::U8)?;
        let values = parts.tensor(VALUES, Dtype::I8)?;
        let scales = parts.tensor(SCALES, Dtype::F32)?;
        let [tools, dimensions] = *values.shape() else {
            return Err(format!("{VALUES} is no matrix"));
        };
        if dimensions == 0 || hashes.shape() != [tools, size_of::<ContentHash>()] {
            return Err(format!("{HASHES} and {VALUES} don't fit each other"));
        }
        if scales.shape() != [tools] {
            return Err(format!("{SCALES} and {VALUES} don't fit each other"));
        }
        let has_background = tensors.tensor(BACKGROUND).is_ok();
        let background = has_background.then(|| parts.background(dimensions)).transpose()?;
        let mut file = Self {
            fingerprint: fingerprint.clone(),
            background,
            dimensions,
            rows: HashMap::new(),
            means: QuantizedRows { values: parts.range(&values), scales: parts.range(&scales) },
            kinds: QuantizedRows::default(),
            nearness: 0..0,
            content: Cow::default(),
        };
        if tensors.tensor(KINDS).is_ok() {
            let kinds = parts.tensor(KINDS, Dtype::I8)?;
            let kind_scales = parts.tensor(KIND_SCALES, Dtype::F32)?;
            let nearness = parts.tensor(NEARNESS, Dtype::F32)?;
            let fits = kinds.shape() == [tools, KINDS_MAX, dimensions]
                && kind_scales.shape() == [tools, KINDS_MAX]
                && nearness.shape() == [tools];
            if !fits {
                return Err(format!("{KINDS}, {KIND_SCALES} and {NEARNESS} don't fit {VALUES}"));
            }
            let hashes = hashes.data().as_chunks::<{ size_of::<ContentHash>() }>().0;
            file.rows = hashes.iter().enumerate().map(|(row, hash)| (*hash, row)).collect();
            file.kinds =
                QuantizedRows { values: parts.range(&kinds), scales: parts.range(&kind_scales) };
            file.nearness = parts.range(&nearness);
        }
        file.content = content;
        Ok(file)
    }

    /// Returns true if the file has the gist of these requests.
    pub(super) fn has(&self, hash: &ContentHash) -> bool {
        self.rows.contains_key(hash)
    }

    /// Returns the gist of the requests with this hash.
    pub(super) fn gist(&self, hash: &ContentHash) -> Option<Gist> {
        let row = *self.rows.get(hash)?;
        let mean = self.dequantized(&self.means, row);
        let mean = mean.unwrap_or_else(|| vec![0.0; self.dimensions]).into();
        let kinds = (row * KINDS_MAX..(row + 1) * KINDS_MAX)
            .filter_map(|kind| self.dequantized(&self.kinds, kind))
            .flatten()
            .collect();
        let nearness = self.float(&self.nearness, row)?;
        Some(Gist { mean, kinds, nearness })
    }

    /// Returns the float in a row of a tensor that has one a row.
    fn float(&self, tensor: &Range<usize>, row: usize) -> Option<f32> {
        let rows = self.content[tensor.clone()].as_chunks::<4>().0;
        rows.get(row).map(|bytes| f32::from_le_bytes(*bytes))
    }

    /// Returns a row; `None` for one whose scale is 0.
    fn dequantized(&self, rows: &QuantizedRows, row: usize) -> Option<Vec<f32>> {
        let scale = self.float(&rows.scales, row)?;
        let values = &self.content[rows.values.clone()][row * self.dimensions..];
        let values = values[..self.dimensions].iter();
        (scale > 0.0).then(|| values.map(|value| f32::from(value.cast_signed()) * scale).collect())
    }
}

/// Tensors of a file, and the file.
struct Parts<'a> {
    tensors: &'a SafeTensors<'a>,
    content: &'a [u8],
}

impl<'a> Parts<'a> {
    fn tensor(&self, name: &str, dtype: Dtype) -> Result<TensorView<'a>, String> {
        let view = self.tensors.tensor(name).map_err(|error| error.to_string())?;
        let is_right = view.dtype() == dtype;
        is_right.then_some(view).ok_or_else(|| format!("{name} is not of {dtype:?}"))
    }

    /// Returns where in the file the tensor's values are.
    fn range(&self, tensor: &TensorView<'_>) -> Range<usize> {
        let start = tensor.data().as_ptr().addr() - self.content.as_ptr().addr();
        start..start + tensor.data().len()
    }

    fn background(&self, dimensions: usize) -> Result<BackgroundRows, String> {
        let vectors = self.tensor(BACKGROUND, Dtype::F32)?;
        if !matches!(*vectors.shape(), [_, width] if width == dimensions) {
            return Err(format!("{BACKGROUND} and {VALUES} don't fit each other"));
        }
        let texts = self.tensor(BACKGROUND_TEXTS, Dtype::U8)?;
        let texts = texts.data().try_into();
        let texts = texts.map_err(|_| format!("{BACKGROUND_TEXTS} is no hash"))?;
        let values: Vec<f32> = floats(vectors.data()).collect();
        let vectors = values.chunks_exact(dimensions).map(<[f32]>::to_vec).collect();
        Ok(BackgroundRows { texts, vectors: Arc::new(vectors) })
    }
}

fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> + use<'_> {
    bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes))
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
pub(super) fn write(
    fingerprint: &str,
    gists: &Gists,
    background: Option<&BackgroundRows>,
) -> Result<Vec<u8>, String> {
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
    let metadata = HashMap::from([(FINGERPRINT.to_owned(), fingerprint.to_owned())]);
    let vectors = background.map_or(&[][..], |background| &background.vectors);
    let bytes: Vec<u8> = vectors.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
    let mut views = Vec::from(views);
    if let Some(background) = background {
        if background.vectors.iter().any(|vector| vector.len() != dimensions) {
            return Err("the encoder's answers differ in length".into());
        }
        views.push((BACKGROUND, view(Dtype::F32, &[vectors.len(), dimensions], &bytes)));
        let hash = &background.texts;
        views.push((BACKGROUND_TEXTS, view(Dtype::U8, &[hash.len()], hash)));
    }
    let mut tensors = Vec::new();
    for (name, view) in views {
        tensors.push((name, view.map_err(|error| error.to_string())?));
    }
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
        let background = BackgroundRows {
            texts: [7; 32],
            vectors: Arc::new(vec![vec![0.1, 0.2, 0.3], vec![-0.4, 0.5, -0.6]]),
        };
        let file = write("a", &gists, Some(&background)).expect("written");
        let file = MeansFile::read(file).expect("read");
        assert_eq!((&*file.fingerprint, file.background.as_ref()), ("a", Some(&background)));
        assert_eq!(file.rows.len(), 2, "the other encoder's is not of this file");
        assert!(file.has(&[1; 32]) && !file.has(&[3; 32]) && file.gist(&[3; 32]).is_none());
        let is_close = |a: &[f32], b: &[f32]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 0.5 / 127.0)
        };
        for hash in [[1; 32], [2; 32]] {
            let read = file.gist(&hash).expect("a gist");
            let wrote = &gists[&("a".to_owned(), hash)];
            assert!(is_close(&read.mean, &wrote.mean), "{read:?}");
            assert!(is_close(&read.kinds, &wrote.kinds), "{read:?}");
            assert!((read.nearness - wrote.nearness).abs() < 1e-6);
        }
        let without = MeansFile::read(write("a", &gists, None).expect("written")).expect("read");
        assert_eq!((without.background.clone(), without.rows.len()), (None, 2));
        assert!(write("c", &gists, None).expect_err("none").contains("nothing to write"));
        let short = BackgroundRows { vectors: Arc::new(vec![vec![0.1]]), ..background };
        let error = write("a", &gists, Some(&short)).expect_err("uneven");
        assert!(error.contains("differ in length"));
        let uneven =
            |other| Gists::from([(key("a", 1), gist(&[0.5], &[], 0.0)), (key("a", 2), other)]);
        for other in [gist(&[], &[], 0.0), gist(&[0.5], &[1.0; 4], 0.0)] {
            let error = write("a", &uneven(other), None).expect_err("uneven");
            assert!(error.contains("differ in length"));
        }
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        let refused = |tensors: &[(&'static str, Dtype, &[usize], &[u8])], said: Option<&str>| {
            let metadata = said.map(|said| HashMap::from([(FINGERPRINT.into(), said.to_owned())]));
            let views = tensors.iter().map(|(name, dtype, shape, data)| {
                (*name, TensorView::new(*dtype, shape.to_vec(), data).expect("a tensor"))
            });
            MeansFile::read(serialize(views, metadata).expect("a file")).expect_err("refused")
        };
        let hashes = (HASHES, Dtype::U8, &[1, 32][..], &[0; 32][..]);
        let scales = (SCALES, Dtype::F32, &[1][..], &[0; 4][..]);
        let values = (VALUES, Dtype::I8, &[1, 2][..], &[0; 2][..]);
        assert!(MeansFile::read(&b"none"[..]).is_err());
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
    fn background_requests_that_do_not_fit_are_refused() {
        let read = |hash: &[u8], shape: &[usize]| {
            let data = vec![0; 4 * shape.iter().product::<usize>()];
            let view = |dtype, shape: &[usize], data| TensorView::new(dtype, shape.to_vec(), data);
            let views = [
                (HASHES, view(Dtype::U8, &[1, 32], &[0; 32])),
                (SCALES, view(Dtype::F32, &[1], &[0; 4])),
                (VALUES, view(Dtype::I8, &[1, 2], &[0; 2])),
                (BACKGROUND, view(Dtype::F32, shape, &data)),
                (BACKGROUND_TEXTS, view(Dtype::U8, &[hash.len()], hash)),
            ];
            let views = views.map(|(name, view)| (name, view.expect("a tensor")));
            let metadata = HashMap::from([(FINGERPRINT.to_owned(), "a".to_owned())]);
            let file = serialize(views, Some(metadata)).expect("a file");
            MeansFile::read(file).map(|file| file.background.map(|rows| rows.vectors.len()))
        };
        assert_eq!(read(&[7; 32], &[3, 2]), Ok(Some(3)));
        assert!(read(&[7; 32], &[3, 1]).expect_err("narrow").contains("don't fit"));
        assert!(read(&[7; 31], &[3, 2]).expect_err("short").contains("is no hash"));
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
        let file = MeansFile::read(file).expect("read");
        assert!(!file.has(&[0; 32]), "its requests are embedded anew");
    }
}
