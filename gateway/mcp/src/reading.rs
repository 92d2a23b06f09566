//! `read_result`: pieces of results that were cut.

use serde_json::{Map, Value};

use crate::caller::Caller;
use crate::calling::{self, text_result};
use crate::gateway::Gateway;
use crate::raw::RawObject;
use crate::results::FoundResult;

/// Most bytes of a piece.
const PIECE: usize = 8 << 10;

/// Bytes before a find that are shown with it.
const BEFORE_FIND: usize = 256;

/// Answers `read_result`. What a server said is marked as its results are.
///
/// # Errors
/// The problem, for the model.
pub(crate) fn read(
    gateway: &Gateway,
    caller: &Caller,
    arguments: &Map<String, Value>,
) -> Result<RawObject, String> {
    let handle = arguments.get("handle").and_then(Value::as_str).unwrap_or_default().trim();
    let found = gateway.results().find(&caller.owner(), handle).ok_or_else(|| {
        format!(
            "there is no result {handle:?}: results are kept for 10 minutes; call the tool again"
        )
    })?;
    let FoundResult { server, text } = found;
    let offset = arguments.get("offset").and_then(Value::as_u64).unwrap_or(0);
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    if offset >= text.len() {
        return Err(format!("`offset` must be below {}, the length of the result", text.len()));
    }
    let find = arguments.get("find").and_then(Value::as_str).filter(|find| !find.is_empty());
    let mut result = text_result(&piece(&text, offset, find)?);
    if gateway.marks_results(&server) {
        calling::mark(&mut result, &server);
    }
    Ok(result)
}

fn piece(text: &str, offset: usize, find: Option<&str>) -> Result<String, String> {
    let mut start = text.floor_char_boundary(offset);
    if let Some(find) = find {
        let found = text[start..].find(find).ok_or_else(|| {
            format!("{find:?} does not occur from offset {start} on: try other words, or offset 0")
        })?;
        start = text.floor_char_boundary((start + found).saturating_sub(BEFORE_FIND).max(start));
    }
    let end = text.floor_char_boundary(text.len().min(start + PIECE));
    let rest =
        if end < text.len() { format!("the rest from offset={end}") } else { "the end".to_owned() };
    Ok(format!("{}\n[bytes {start} to {end} of {}; {rest}]", &text[start..end], text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_to_the_whole() {
        let text = "zeile €\n".repeat(3_000);
        let mut offset = 0;
        let mut joined = String::new();
        loop {
            let piece = piece(&text, offset, None).expect("a piece");
            let (content, told) = piece.rsplit_once("\n[bytes").expect("an end");
            joined.push_str(content);
            match told.split("offset=").nth(1) {
                Some(next) => offset = next.trim_end_matches(']').parse().expect("a number"),
                None => break,
            }
        }
        assert_eq!(joined, text);
    }

    #[test]
    fn a_find_is_shown_with_what_stands_before_it() {
        let text = format!("{}needle{}", "a".repeat(20_000), "b".repeat(20_000));
        let found = piece(&text, 0, Some("needle")).expect("a piece");
        assert!(found.contains("aneedleb"), "{}", &found[..300]);
        assert!(piece(&text, 30_000, Some("needle")).is_err());
    }
}
