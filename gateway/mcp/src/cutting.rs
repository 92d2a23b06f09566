//! Results of tools, cut to what a host takes.

use serde_json::Value;

use crate::caller::Owner;
use crate::results::Results;

/// Bytes of the largest image, audio or other content that is not text.
const OTHER_MAX: usize = 4 << 20;

/// Share of the limit that the end of a text has, as a divisor.
const TAIL: usize = 4;

/// Cuts a result of `tools/call` whose texts have more than `limit` bytes in all, and keeps the whole for `read_result`.
/// A cut result has no `structuredContent`: half of one would be wrong.
pub(crate) fn cut(result: &mut Value, limit: usize, owner: &Owner, results: &Results) {
    let Some(content) = result.get_mut("content").and_then(Value::as_array_mut) else { return };
    for item in content.iter_mut() {
        let bytes = item["data"].as_str().map_or(0, str::len);
        if bytes > OTHER_MAX {
            let kind = item["type"].as_str().unwrap_or("content").to_owned();
            *item =
                text_item(&format!("[{kind} of {bytes} bytes left out: the limit is {OTHER_MAX}]"));
        }
    }
    let texts: Vec<&str> = content.iter().filter_map(text_of).collect();
    let whole = texts.join("\n");
    if whole.len() <= limit {
        return;
    }
    let Some(handle) = results.keep(owner, &whole) else { return };
    let shown = rows(&whole, limit, &handle).unwrap_or_else(|| ends(&whole, limit, &handle));
    let first = content.iter().position(|item| text_of(item).is_some()).unwrap_or_default();
    content.retain(|item| text_of(item).is_none());
    content.insert(first.min(content.len()), text_item(&shown));
    if let Some(result) = result.as_object_mut() {
        result.remove("structuredContent");
    }
}

fn text_of(item: &Value) -> Option<&str> {
    (item["type"] == "text").then(|| item["text"].as_str()).flatten()
}

fn text_item(text: &str) -> Value {
    serde_json::json!({"type": "text", "text": text})
}

/// Returns the first rows of a JSON array, and how to read the rest; `None` if the text is none.
fn rows(text: &str, limit: usize, handle: &str) -> Option<String> {
    let rows: Vec<&serde_json::value::RawValue> = serde_json::from_str(text).ok()?;
    let mut shown = String::from("[");
    let mut count = 0;
    for row in &rows {
        if shown.len() + row.get().len() + 2 > limit {
            break;
        }
        if count > 0 {
            shown.push(',');
        }
        shown.push_str(row.get());
        count += 1;
    }
    if count == 0 {
        return None;
    }
    let cut = rows.len() - count;
    let offset = row_offset(text, &rows, count);
    shown.push_str(&format!(
        "]\n[... {cut} of {} rows cut; read_result handle={handle} offset={offset}]",
        rows.len()
    ));
    Some(shown)
}

/// Returns the byte at which a row of the array begins.
fn row_offset(text: &str, rows: &[&serde_json::value::RawValue], row: usize) -> usize {
    let start = rows.get(row).map_or(text.len(), |row| row.get().as_ptr().addr());
    start.saturating_sub(text.as_ptr().addr()).min(text.len())
}

/// Returns the beginning and the end of a text, cut at ends of lines where there are some, and how to read the rest.
fn ends(text: &str, limit: usize, handle: &str) -> String {
    let tail_bytes = limit / TAIL;
    let head = line_end(text, limit - tail_bytes);
    let tail = line_start(text, text.len() - tail_bytes).max(head);
    let cut = tail - head;
    format!(
        "{}\n[... {cut} of {} bytes cut; read_result handle={handle} offset={head}]\n{}",
        &text[..head],
        text.len(),
        &text[tail..]
    )
}

/// Returns the last end of a line in the second half of the first `most` bytes, or else the last whole character.
fn line_end(text: &str, most: usize) -> usize {
    let most = text.floor_char_boundary(most);
    text[..most].rfind('\n').filter(|end| *end >= most / 2).unwrap_or(most)
}

/// Returns the first start of a line at or behind `from`, within the first half of what is left, or else the next whole
/// character.
fn line_start(text: &str, from: usize) -> usize {
    let from = text.ceil_char_boundary(from);
    let start = text[from..].find('\n').map(|end| from + end + 1);
    start.filter(|start| *start - from <= (text.len() - from) / 2).unwrap_or(from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Caller;
    use serde_json::json;

    #[test]
    fn a_result_within_the_limit_is_as_it_was() {
        let before = json!({"content": [{"type": "text", "text": "abc"}, {"type": "new", "x": 1.0}],
                            "structuredContent": {"a": 1}, "extra": true});
        let mut result = before.clone();
        cut(&mut result, 3, &Caller::default().owner(), &Results::default());
        assert_eq!(result.to_string(), before.to_string());
    }

    #[test]
    fn a_long_text_keeps_its_ends_and_the_rest_is_read_by_handle() {
        let results = Results::default();
        let lines: Vec<String> = (0..1_000).map(|line| format!("line {line}")).collect();
        let text = lines.join("\n");
        let mut result = json!({"content": [{"type": "image", "data": "x"}, {"type": "text", "text": text}],
                                "structuredContent": {}, "isError": false});
        cut(&mut result, 400, &Caller::default().owner(), &results);
        let shown = result["content"][1]["text"].as_str().expect("a text");
        assert!(shown.starts_with("line 0\n") && shown.ends_with("line 999"), "{shown}");
        assert!(shown.len() < 550, "{}", shown.len());
        assert_eq!(result["content"][0]["type"], "image");
        assert!(result.get("structuredContent").is_none());
        let handle = shown.split("handle=").nth(1).and_then(|rest| rest.split(' ').next());
        let handle = handle.expect("a handle");
        assert_eq!(results.text(&Caller::default().owner(), handle).as_deref(), Some(&*text));
    }

    #[test]
    fn an_array_keeps_its_first_rows() {
        let results = Results::default();
        let rows: Vec<Value> = (0..100).map(|id| json!({"id": id})).collect();
        let text = Value::from(rows).to_string();
        let mut result = json!({"content": [{"type": "text", "text": text}]});
        cut(&mut result, 100, &Caller::default().owner(), &results);
        let shown = result["content"][0]["text"].as_str().expect("a text");
        let kept: Vec<Value> =
            serde_json::from_str(shown.lines().next().expect("rows")).expect("JSON");
        assert!(
            !kept.is_empty() && shown.contains(&format!("{} of 100 rows cut", 100 - kept.len()))
        );
        let offset: usize = shown
            .split("offset=")
            .nth(1)
            .expect("an offset")
            .trim_end_matches(']')
            .parse()
            .expect("a number");
        assert!(text[offset..].starts_with(&format!("{{\"id\":{}}}", kept.len())));
    }

    #[test]
    fn characters_are_not_cut_in_two() {
        let results = Results::default();
        for limit in 0..40 {
            let mut result = json!({"content": [{"type": "text", "text": "äöü€🦀".repeat(10)}]});
            cut(&mut result, limit, &Caller::default().owner(), &results);
            assert!(result["content"][0]["text"].as_str().expect("a text").contains("cut"));
        }
    }

    #[test]
    fn large_images_are_left_out() {
        let mut result = json!({"content": [{"type": "image", "data": "x".repeat(OTHER_MAX + 1)}]});
        cut(&mut result, 1_000, &Caller::default().owner(), &Results::default());
        assert_eq!(result["content"][0]["type"], "text");
    }
}
