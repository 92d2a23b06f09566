//! Conversion of text to token ids. Truncation at the model's limit is always reported.

mod ascii_word_piece;

use thiserror::Error;
use tokenizers::{Tokenizer, TruncationParams};

use crate::load_error::LoadError;
use crate::model_dir::{ModelDir, TOKENIZER_FILE};
use ascii_word_piece::AsciiWordPiece;

/// Token ids of one text, as the model will see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tokens {
    pub(crate) ids: Vec<u32>,
    pub(crate) truncated: bool,
}

/// Error for a text that the tokenizer could not handle.
#[derive(Debug, Clone, Error)]
#[error("{0}")]
pub(crate) struct TokenizeError(String);

/// Tokenizer of the model, with the model's limit.
pub(crate) struct TextTokenizer {
    tokenizer: Tokenizer,
    /// Fast path for the texts that it supports.
    ascii: Option<AsciiWordPiece>,
    max_tokens: usize,
    lowercase: bool,
}

impl TextTokenizer {
    pub(crate) fn load(model: &ModelDir) -> Result<Self, LoadError> {
        let refuse =
            |cause: String| LoadError::Tokenizer { path: model.file(TOKENIZER_FILE), cause };
        let mut tokenizer = Tokenizer::from_bytes(model.tokenizer_json())
            .map_err(|error| refuse(error.to_string()))?;
        // The file's own padding and limit are settings of its exporter.
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None).map_err(|error| refuse(error.to_string()))?;
        let added = special_tokens(&tokenizer).map_err(|error| refuse(error.to_string()))?;
        // The special tokens come from the post-processor, which may use ids outside every vocabulary.
        let ids = tokenizer.get_vocab(true).into_values().chain(added.iter().copied());
        let largest = ids.max().unwrap_or_default();
        let rows = model.bert.vocab_size;
        if largest as usize >= rows {
            let cause =
                format!("has the token id {largest}, but config.json has vocab_size {rows}");
            return Err(refuse(cause));
        }
        let special = added.len();
        if special >= model.max_tokens {
            return Err(refuse(format!(
                "adds {special} special tokens, which leaves none of the model's limit of {}",
                model.max_tokens
            )));
        }
        tokenizer
            .with_truncation(Some(TruncationParams {
                max_length: model.max_tokens,
                ..TruncationParams::default()
            }))
            .map_err(|error| refuse(error.to_string()))?;
        let ascii = AsciiWordPiece::read(model.tokenizer_json()).filter(|_| special == 2);
        Ok(Self { tokenizer, ascii, max_tokens: model.max_tokens, lowercase: model.lowercase })
    }

    pub(crate) fn encode(&self, text: &str) -> Result<Tokens, TokenizeError> {
        let ascii = self.ascii.as_ref().filter(|_| !self.lowercase);
        match ascii.and_then(|ascii| ascii.encode(text, self.max_tokens)) {
            Some((ids, truncated)) => Ok(Tokens { ids, truncated }),
            None => self.encode_any(text),
        }
    }

    /// Tokenizes with the tokenizers crate.
    fn encode_any(&self, text: &str) -> Result<Tokens, TokenizeError> {
        let encoding = if self.lowercase {
            self.tokenizer.encode_fast(text.to_lowercase(), true)
        } else {
            self.tokenizer.encode_fast(text, true)
        };
        let encoding = encoding.map_err(|error| TokenizeError(error.to_string()))?;
        if encoding.get_ids().is_empty() {
            return Err(TokenizeError("the text has no tokens".into()));
        }
        Ok(Tokens {
            truncated: !encoding.get_overflowing().is_empty(),
            ids: encoding.get_ids().to_vec(),
        })
    }
}

