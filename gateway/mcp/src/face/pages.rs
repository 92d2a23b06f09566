//! Pages of the gateway's lists.

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::lists::List;
use crate::raw::{RawObject, list_of};

/// Most bytes of a page, but for an item that has more by itself. Some hosts read the first page alone, so that there is one page
/// as long as messages can carry it.
const BYTES_MAX: usize = 4 << 20;

/// Characters of the hash of a list in a cursor.
const HASH: usize = 16;

/// Returns the page of a list that a request asks for, under a name, with the cursor of the next one.
///
/// A cursor says how many items come before its page, and of which list. It grants nothing: the list has what its caller may see.
///
/// # Errors
/// [`ErrorData`] if the request has a cursor that is not one of this list.
pub(super) fn page(
    name: &str,
    list: List,
    params: &Map<String, Value>,
) -> Result<RawObject, ErrorData> {
    let mut result = RawObject::default();
    let cursor = params.get("cursor").filter(|cursor| !cursor.is_null() && **cursor != "");
    let cursor = cursor.map(Cursor::read).transpose()?;
    if cursor.is_none() && list.text.len() <= BYTES_MAX {
        result.set_json(name, list.text);
        return Ok(result);
    }
    let hash = hex::encode(Sha256::digest(&list.text));
    let hash = &hash[..HASH];
    let start = cursor.map_or(Ok(0), |cursor| cursor.start_in(hash, list.count))?;
    let items: Vec<&RawValue> = serde_json::from_slice(&list.text).map_err(|error| {
        ErrorData::new(ErrorCode::INTERNAL_ERROR, format!("the list is broken: {error}"), None)
    })?;
    let mut bytes = 0;
    let fits = |item: &&&RawValue| {
        bytes += item.get().len() + 1;
        bytes <= BYTES_MAX
    };
    let rest = items.get(start..).unwrap_or_default();
    let count = rest.iter().take_while(fits).count().max(1);
    let page: Vec<&str> = rest.iter().take(count).map(|item| item.get()).collect();
    result.set_json(name, list_of(&page));
    if start + count < items.len() {
        let cursor = format!("{}-{hash}", start + count);
        result.set("nextCursor", &Value::from(cursor));
    }
    Ok(result)
}

/// Cursor of a request.
struct Cursor<'a> {
    /// Number of items before the page.
    start: usize,
    /// Hash of the list that it was given for.
    of: &'a str,
}

impl<'a> Cursor<'a> {
    fn read(cursor: &'a Value) -> Result<Self, ErrorData> {
        let (start, of) =
            cursor.as_str().and_then(|text| text.split_once('-')).ok_or_else(wrong)?;
        let is_hash = of.len() == HASH && of.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_number = start.bytes().all(|byte| byte.is_ascii_digit());
        let start = start.parse().ok().filter(|start| *start > 0 && is_number && is_hash);
        Ok(Self { start: start.ok_or_else(wrong)?, of })
    }

    /// Returns the number of items before the page, in a list of this hash and so many items.
    fn start_in(&self, hash: &str, count: usize) -> Result<usize, ErrorData> {
        if self.of != hash {
            return Err(ErrorData::new(
                ErrorCode::INVALID_PARAMS,
                "the list has changed since `cursor` was given: list it from its first page",
                None,
            ));
        }
        if self.start < count { Ok(self.start) } else { Err(wrong()) }
    }
}

fn wrong() -> ErrorData {
    ErrorData::new(
        ErrorCode::INVALID_PARAMS,
        "`cursor` is not one of this list: take `nextCursor` of the page before, or none for the first page",
        None,
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn list(items: &[String]) -> List {
        List::of(items)
    }

    fn asked(list: &List, cursor: &Value) -> Result<RawObject, ErrorData> {
        let params = json!({"cursor": cursor});
        page("tools", list.clone(), params.as_object().expect("an object"))
    }

    fn counts(list: &List) -> Vec<usize> {
        let mut counts = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let page = asked(list, &cursor).expect("a page");
            counts.push(page.items("tools").len());
            match page.text("nextCursor") {
                Some(next) => cursor = Value::from(next),
                None => return counts,
            }
        }
    }

    #[test]
    fn a_list_has_pages_by_size() {
        let numbers = |count: usize| -> Vec<String> { (0..count).map(|n| n.to_string()).collect() };
        for count in [0, 1, 10_000] {
            assert_eq!(counts(&list(&numbers(count))), [count]);
        }
        let large = |bytes: usize| format!("\"{}\"", "x".repeat(bytes));
        let items = [large(BYTES_MAX - 20), large(8), large(8), large(BYTES_MAX), large(1)];
        assert_eq!(counts(&list(&items)), [2, 1, 1, 1]);
        let first = asked(&list(&numbers(3)), &json!("")).expect("a page");
        assert_eq!(first.into_text(), r#"{"tools":[0,1,2]}"#);
    }

    #[test]
    fn cursors_of_other_lists_are_refused() {
        let mut items = vec![format!("\"{}\"", "x".repeat(BYTES_MAX)); 2];
        let all = list(&items);
        let next = asked(&all, &Value::Null).expect("a page").text("nextCursor").map(String::from);
        let next = next.expect("a cursor");
        let refused = |list: &List, cursor: Value| {
            let error = asked(list, &cursor).expect_err("no page");
            assert_eq!(error.code, ErrorCode::INVALID_PARAMS, "{cursor}");
            error.message.into_owned()
        };
        items.push("1".to_owned());
        let changed = refused(&list(&items), json!(next));
        assert!(changed.contains("the list has changed"), "{changed}");
        let beyond = next.replacen('1', "2", 1);
        let before = next.replacen('1', "0", 1);
        let signed = next.replacen('1', "+1", 1);
        for cursor in [
            json!("x"),
            json!(7),
            json!("1-2"),
            json!({}),
            json!(beyond),
            json!(before),
            json!(signed),
        ] {
            let told = refused(&all, cursor);
            assert!(told.contains("`nextCursor` of the page before"), "{told}");
        }
    }
}
