//! Results of tools, cut to what a host takes.

use serde_json::Value;

use crate::caller::Owner;
use crate::calling::text_item;
use crate::raw::RawObject;
use crate::results::Results;

/// Bytes of the largest image, audio, embedded file or other content that is no text.
const OTHER_MAX: usize = 4 << 20;

/// Bytes of all content of a result that is no text.
const OTHERS_MAX: usize = 8 << 20;

/// Share of the limit that the end of a text has, as a divisor.
const TAIL: usize = 4;

/// Fields of a result that have limits of their own, or are small by their nature.
const KNOWN_FIELDS: [&str; 4] = ["content", "structuredContent", "isError", "resultType"];

/// Field with the result as data.
const STRUCTURED: &str = "structuredContent";

/// Item of a result's content.
struct Item {
    json: String,
    /// Text that the model reads; `None` for other content.
    text: Option<String>,
    /// Bytes of what is no text.
    others: usize,
}

/// Bytes of content that is no text, as far as a result may still have them.
struct Left(usize);

/// Cuts a result of a server's `tools/call`: its texts, those of embedded resources among them, to `limit` bytes in all, its data to as many,
/// and what else it has to a size of its own. The whole of the texts and data is kept for `read_result`. A result whose texts are
/// cut has no `structuredContent`: half of one would be wrong, and hosts would show the whole in the texts' place.
pub(crate) fn cut(
    result: &mut RawObject,
    limit: usize,
    server: &str,
    owner: &Owner,
    results: &Results,
) {
    let mut left = Left(OTHERS_MAX);
    leave_out_fields(result, &mut left);
    let mut items: Vec<Item> =
        result.items("content").iter().map(|item| Item::of(item.get())).collect();
    let mut is_changed = false;
    for item in &mut items {
        is_changed |= item.leave_out(&mut left);
    }
    let texts: Vec<&str> = items.iter().filter_map(|item| item.text.as_deref()).collect();
    let whole = texts.join("\n");
    let data = result.get(STRUCTURED).unwrap_or_default();
    let is_long = whole.len() > limit;
    if is_long || data.len() > limit {
        let is_repeated = is_same(&whole, data);
        let kept_data = if is_repeated { None } else { results.keep(owner, server, data) };
        if is_long {
            let Some(handle) = results.keep(owner, server, &whole) else { return };
            let first = items.iter().position(|item| item.text.is_some()).unwrap_or_default();
            items.retain(|item| item.text.is_none());
            items.insert(first.min(items.len()), Item::told(&shown(&whole, limit, &handle)));
        }
        if let Some(handle) = kept_data {
            let rest = limit.saturating_sub(whole.len());
            items.push(Item::told(&shown(data, rest, &handle)));
        }
        result.remove(STRUCTURED);
        is_changed = true;
    }
    if is_changed {
        let items: Vec<String> = items.into_iter().map(|item| item.json).collect();
        result.set_items("content", &items);
    }
}

/// Leaves out fields that no host knows and that are too large.
fn leave_out_fields(result: &mut RawObject, left: &mut Left) {
    let others = result.sizes().filter(|(name, _)| !KNOWN_FIELDS.contains(name));
    let others: Vec<(String, usize)> =
        others.map(|(name, bytes)| (name.to_owned(), bytes)).collect();
    for (name, bytes) in others {
        if left.take(bytes).is_err() {
            result.remove(&name);
        }
    }
}

impl Left {
    /// Takes so many bytes.
    ///
    /// # Errors
    /// The limit, if they are too many.
    fn take(&mut self, bytes: usize) -> Result<(), usize> {
        if bytes > OTHER_MAX {
            return Err(OTHER_MAX);
        }
        self.0 = self.0.checked_sub(bytes).ok_or(OTHERS_MAX)?;
        Ok(())
    }
}

impl Item {
    fn of(json: &str) -> Self {
        let item = RawObject::parse(json.to_owned()).unwrap_or_default();
        let text = text_of(&item);
        let texts = ["text", "resource"];
        let others = match &text {
            Some(_) => {
                item.sizes().filter(|(name, _)| !texts.contains(name)).map(|(_, size)| size).sum()
            }
            None => json.len(),
        };
        Self { json: json.to_owned(), text, others }
    }

