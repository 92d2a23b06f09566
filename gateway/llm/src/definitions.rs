//! Definitions of tools in the text of a request: those that stay keep their bytes and their places.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::Value;
use toolgate_llm::strategy::Api;

use crate::raw;
use crate::toolset::DeferredTool;

/// Definitions that stay in a request.
#[derive(Debug)]
pub(crate) struct Definitions {
    api: Api,
    entries: Vec<Entry>,
}

#[derive(Debug)]
enum Entry {
    One(Definition),
    List(List),
    /// A definition that was removed. It is in no text, so that lists keep their places.
    Removed,
}

/// Definition of the host's own.
#[derive(Debug)]
struct Definition {
    text: String,
    value: Value,
}

/// Entry that holds a list of definitions: a namespace of OpenAI's Responses, or `functionDeclarations` of Gemini.
#[derive(Debug)]
struct List {
    /// The entry with its list, which is read for its other fields.
    value: Value,
    key: String,
    /// Text of the entry before and behind the definitions.
    before: String,
    after: String,
    kept: Vec<Definition>,
    is_thinned: bool,
}

/// Definition as it is read.
pub(crate) struct Given<'a> {
    pub(crate) text: &'a str,
    pub(crate) value: &'a Value,
    /// Place of the list that it stands in.
    pub(crate) list: Option<usize>,
    /// Name of the namespace that it stands in.
    pub(crate) namespace: Option<&'a str>,
}

impl Definitions {
    /// Reads the text of `tools`. What `take` takes is left out. `None` if the text is no list.
    pub(crate) fn read(
        api: Api,
        text: &str,
        mut take: impl FnMut(&Given<'_>) -> bool,
    ) -> Option<Self> {
        let mut entries = Vec::new();
        for text in raw::items(text)? {
            let value: Value = serde_json::from_str(text).ok()?;
            let entry = match list_key(api, &value) {
                Some(key) => {
                    let mut list = List::read(text, value, key)?;
                    let items = raw::items(raw::field(text, key)?)?;
                    list.fill(&items, entries.len(), &mut take)?;
                    Entry::List(list)
                }
                None if take(&Given { text, value: &value, list: None, namespace: None }) => {
                    continue;
                }
                None => Entry::One(Definition { text: text.to_owned(), value }),
            };
            entries.push(entry);
        }
        Some(Self { api, entries })
    }

    /// Returns the definitions as the strategies take them.
    pub(crate) fn own(&self) -> Vec<Value> {
        let mut own = Vec::new();
        for entry in &self.entries {
            match entry {
                Entry::Removed => {}
                // Those of Gemini's that are no functions have no name that matters here.
                Entry::One(definition) => own.push(definition.value.clone()),
                Entry::List(list) if self.api == Api::Gemini => own.extend(list.values()),
                Entry::List(list) if list.is_empty() => {}
                Entry::List(list) => {
                    let mut value = list.value.clone();
                    value[&list.key] = list.values().collect();
                    own.push(value);
                }
            }
        }
        own
    }

    /// Puts a definition that was taken back into its list, or at the end.
    pub(crate) fn put_back(&mut self, list: Option<usize>, text: String) {
        let value = serde_json::from_str(&text).unwrap_or_default();
        let definition = Definition { text, value };
        match list.and_then(|at| self.entries.get_mut(at)) {
            Some(Entry::List(list)) => list.kept.push(definition),
            _ => self.entries.push(Entry::One(definition)),
        }
    }

    /// Removes the definitions of functions that have these names in requests.
    pub(crate) fn remove(&mut self, names: &HashSet<String>) {
        let api = self.api;
        let is_named = |definition: &Definition, at: Option<usize>, namespace: Option<&str>| {
            let Definition { text, value } = definition;
            let tool = DeferredTool::read(api, &Given { text, value, list: at, namespace });
            tool.is_some_and(|tool| names.contains(&tool.name))
        };
        for (at, entry) in self.entries.iter_mut().enumerate() {
            match entry {
                Entry::One(definition) if is_named(definition, None, None) => {
                    *entry = Entry::Removed;
                }
                Entry::One(_) | Entry::Removed => {}
                Entry::List(list) => {
                    let namespace = list.value["name"].as_str();
                    let before = list.kept.len();
                    list.kept.retain(|definition| !is_named(definition, Some(at), namespace));
                    list.is_thinned |= list.kept.len() < before;
                }
            }
        }
    }

    /// Returns true if there is something that a host can have the model call: of Gemini's tools that are functions alone.
    pub(crate) fn has_callable(&self) -> bool {
        self.entries.iter().any(|entry| match entry {
            Entry::One(_) => self.api != Api::Gemini,
            Entry::List(list) => !list.kept.is_empty(),
            Entry::Removed => false,
        })
    }

    /// Returns the text of `tools` with further definitions behind those that stay.
    pub(crate) fn text(&self, further: &[Value]) -> String {
        let further: Vec<String> = further.iter().map(Value::to_string).collect();
        let mut texts = Vec::new();
        let mut left = if self.api == Api::Gemini { further.as_slice() } else { &[] };
        for entry in &self.entries {
            match entry {
                Entry::Removed => {}
                Entry::One(definition) => texts.push(definition.text.clone()),
                // The first list that lost functions gets those of the proxy.
                Entry::List(list) if list.is_thinned && !left.is_empty() => {
                    texts.push(list.text(left));
                    left = &[];
                }
                Entry::List(list) if list.is_empty() => {}
                Entry::List(list) => texts.push(list.text(&[])),
            }
        }
        if self.api != Api::Gemini {
            texts.extend(further);
        }
        format!("[{}]", texts.join(","))
    }
}

impl List {
    fn read(text: &str, value: Value, key: &str) -> Option<Self> {
        let range = place(text, raw::field(text, key)?);
        Some(Self {
            value,
            key: key.to_owned(),
            before: text[..range.start].to_owned(),
            after: text[range.end..].to_owned(),
            kept: Vec::new(),
            is_thinned: false,
        })
    }

