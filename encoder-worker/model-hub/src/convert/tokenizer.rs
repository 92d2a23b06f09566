//! File `tokenizer.json` of an XLM-R: unigram pieces over words that begin with a mark.

use tokenizers::normalizers::NFKC;
use tokenizers::{NormalizedString, Normalizer};

use super::q4_file::Vocabulary;
use super::reader::Problem;

/// Returns the whole file. Keys and whitespace are fixed, so that its hash is too.
pub(super) fn json(vocabulary: &Vocabulary<'_>) -> Result<String, Problem> {
    let Vocabulary { begin, end, padding, unknown, .. } = *vocabulary;
    let quoted = |id: usize| quote(vocabulary.pieces[id].0);
    let first = quoted(begin)?;
    let last = quoted(end)?;
    let mut special = [begin, padding, end, unknown];
    special.sort_unstable();
    let added = listed(special.into_iter().map(|id| Ok(added_token(id, &quoted(id)?))))?;
    let pieces = vocabulary.pieces.iter();
    let pieces =
        listed(pieces.map(|(text, score)| Ok(format!("[{}, {}]", quote(text)?, number(*score)?))))?;
    let parts = [
        r#"{"version": "1.0", "truncation": null, "padding": null, "added_tokens": ["#,
        &added,
        r#"], "normalizer": {"type": "Sequence", "normalizers": ["#,
        &normalisers(vocabulary)?,
        "]}, ",
        r#""pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}, "#,
        r#""post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "#,
        &first,
        r#", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "#,
        &last,
        r#", "type_id": 0}}], "pair": [{"Sequence": {"id": "A", "type_id": 0}}, "#,
        r#"{"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": {"#,
        &special_token(begin, &first),
        ", ",
        &special_token(end, &last),
        r#"}}, "decoder": null, "model": {"type": "Unigram", "unk_id": "#,
        &unknown.to_string(),
        r#", "vocab": ["#,
        &pieces,
        "], \"byte_fallback\": false}}\n",
    ];
    Ok(parts.concat())
}

fn added_token(id: usize, text: &str) -> String {
    format!(
        r#"{{"id": {id}, "content": {text}, "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}}"#
    )
}

fn special_token(id: usize, text: &str) -> String {
    format!(r#"{text}: {{"id": {text}, "ids": [{id}], "tokens": [{text}]}}"#)
}

/// Returns NFKC, preceded by the replacements that differ from it: letters that are removed or become a space.
fn normalisers(vocabulary: &Vocabulary<'_>) -> Result<String, Problem> {
    let mut gone = String::new();
    let mut spaces = String::new();
    for (letter, with) in &vocabulary.replacements {
        let pattern = format!(r"\x{{{:x}}}", u32::from(*letter));
        match with.as_str() {
            with if with == nfkc(*letter)? => {}
            "" => gone.push_str(&pattern),
            " " => spaces.push_str(&pattern),
            _ => return Err(format!("no rule replaces {letter:?} with {with:?}")),
        }
    }
    let any_of = |letters: &str, with| match letters {
        "" => Ok(None),
        letters => replace(&format!("[{letters}]"), with).map(Some),
    };
    let nfkc = Some(r#"{"type": "NFKC"}"#.to_owned());
    let steps = [any_of(&gone, "")?, any_of(&spaces, " ")?, nfkc, Some(replace(" {2,}", " ")?)];
    listed(steps.into_iter().flatten().map(Ok))
}

/// Normalises a letter with the implementation that the encoder's tokenizer uses.
fn nfkc(letter: char) -> Result<String, Problem> {
    let mut text = NormalizedString::from(letter.to_string());
    NFKC.normalize(&mut text).map_err(|error| error.to_string())?;
    Ok(text.get().to_owned())
}

/// Returns a normaliser that replaces matches of a regular expression.
fn replace(pattern: &str, with: &str) -> Result<String, Problem> {
    let pattern = quote(pattern)?;
    let with = quote(with)?;
    Ok(format!(r#"{{"type": "Replace", "pattern": {{"Regex": {pattern}}}, "content": {with}}}"#))
}

fn listed(items: impl Iterator<Item = Result<String, Problem>>) -> Result<String, Problem> {
    let mut text = String::new();
    for item in items {
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(&item?);
    }
    Ok(text)
}

fn quote(text: &str) -> Result<String, Problem> {
    serde_json::to_string(text).map_err(|error| error.to_string())
}

fn number(score: f32) -> Result<String, Problem> {
    serde_json::to_string(&f64::from(score)).map_err(|error| error.to_string())
}
