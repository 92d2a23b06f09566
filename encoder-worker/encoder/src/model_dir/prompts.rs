//! Reader of `config_sentence_transformers.json`: the prefixes that a model requires for each kind of text. The file is
//! optional, and is no part of the fingerprint: it changes the texts, not the encoder.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;

use super::SmallFiles;
use crate::load_error::LoadError;

const PROMPTS_FILE: &str = "config_sentence_transformers.json";

/// Prefixes for texts; both are empty for models without any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompts {
    /// Prefix of a search query.
    pub query: String,
    /// Prefix of a text to be found.
    pub passage: String,
}

#[derive(Deserialize)]
struct PromptsFile {
    prompts: Option<HashMap<String, String>>,
}

impl Prompts {
    /// Reads the prefixes of a model directory.
    ///
    /// # Errors
    /// Names the file when it exists and can't be read.
    pub fn read(directory: &Path) -> Result<Self, LoadError> {
        let file: Option<PromptsFile> =
            SmallFiles::new(directory).parse_if_present(PROMPTS_FILE)?;
        let mut prompts = file.and_then(|file| file.prompts).unwrap_or_default();
        let mut first_of = |names: &[&str]| {
            names.iter().find_map(|name| prompts.remove(*name)).unwrap_or_default()
        };
        // Models name the second one differently.
        let query = first_of(&["query"]);
        let passage = first_of(&["passage", "document", "corpus"]);
        Ok(Self { query, passage })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(content: &str) -> Result<Prompts, LoadError> {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join(PROMPTS_FILE), content).expect("written");
        Prompts::read(directory.path())
    }

    #[test]
    fn each_name_in_use_is_known() {
        let want = Prompts { query: "query: ".into(), passage: "passage: ".into() };
        for name in ["passage", "document", "corpus"] {
            let file = format!(r#"{{"prompts": {{"query": "query: ", "{name}": "passage: "}}}}"#);
            assert_eq!(read(&file).expect(name), want);
        }
    }

    #[test]
    fn a_model_without_prompts_has_empty_ones() {
        let none = Prompts::default();
        assert_eq!(read(r#"{"__version__": {}}"#).expect("read"), none);
        assert_eq!(read(r#"{"prompts": null}"#).expect("read"), none);
        let directory = tempfile::tempdir().expect("a directory");
        assert_eq!(Prompts::read(directory.path()).expect("read"), none);
        let error = read("{").expect_err("damaged").to_string();
        assert!(error.contains(PROMPTS_FILE), "{error}");
    }
}