    fn fill(
        &mut self,
        items: &[&str],
        at: usize,
        take: &mut impl FnMut(&Given<'_>) -> bool,
    ) -> Option<()> {
        for text in items {
            let value: Value = serde_json::from_str(text).ok()?;
            let namespace = self.value["name"].as_str();
            if take(&Given { text, value: &value, list: Some(at), namespace }) {
                self.is_thinned = true;
            } else {
                self.kept.push(Definition { text: (*text).to_owned(), value });
            }
        }
        Some(())
    }

    fn values(&self) -> impl Iterator<Item = Value> {
        self.kept.iter().map(|definition| definition.value.clone())
    }

    /// Returns true if nothing is left of it.
    fn is_empty(&self) -> bool {
        let has_more =
            self.key != NAMESPACE && self.value.as_object().is_some_and(|all| all.len() > 1);
        self.is_thinned && self.kept.is_empty() && !has_more
    }

    fn text(&self, further: &[String]) -> String {
        let kept = self.kept.iter().map(|definition| definition.text.as_str());
        let all: Vec<&str> = kept.chain(further.iter().map(String::as_str)).collect();
        format!("{}[{}]{}", self.before, all.join(","), self.after)
    }
}

/// Field of the functions in a namespace.
const NAMESPACE: &str = "tools";

/// Returns the field of an entry that holds a list of definitions.
fn list_key(api: Api, value: &Value) -> Option<&'static str> {
    let keys: &[&str] = match api {
        Api::OpenAiResponses if value["type"] == "namespace" => &[NAMESPACE],
        Api::Gemini => &["functionDeclarations", "function_declarations"],
        _ => &[],
    };
    keys.iter().find(|key| value.get(**key).is_some()).copied()
}

/// Returns the place of a part within its text.
pub(crate) fn place(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Reads definitions; those whose name begins with `d` are taken.
    fn read(api: Api, text: &str) -> Definitions {
        let take = |given: &Given<'_>| {
            given.value["name"].as_str().is_some_and(|name| name.starts_with('d'))
        };
        Definitions::read(api, text, take).expect("a list")
    }

