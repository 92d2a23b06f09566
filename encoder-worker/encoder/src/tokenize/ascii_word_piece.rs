//! WordPiece for ASCII texts, ten times as fast as the tokenizers crate and with the same result. Intents are mostly
//! ASCII. Any text that this code may not handle goes to the crate.
//!
//! It implements BERT's normaliser (removes control characters, turns white space into a space, lower-cases letters),
//! its pre-tokenizer (splits at white space; a punctuation mark is a word of its own), and WordPiece's longest match
//! first.

use std::collections::HashMap;

use serde::Deserialize;

/// Vocabulary with the few settings that matter for ASCII.
pub(super) struct AsciiWordPiece {
    /// Pieces that begin a word.
    heads: HashMap<Box<[u8]>, u32>,
    /// Pieces that continue a word, without their prefix.
    tails: HashMap<Box<[u8]>, u32>,
    unknown: u32,
    longest_word: usize,
    longest_piece: usize,
    lowercase: bool,
    before: u32,
    after: u32,
}

#[derive(Deserialize)]
struct File {
    added_tokens: Vec<Added>,
    normalizer: Normalizer,
    pre_tokenizer: Kind,
    post_processor: Template,
    model: Model,
}

#[derive(Deserialize)]
struct Added {
    content: String,
}

#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct Normalizer {
    #[serde(rename = "type")]
    kind: String,
    clean_text: bool,
    lowercase: bool,
}

#[derive(Deserialize)]
struct Template {
    #[serde(rename = "type")]
    kind: String,
    single: Vec<Place>,
    special_tokens: HashMap<String, Special>,
}

#[derive(Deserialize)]
enum Place {
    SpecialToken { id: String },
    Sequence {},
}

#[derive(Deserialize)]
struct Special {
    ids: Vec<u32>,
}

#[derive(Deserialize)]
struct Model {
    #[serde(rename = "type")]
    kind: Option<String>,
    unk_token: String,
    continuing_subword_prefix: String,
    max_input_chars_per_word: usize,
    vocab: HashMap<String, u32>,
}

/// First character of every added token; a text without it contains none.
const ADDED_TOKEN_START: char = '[';

impl AsciiWordPiece {
    /// Reads a `tokenizer.json`; returns `None` when it deviates from BERT's own rules.
    pub(super) fn read(tokenizer_json: &[u8]) -> Option<Self> {
        let file: File = serde_json::from_slice(tokenizer_json).ok()?;
        let is_bert = file.normalizer.kind == "BertNormalizer"
            && file.normalizer.clean_text
            && file.pre_tokenizer.kind == "BertPreTokenizer"
            && file.post_processor.kind == "TemplateProcessing"
            && file.model.kind.is_none_or(|kind| kind == "WordPiece")
            && file.added_tokens.iter().all(|added| added.content.starts_with(ADDED_TOKEN_START));
        let (before, after) = file.post_processor.around()?;
        if !is_bert {
            return None;
        }
        let prefix = file.model.continuing_subword_prefix;
        let unknown = *file.model.vocab.get(&file.model.unk_token)?;
        let mut heads = HashMap::new();
        let mut tails = HashMap::new();
        for (piece, id) in file.model.vocab {
            if let Some(tail) = piece.strip_prefix(&prefix).filter(|tail| !tail.is_empty()) {
                tails.insert(tail.as_bytes().into(), id);
            }
            heads.insert(piece.into_bytes().into_boxed_slice(), id);
        }
        Some(Self {
            longest_piece: heads.keys().map(|piece| piece.len()).max()?,
            heads,
            tails,
            unknown,
            longest_word: file.model.max_input_chars_per_word,
            lowercase: file.normalizer.lowercase,
            before,
            after,
        })
    }

    /// Returns at most `limit` ids of `text`, special tokens included, and true if some were cut off. Returns `None`
    /// for unsupported texts.
    pub(super) fn encode(&self, text: &str, limit: usize) -> Option<(Vec<u32>, bool)> {
        if !text.is_ascii() || text.contains(ADDED_TOKEN_START) {
            return None;
        }
        let mut ids = Vec::with_capacity(text.len() / 4 + 4);
        ids.push(self.before);
        let mut word = Vec::with_capacity(32);
        for &byte in text.as_bytes() {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => self.end_word(&mut word, &mut ids),
                byte if byte.is_ascii_control() => {}
                byte if byte.is_ascii_punctuation() => {
                    self.end_word(&mut word, &mut ids);
                    word.push(byte);
                    self.end_word(&mut word, &mut ids);
                }
                byte if self.lowercase => word.push(byte.to_ascii_lowercase()),
                byte => word.push(byte),
            }
        }
        self.end_word(&mut word, &mut ids);
        let truncated = ids.len() + 1 > limit;
        ids.truncate(limit - 1);
        ids.push(self.after);
        Some((ids, truncated))
    }

    /// Adds a word's pieces, and clears it.
    fn end_word(&self, word: &mut Vec<u8>, ids: &mut Vec<u32>) {
        if word.is_empty() {
            return;
        }
        let before = ids.len();
        if word.len() > self.longest_word || !self.split(word, ids) {
            ids.truncate(before);
            ids.push(self.unknown);
        }
        word.clear();
    }

    /// Splits a word into pieces; returns true if they cover all of it.
    fn split(&self, word: &[u8], ids: &mut Vec<u32>) -> bool {
        let mut start = 0;
        while start < word.len() {
            let pieces = if start == 0 { &self.heads } else { &self.tails };
            let most = word.len().min(start + self.longest_piece);
            let found = (start + 1..=most)
                .rev()
                .find_map(|end| pieces.get(&word[start..end]).map(|id| (end, *id)));
            let Some((end, id)) = found else { return false };
            ids.push(id);
            start = end;
        }
        true
    }
}

impl Template {
    /// Returns the token before and the token after the text, if there is exactly one of each.
    fn around(&self) -> Option<(u32, u32)> {
        let id = |name: &String| match self.special_tokens.get(name)?.ids[..] {
            [id] => Some(id),
            _ => None,
        };
        match &self.single[..] {
            [
                Place::SpecialToken { id: before },
                Place::Sequence {},
                Place::SpecialToken { id: after },
            ] => Some((id(before)?, id(after)?)),
            _ => None,
        }
    }
}
