//! File with the means of requests' embeddings, so that they need not be computed at every start. It is a safetensors
//! file with, for each tool, the SHA-256 of its requests, the mean with 8 bits per value, and the scale of these
//! values. Its metadata hold the fingerprint of the encoder.

use std::collections::HashMap;
use std::sync::Arc;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView, serialize};

use toolgate_store::ContentHash;

/// Name of the file, both in this repository and in a directory of packs.
pub const MEANS_FILE: &str = "means.safetensors";

const FINGERPRINT: &str = "fingerprint";
/// Tensor of hashes: `[tools, 32]`, u8.
const HASHES: &str = "hashes";
/// Tensor of values: `[tools, dimensions]`, i8.
const VALUES: &str = "values";
/// Tensor of scales: `[tools]`, f32.
const SCALES: &str = "scales";

/// Mean of embeddings. It does not have unit length.
pub(super) type Mean = Arc<[f32]>;

/// Encoder's fingerprint, and hash of the requests.
pub(super) type MeanKey = (String, ContentHash);

/// Reads the means from a file.
///
/// # Errors
/// Description of the mistake in the file.
pub(super) fn read(content: &[u8]) -> Result<HashMap<MeanKey, Mean>, String> {
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
    let hashes = hashes.data().as_chunks::<{ size_of::<ContentHash>() }>().0;
    let scales = scales.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    let rows = values.data().chunks_exact(dimensions).zip(scales);
    let mean = |(row, scale): (&[u8], f32)| -> Mean {
        row.iter().map(|value| f32::from(value.cast_signed()) * scale).collect()
    };
    let key = |hash: &ContentHash| (fingerprint.clone(), *hash);
    Ok(hashes.iter().map(key).zip(rows.map(mean)).collect())
}

/// Writes a file with the means that one encoder made.
///
/// # Errors
/// There is no mean of this encoder, or the means differ in length.
pub(super) fn write(fingerprint: &str, means: &HashMap<MeanKey, Mean>) -> Result<Vec<u8>, String> {
    let mut rows: Vec<(&ContentHash, &Mean)> = means
        .iter()
        .filter(|((of, _), _)| of == fingerprint)
        .map(|((_, hash), m)| (hash, m))
        .collect();
    rows.sort_by_key(|(hash, _)| **hash);
    let dimensions = rows.first().map(|(_, mean)| mean.len()).ok_or("there is nothing to write")?;
    if rows.iter().any(|(_, mean)| mean.len() != dimensions) {
        return Err("the encoder's answers differ in length".into());
    }
    let mut hashes = Vec::new();
    let mut values = Vec::new();
    let mut scales = Vec::new();
    for (hash, mean) in &rows {
        let most = mean.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
        let scale = if most > 0.0 { most / f32::from(i8::MAX) } else { 1.0 };
        hashes.extend_from_slice(*hash);
        values.extend(mean.iter().map(|value| ((value / scale).round() as i8).cast_unsigned()));
        scales.extend(scale.to_le_bytes());
    }
    let view = |dtype, shape: &[usize], data| TensorView::new(dtype, shape.to_vec(), data);
    let count = rows.len();
    let views = [
        (HASHES, view(Dtype::U8, &[count, size_of::<ContentHash>()], &hashes)),
        (VALUES, view(Dtype::I8, &[count, dimensions], &values)),
        (SCALES, view(Dtype::F32, &[count], &scales)),
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

    #[test]
    fn what_was_written_is_read() {
        let means = HashMap::from([
            (key("a", 1), Arc::from([0.5, -0.25, 0.0])),
            (key("a", 2), Arc::from([0.0, 0.0, 0.0])),
            (key("b", 1), Arc::from([1.0])),
        ]);
        let file = write("a", &means).expect("written");
        let read = read(&file).expect("read");
        assert_eq!(read.len(), 2, "the other encoder's is not of this file");
        for (key, mean) in read {
            let close = mean.iter().zip(&*means[&key]).all(|(a, b)| (a - b).abs() < 0.5 / 127.0);
            assert!(close, "{mean:?}");
        }
        assert!(write("c", &means).expect_err("none").contains("nothing to write"));
        let uneven = HashMap::from([(key("a", 1), Arc::from([0.5])), (key("a", 2), Arc::from([]))]);
        assert!(write("a", &uneven).expect_err("uneven").contains("differ in length"));
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
    }
}