/// Returns the ids that are added to every text; the tokenizer must be without padding and limit.
fn special_tokens(tokenizer: &Tokenizer) -> tokenizers::Result<Vec<u32>> {
    Ok(tokenizer.encode_fast("", true)?.get_ids().to_vec())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tiny_model::TinyModel;
    use toolgate_model_hub::{Silent, Source, default_model_dir, fetch};

    fn real() -> TextTokenizer {
        let dir = default_model_dir().expect("a home directory");
        fetch(&dir, &Source::online(), &mut Silent).expect("the model can be fetched");
        TextTokenizer::load(&ModelDir::open(&dir).expect("it opens")).expect("it loads")
    }

    /// Returns texts of words, word parts, marks, white space and control characters, from a fixed seed.
    fn texts() -> impl Iterator<Item = String> {
        const PARTS: [&str; 24] = [
            "issue",
            "Repositories",
            "un",
            "believ",
            "ably",
            " ",
            "  ",
            "\t",
            "\n",
            ".",
            "'",
            "-",
            "--",
            "#",
            "42",
            "x",
            "Zq",
            "\u{7f}",
            "\0",
            "\u{1b}",
            "kubernetes",
            "_",
            "`",
            "AAAAAAAAAAAAAAAAAAAAAAAAA",
        ];
        let mut random = fastrand::Rng::with_seed(1);
        let mut draw = move |count: usize| random.usize(..count);
        (0..3_000).map(move |_| {
            let parts = if draw(20) == 0 { 700 } else { draw(30) };
            (0..parts).map(|_| PARTS[draw(PARTS.len())]).collect()
        })
    }

    #[test]
    fn the_quick_way_gives_what_the_crate_gives() {
        let tokenizer = real();
        let ascii = tokenizer.ascii.as_ref().expect("the model's tokenizer is BERT's");
        for text in texts() {
            let (ids, truncated) = ascii.encode(&text, tokenizer.max_tokens).expect("it is ASCII");
            let want = tokenizer.encode_any(&text).expect("it has tokens");
            assert_eq!(Tokens { ids, truncated }, want, "{text:?}");
        }
    }

    #[test]
    fn what_is_not_ascii_or_may_hold_an_added_token_takes_the_crate() {
        let tokenizer = real();
        let ascii = tokenizer.ascii.as_ref().expect("the model's tokenizer is BERT's");
        for text in ["caf\u{e9}", "a [MASK] b", "\u{4f60}\u{597d}"] {
            assert_eq!(ascii.encode(text, 256), None);
            assert!(tokenizer.encode(text).is_ok());
        }
    }

    /// Returns a multilingual tokenizer: BERT or XLM-R with unigram pieces over words that begin with a mark.
    fn unigram() -> (TinyModel, TextTokenizer) {
        let pieces = [
            ("<s>", 0.0),
            ("<pad>", 0.0),
            ("</s>", 0.0),
            ("<unk>", 0.0),
            ("\u{2581}", -2.0),
            ("\u{2581}hal", -3.0),
            ("lo", -3.0),
            ("\u{2581}hallo", -3.5),
            ("\u{4e16}", -4.0),
            ("\u{754c}", -4.0),
        ];
        let special = |token: &str, id: u32| json!({"id": token, "ids": [id], "tokens": [token]});
        let replace = |pattern: &str, content: &str| json!({"type": "Replace", "pattern": {"Regex": pattern}, "content": content});
        let model = TinyModel::new();
        model.change(
            "tokenizer.json",
            &json!({
                "normalizer": {"type": "Sequence", "normalizers": [
                    replace("[\\x{9}-\\x{a}\\x{200b}]", " "), {"type": "NFKC"}, replace(" {2,}", " "),
                ]},
                "pre_tokenizer": {"type": "Metaspace", "replacement": "\u{2581}",
                                  "prepend_scheme": "always"},
                "post_processor": {
                    "type": "TemplateProcessing",
                    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                               {"Sequence": {"id": "A", "type_id": 0}},
                               {"SpecialToken": {"id": "</s>", "type_id": 0}}],
                    "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                             {"Sequence": {"id": "B", "type_id": 0}}],
                    "special_tokens": {"<s>": special("<s>", 0), "</s>": special("</s>", 2)},
                },
                "model": {"type": "Unigram", "unk_id": 3, "vocab": pieces},
            }),
        );
        let tokenizer = TextTokenizer::load(&ModelDir::open(model.path()).expect("it opens"));
        (model, tokenizer.expect("it loads"))
    }

    #[test]
    fn a_multilingual_models_pieces_are_read() {
        let (_model, tokenizer) = unigram();
        assert!(tokenizer.ascii.is_none(), "the quick way is WordPiece's alone");
        for (text, ids) in [
            ("hallo", &[0, 7, 2][..]),
            ("hal lo", &[0, 5, 4, 6, 2]),
            ("\u{ff48}\u{ff41}\u{ff4c}lo \n\u{200b} hallo", &[0, 7, 7, 2]),
            ("\u{4e16}\u{754c}", &[0, 4, 8, 9, 2]),
            ("\u{1f980}\u{1f980}", &[0, 4, 3, 2]),
            ("", &[0, 2]),
        ] {
            let tokens = tokenizer.encode(text).expect("it has tokens");
            assert_eq!(tokens, Tokens { ids: ids.to_vec(), truncated: false }, "{text:?}");
        }
    }

    #[test]
    fn a_text_in_one_piece_ends_at_the_models_limit_too() {
        let (_model, tokenizer) = unigram();
        let text = "\u{4e16}\u{754c}".repeat(10_000);
        let tokens = tokenizer.encode(&text).expect("it has tokens");
        assert!(tokens.truncated);
        assert_eq!((tokens.ids.len(), tokens.ids[39]), (40, 2), "the end's token is kept");
    }
}