    /// Returns a text of the gateway.
    fn told(text: &str) -> Self {
        Self { json: text_item(text).to_string(), text: Some(text.to_owned()), others: 0 }
    }

    /// Puts a text in the place of what is too large. Returns whether it did.
    fn leave_out(&mut self, left: &mut Left) -> bool {
        let Err(limit) = left.take(self.others) else { return false };
        let item = RawObject::parse(self.json.clone()).unwrap_or_default();
        let kind = item.text("type").unwrap_or_else(|| "content".into());
        let told = format!("[{kind} of {} bytes left out: the limit is {limit}]", self.others);
        *self = match &self.text {
            Some(text) => Self::told(&format!("{text}\n{told}")),
            None => Self::told(&told),
        };
        true
    }
}

/// Returns the text of an item: its own, or that of an embedded resource, with its URI.
fn text_of(item: &RawObject) -> Option<String> {
    if item.is("type", "text") {
        return item.text("text").map(|text| text.into_owned());
    }
    if !item.is("type", "resource") {
        return None;
    }
    let resource = RawObject::parse(item.get("resource")?.to_owned()).ok()?;
    let text = resource.text("text")?;
    let uri = resource.text("uri").unwrap_or_default();
    resource.get("blob").is_none().then(|| format!("[{uri}]\n{text}"))
}

/// Returns true if a text says what the data say, or if there are none.
fn is_same(text: &str, data: &str) -> bool {
    let read = |json: &str| serde_json::from_str::<Value>(json).ok();
    data.is_empty() || read(text).is_some_and(|text| Some(text) == read(data))
}

