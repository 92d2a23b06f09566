//! Pages of the gateway's lists.

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::lists::List;
use crate::raw::{RawObject, list_of};

/// Most items of a page. Some hosts read the first page alone.
const ITEMS_MAX: usize = 1_000;

/// Most bytes of a page, but for an item that has more by itself.
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
    if cursor.is_none() && list.count <= ITEMS_MAX && list.text.len() <= BYTES_MAX {
        result.set_json(name, list.text);
        return Ok(result);
    }
    let hash = hex::encode(Sha256::digest(&list.text));
    let hash = &hash[..HASH];
    let start = cursor.map_or(Ok(0), |cursor| start_of(cursor, hash, list.count))?;
    let items: Vec<&RawValue> = serde_json::from_slice(&list.text).map_err(|error| {
        ErrorData::new(ErrorCode::INTERNAL_ERROR, format!("the list is broken: {error}"), None)
    })?;
    let mut bytes = 0;
    let fits = |item: &&&RawValue| {
        bytes += item.get().len() + 1;
        bytes <= BYTES_MAX
    };
    let rest = items.get(start..).unwrap_or_default();
    let count = rest.iter().take(ITEMS_MAX).take_while(fits).count().max(1);
    let page: Vec<&str> = rest.iter().take(count).map(|item| item.get()).collect();
    result.set_json(name, list_of(&page));
    if start + count < items.len() {
        let cursor = format!("{}-{hash}", start + count);
        result.set("nextCursor", &Value::from(cursor));
    }
    Ok(result)
}

/// Returns the number of items before the page of a cursor, in a list of this hash and so many items.
fn start_of(cursor: &Value, hash: &str, count: usize) -> Result<usize, ErrorData> {
    let wrong = |problem: &'static str| ErrorData::new(ErrorCode::INVALID_PARAMS, problem, None);
    let parts = cursor.as_str().and_then(|cursor| cursor.split_once('-'));
    let start = parts.and_then(|(start, _)| start.parse().ok()).filter(|start| *start > 0);
    match (parts, start) {
        (Some((_, of)), Some(start)) if of == hash && start < count => Ok(start),
        (Some((_, of)), Some(_)) if of != hash && of.len() == HASH => {
            Err(wrong("the list has changed since `cursor` was given: list it from its first page"))
        }
        _ => Err(wrong(
            "`cursor` is not one of this list: take `nextCursor` of the page before, or none for the first page",
        )),
    }
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
    fn a_list_has_pages_by_number_and_size() {
        let numbers = |count: usize| -> Vec<String> { (0..count).map(|n| n.to_string()).collect() };
        for (count, wanted) in [
            (0, vec![0]),
            (ITEMS_MAX, vec![ITEMS_MAX]),
            (ITEMS_MAX + 1, vec![ITEMS_MAX, 1]),
            (2 * ITEMS_MAX + 7, vec![ITEMS_MAX, ITEMS_MAX, 7]),
        ] {
            assert_eq!(counts(&list(&numbers(count))), wanted);
        }
        let large = |bytes: usize| format!("\"{}\"", "x".repeat(bytes));
        let items = [large(BYTES_MAX - 20), large(8), large(8), large(BYTES_MAX), large(1)];
        assert_eq!(counts(&list(&items)), [2, 1, 1, 1]);
        let first = asked(&list(&numbers(3)), &json!("")).expect("a page");
        assert_eq!(first.into_text(), r#"{"tools":[0,1,2]}"#);
    }

    #[test]
    fn cursors_of_other_lists_are_refused() {
        let numbers: Vec<String> = (0..=ITEMS_MAX).map(|number| number.to_string()).collect();
        let all = list(&numbers);
        let next = asked(&all, &Value::Null).expect("a page").text("nextCursor").map(String::from);
        let next = next.expect("a cursor");
        let refused = |list: &List, cursor: Value| {
            let error = asked(list, &cursor).expect_err("no page");
            assert_eq!(error.code, ErrorCode::INVALID_PARAMS, "{cursor}");
            error.message.into_owned()
        };
        let changed = refused(&list(&numbers[1..]), json!(next));
        assert!(changed.contains("the list has changed"), "{changed}");
        let beyond = next.replacen("1000", "1001", 1);
        let before = next.replacen("1000", "0", 1);
        for cursor in [json!("x"), json!(7), json!("1-2"), json!(beyond), json!(before), json!({})]
        {
            let told = refused(&all, cursor);
            assert!(told.contains("`nextCursor` of the page before"), "{told}");
        }
    }
}