    #[test]
    fn what_stays_keeps_its_bytes_and_its_place() {
        let further = [json!({ "name": "x" })];
        for (api, text, expected) in [
            (
                Api::OpenAiResponses,
                r#"[ {"type":"web_search"} , { "type":"namespace" ,"name":"n", "tools" : [{ "name":"a"}, {"name":"d1"}] , "z":1.0 },{"name":"d2"},{"name":"b"}]"#,
                r#"[{"type":"web_search"},{ "type":"namespace" ,"name":"n", "tools" : [{ "name":"a"}] , "z":1.0 },{"name":"b"},{"name":"x"}]"#,
            ),
            (
                Api::OpenAiResponses,
                r#"[{"type":"namespace","name":"n","tools":[{"name":"d1"}]}, {"type":"namespace","name":"o","tools":[]}]"#,
                r#"[{"type":"namespace","name":"o","tools":[]},{"name":"x"}]"#,
            ),
            (
                Api::Gemini,
                r#"[{"googleSearch": {}}, {"functionDeclarations":[ {"name":"d1"},{ "name" : "a" } ]},{"function_declarations":[{"name":"d2"}]},{"functionDeclarations":[{"name":"d3"}],"urlContext":{}}]"#,
                r#"[{"googleSearch": {}},{"functionDeclarations":[{ "name" : "a" },{"name":"x"}]},{"functionDeclarations":[],"urlContext":{}}]"#,
            ),
        ] {
            assert_eq!(read(api, text).text(&further), expected);
        }
    }

    #[test]
    fn what_comes_back_goes_into_its_list() {
        let text = r#"[{"functionDeclarations":[{"name":"d1"}]}]"#;
        let mut definitions = read(Api::Gemini, text);
        definitions.put_back(Some(0), r#"{"name":"d1"}"#.to_owned());
        assert_eq!(definitions.text(&[]), text);
        assert_eq!(definitions.own(), [json!({ "name": "d1" })]);
        definitions.put_back(None, "{}".to_owned());
        assert_eq!(definitions.text(&[]), r#"[{"functionDeclarations":[{"name":"d1"}]},{}]"#);
    }

    #[test]
    fn what_is_removed_moves_no_list() {
        let tool =
            |name: &str| format!(r#"{{"type":"function","name":"{name}","parameters":{{}}}}"#);
        let within = format!(r#"{{"type":"namespace","name":"n","tools":[{}]}}"#, tool("d1"));
        let text = format!("[{},{},{within}]", tool("a"), tool("b"));
        let mut definitions = read(Api::OpenAiResponses, &text);
        definitions.remove(&HashSet::from(["a".to_owned()]));
        assert!(definitions.has_callable());
        // The list stood third, and stands there still.
        definitions.put_back(Some(2), tool("d1"));
        assert_eq!(definitions.text(&[]), format!("[{},{within}]", tool("b")));
        definitions.remove(&HashSet::from(["b".to_owned(), "n__d1".to_owned()]));
        assert_eq!((definitions.text(&[]).as_str(), definitions.own().len()), ("[]", 0));
        assert!(!definitions.has_callable());
    }

    #[test]
    fn a_namespace_is_one_definition_of_the_hosts() {
        let text = r#"[{"type":"namespace","name":"n","tools":[{"name":"a"},{"name":"d1"}]}]"#;
        let own = read(Api::OpenAiResponses, text).own();
        assert_eq!(own, [json!({ "type": "namespace", "name": "n", "tools": [{ "name": "a" }] })]);
    }

    #[test]
    fn other_shapes_are_no_definitions() {
        let never = |_: &Given<'_>| false;
        for text in ["{}", "7", r#"[{"functionDeclarations":{}}]"#] {
            assert!(Definitions::read(Api::Gemini, text, never).is_none(), "{text}");
        }
    }
}