/// Returns the part of a text that a limit lets through, and how to read the rest.
fn shown(text: &str, limit: usize, handle: &str) -> String {
    rows(text, limit, handle).unwrap_or_else(|| ends(text, limit, handle))
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

    /// Cuts a result, and returns it with what is kept.
    fn cut_to(limit: usize, result: &str) -> (String, Results) {
        let results = Results::default();
        let mut result = RawObject::parse(result.to_owned()).expect("an object");
        cut(&mut result, limit, "sea", &Caller::default().owner(), &results);
        (result.into_text(), results)
    }

    fn cut_value(limit: usize, result: &Value) -> (Value, Results) {
        let (text, results) = cut_to(limit, &result.to_string());
        (serde_json::from_str(&text).expect("JSON"), results)
    }

    fn kept(results: &Results, shown: &str) -> Option<String> {
        let handle = shown.split("handle=").nth(1)?.split(' ').next()?;
        Some(results.find(&Caller::default().owner(), handle)?.text.to_string())
    }

    #[test]
    fn a_result_within_the_limit_is_as_it_was() {
        let result = r#"{"content": [{"type": "text", "text": "\u0061bc"}, {"type":"new", "x":1.0}],
                        "structuredContent": 1e4, "extra":123456789012345678901234567890}"#;
        assert_eq!(cut_to(3, result).0, result);
    }

    #[test]
    fn a_long_text_keeps_its_ends_and_the_rest_is_read_by_handle() {
        let lines: Vec<String> = (0..1_000).map(|line| format!("line {line}")).collect();
        let text = lines.join("\n");
        let result = json!({"content": [{"type": "image", "data": "x"}, {"type": "text", "text": text}],
                            "structuredContent": {"lines": 1_000}, "isError": false});
        let (result, results) = cut_value(400, &result);
        let shown = result["content"][1]["text"].as_str().expect("a text");
        assert!(shown.starts_with("line 0\n") && shown.ends_with("line 999"), "{shown}");
        assert!(shown.len() < 550, "{}", shown.len());
        assert_eq!(result["content"][0]["type"], "image");
        assert!(result.get("structuredContent").is_none());
        assert_eq!(kept(&results, shown).as_deref(), Some(&*text));
        let data = result["content"][2]["text"].as_str().expect("the data");
        assert_eq!(kept(&results, data).as_deref(), Some("{\"lines\":1000}"));
    }

    #[test]
    fn an_array_keeps_its_first_rows() {
        let rows: Vec<Value> = (0..100).map(|id| json!({"id": id})).collect();
        let text = Value::from(rows).to_string();
        let (result, _) = cut_value(100, &json!({"content": [{"type": "text", "text": text}]}));
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
    fn long_data_are_kept_beside_a_short_text() {
        let data = json!({"rows": "x".repeat(1_000)});
        let result =
            json!({"content": [{"type": "text", "text": "ok"}], "structuredContent": data});
        let (cut, results) = cut_value(100, &result);
        assert!(cut.get("structuredContent").is_none() && cut.to_string().len() < 400, "{cut}");
        assert_eq!(cut["content"][0]["text"], "ok");
        let told = cut["content"][1]["text"].as_str().expect("a text");
        assert_eq!(kept(&results, told), Some(data.to_string()));
        let alone = json!({"content": [], "structuredContent": data});
        assert!(cut_value(100, &alone).0["content"][0]["text"].is_string());
    }

    #[test]
    fn data_that_the_text_repeats_are_kept_once() {
        let data = json!({"rows": "x".repeat(1_000)});
        let content = json!([{"type": "text", "text": data.to_string()}]);
        let (cut, _) = cut_value(100, &json!({"content": content, "structuredContent": data}));
        assert_eq!(cut["content"].as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn texts_of_embedded_resources_are_texts() {
        let embedded = |field: &str, content: String| {
            let resource = json!({"uri": "file:///a", field: content});
            json!({"content": [{"type": "resource", "resource": resource}]})
        };
        let text = "line\n".repeat(1_000);
        let (cut, results) = cut_value(100, &embedded("text", text.clone()));
        let shown = cut["content"][0]["text"].as_str().expect("a text");
        assert!(shown.starts_with("[file:///a]\nline\n") && shown.len() < 300, "{shown}");
        assert_eq!(kept(&results, shown), Some(format!("[file:///a]\n{text}")));
        let short = embedded("text", "short".to_owned());
        assert_eq!(cut_value(100, &short).0, short);
        let (cut, _) = cut_value(100, &embedded("blob", "x".repeat(OTHER_MAX)));
        let told = cut["content"][0]["text"].as_str().expect("a text");
        assert!(told.starts_with("[resource of ") && told.contains("left out"), "{told}");
    }

    #[test]
    fn characters_are_not_cut_in_two() {
        for limit in 0..40 {
            let text = json!({"content": [{"type": "text", "text": "äöü€🦀".repeat(10)}]});
            let (result, _) = cut_value(limit, &text);
            assert!(result["content"][0]["text"].as_str().expect("a text").contains("cut"));
        }
    }

    #[test]
    fn what_is_no_text_has_a_limit_each_and_in_all() {
        let image = |bytes: usize| json!({"type": "image", "data": "x".repeat(bytes)});
        let kinds = |result: &Value| -> Vec<String> {
            let (result, _) = cut_value(1_000, result);
            let items = result["content"].as_array().expect("items").iter();
            items.map(|item| item["type"].as_str().expect("a type").to_owned()).collect()
        };
        assert_eq!(kinds(&json!({"content": [image(OTHER_MAX + 1)]})), ["text"]);
        let three = [image(3 << 20), image(3 << 20), image(3 << 20), image(1 << 20)];
        assert_eq!(kinds(&json!({"content": three})), ["image", "image", "text", "image"]);
        let meta = json!({"_meta": {"x": "x".repeat(3 << 20)}, "content": [image(4 << 19), image(4 << 20 >> 1), image(3 << 20)]});
        assert_eq!(kinds(&meta), ["image", "image", "text"]);
        let field = json!({"content": [], "new": "x".repeat(OTHER_MAX)});
        assert!(cut_value(usize::MAX, &field).0.get("new").is_none());
        let hidden = json!({"content": [{"type": "text", "text": "a", "_meta": {"x": "x".repeat(OTHER_MAX)}}]});
        let (told, _) = cut_value(1_000, &hidden);
        assert!(
            told.to_string().len() < 200 && told.to_string().contains("a\\n[text of"),
            "{told}"
        );
    }
}
