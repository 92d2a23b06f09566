//! Gemini's `generateContent`: schemas of functions, and the parts of answers.

use serde_json::{Map, Value, json};
use toolgate_llm::envelope::is_envelope;

use crate::answer::{Asked, Results, add_usage, is_search, open};
use crate::gate::Call;
use crate::raw;

/// Reason of an answer that came to its end.
pub(crate) const STOPPED: &str = "STOP";

/// Field of a part with the signature of the thoughts before it. It stands with the first of several calls.
const SIGNATURE: &str = "thoughtSignature";

/// Both names of the field of a `toolConfig` that says how functions are called.
const CALLING: [&str; 2] = ["functionCallingConfig", "function_calling_config"];

/// Deepest schema that is converted.
const NESTING_MAX: usize = 64;

/// Keywords whose values are numbers, which Gemini's schemas have as texts too.
const COUNTS: [&str; 6] =
    ["minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"];

/// Returns the JSON Schema of a function's parameters. `None` if the host can't just call the function.
pub(crate) fn schema(text: &str, declaration: &Value) -> Option<String> {
    if declaration.get("behavior").is_some_and(|behavior| behavior != "BLOCKING") {
        return None;
    }
    for key in ["parametersJsonSchema", "parameters_json_schema"] {
        if let Some(schema) = raw::field(text, key) {
            return Some(schema.to_owned());
        }
    }
    let schema = match declaration.get("parameters") {
        Some(schema) => json_schema(schema, 0)?,
        None => json!({ "type": "object", "properties": {} }),
    };
    Some(schema.to_string())
}

/// Returns a schema of Gemini's kind as JSON Schema. `None` if it is nested too deeply.
fn json_schema(schema: &Value, nesting: usize) -> Option<Value> {
    if nesting > NESTING_MAX {
        return None;
    }
    let Value::Object(fields) = schema else { return Some(schema.clone()) };
    let mut converted = Map::new();
    for (key, value) in fields {
        let value = match (key.as_str(), value) {
            ("nullable" | "propertyOrdering", _) => continue,
            ("type", Value::String(kind)) => kind.to_lowercase().into(),
            ("items", schema) => json_schema(schema, nesting + 1)?,
            ("anyOf", Value::Array(schemas)) => {
                let all = schemas.iter().map(|schema| json_schema(schema, nesting + 1));
                all.collect::<Option<Vec<_>>>()?.into()
            }
            ("properties", Value::Object(schemas)) => {
                let named = schemas
                    .iter()
                    .map(|(name, schema)| Some((name.clone(), json_schema(schema, nesting + 1)?)));
                Value::Object(named.collect::<Option<Map<_, _>>>()?)
            }
            (count, Value::String(number)) if COUNTS.contains(&count) => {
                number.parse::<u64>().ok()?.into()
            }
            (_, value) => value.clone(),
        };
        converted.insert(key.clone(), value);
    }
    if fields.get("nullable") == Some(&Value::Bool(true))
        && let Some(kind) = converted.get_mut("type")
    {
        *kind = json!([kind, "null"]);
    }
    Some(converted.into())
}

/// Reader of the parts of one answer.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub(crate) asked: Asked,
    /// Signature of a search that was taken out, for the call that is the first now.
    signature: Option<Value>,
}

impl Parts {
    /// Opens the call in a part. Returns false if it is a search, which is noted.
    pub(crate) fn keep(&mut self, part: &mut Value) -> bool {
        let Some(key) = call_key(part) else { return true };
        let call = &mut part[key];
        let id = call["id"].as_str().unwrap_or_default().to_owned();
        if !self.asked.keep(id, call, "args") {
            let signature = part.get(SIGNATURE).cloned();
            self.signature = self.signature.take().or(signature);
            return false;
        }
        if let Some(signature) = self.signature.take()
            && part.get(SIGNATURE).is_none()
        {
            part[SIGNATURE] = signature;
        }
        true
    }
}

/// Returns the call in a part, as it stands there.
pub(crate) fn call_of(part: &Value) -> Option<Call> {
    let call = &part[call_key(part)?];
    let text = |key: &str| call[key].as_str().unwrap_or_default().to_owned();
    let arguments = call.get("args").map_or_else(|| "{}".to_owned(), Value::to_string);
    Some(Call { id: text("id"), name: text("name"), arguments })
}

/// Returns the calls of a whole answer, as they stand there.
pub(crate) fn calls(answer: &Value) -> Vec<Call> {
    let parts = answer["candidates"][0]["content"]["parts"].as_array();
    parts.into_iter().flatten().filter_map(call_of).collect()
}

/// Takes the calls out of a whole answer.
pub(crate) fn remove_calls(answer: &mut Value) {
    let parts = answer.pointer_mut("/candidates/0/content/parts").and_then(Value::as_array_mut);
    if let Some(parts) = parts {
        parts.retain(|part| call_key(part).is_none());
    }
}

/// Returns true if a whole answer came to its end.
pub(crate) fn is_whole(answer: &Value) -> bool {
    answer["candidates"][0]["finishReason"] == STOPPED
}

fn call_key(part: &Value) -> Option<&'static str> {
    ["functionCall", "function_call"].into_iter().find(|key| part[*key].is_object())
}

/// Returns the part that says nothing to the model: a summary of its thoughts.
fn is_summary(part: &Value) -> bool {
    part["thought"] == true && part.get(SIGNATURE).is_none()
}

/// Adds a part of an answer to what goes back to the model. Texts that came in pieces are joined.
pub(crate) fn add_said(said: &mut Vec<Value>, part: &Value) {
    if is_summary(part) {
        return;
    }
    let is_text =
        |part: &Value| part["text"].is_string() && part.as_object().map(Map::len) == Some(1);
    match (said.last_mut().filter(|last| is_text(last)), part["text"].as_str()) {
        (Some(last), Some(more)) if is_text(part) => {
            let text = last["text"].as_str().unwrap_or_default();
            last["text"] = format!("{text}{more}").into();
        }
        _ => said.push(part.clone()),
    }
}

/// Returns the message with which the model's parts go back to it.
pub(crate) fn message(parts: &[Value]) -> Value {
    json!({ "role": "model", "parts": parts })
}

/// Returns the message with which a whole answer goes back to the model.
pub(crate) fn as_history(answer: &Value) -> Value {
    let mut said = Vec::new();
    let parts = answer["candidates"][0]["content"]["parts"].as_array();
    parts.into_iter().flatten().for_each(|part| add_said(&mut said, part));
    message(&said)
}

/// Opens the envelopes of a whole answer and takes the searches out of it. Those of an answer that was cut off are not
/// noted.
pub(crate) fn opened(answer: &mut Value) -> Asked {
    let is_whole = is_whole(answer);
    let mut parts = Parts::default();
    let content = answer.pointer_mut("/candidates/0/content/parts").and_then(Value::as_array_mut);
    if let Some(all) = content {
        all.retain_mut(|part| parts.keep(part));
    }
    if !is_whole {
        parts.asked.searches.clear();
    }
    parts.asked
}

/// Returns the results of calls as a message. It has those of the calls in what the model said, in their order: calls may have
/// no ID.
pub(crate) fn results(said: &[Value], results: &Results<'_>) -> Value {
    let mut found = results.found.iter();
    let mut told = results.told.iter();
    let parts = said.iter().filter_map(|message| message["parts"].as_array()).flatten();
    let calls = parts.filter_map(|part| Some(&part[call_key(part)?]));
    let answers = calls.filter_map(|call| {
        let text = if asks(call) { found.next().map(|found| &found.text) } else { told.next() }?;
        let mut answer = json!({ "name": call["name"], "response": { "output": text } });
        if let Some(id) = call.get("id") {
            answer["id"] = id.clone();
        }
        Some(json!({ "functionResponse": answer }))
    });
    json!({ "role": "user", "parts": answers.collect::<Vec<_>>() })
}

/// Returns true if a call asks for a search, by itself or in an envelope.
fn asks(call: &Value) -> bool {
    let name = call["name"].as_str().unwrap_or_default();
    let in_envelope =
        || call.get("args").and_then(open).is_some_and(|named| is_search(&named.name));
    is_search(name) || (is_envelope(name) && in_envelope())
}

/// Adds a usage to another. Lists of tokens by modality are added up by that.
pub(crate) fn add(total: &mut Value, more: &Value) {
    let before = total.as_object().cloned();
    add_usage(total, more);
    let Some(before) = before else { return };
    let Some(after) = more.as_object() else { return };
    for (name, value) in &before {
        let lists = (value.as_array(), after.get(name).and_then(Value::as_array));
        match lists {
            (Some(one), Some(two)) => total[name] = by_modality(one, two),
            (Some(one), None) => total[name] = one.clone().into(),
            _ => {}
        }
    }
}

fn by_modality(one: &[Value], two: &[Value]) -> Value {
    let mut all = one.to_vec();
    for more in two {
        match all.iter_mut().find(|known| known["modality"] == more["modality"]) {
            Some(known) => {
                let count = |value: &Value| value["tokenCount"].as_u64().unwrap_or_default();
                known["tokenCount"] = count(known).saturating_add(count(more)).into();
            }
            None => all.push(more.clone()),
        }
    }
    all.into()
}

/// Joins two answers of one turn: what the first said comes first, and the usage is that of both.
pub(crate) fn joined(first: &Value, mut second: Value) -> Value {
    if !second.is_object() {
        return second;
    }
    let mut usage = first["usageMetadata"].clone();
    add(&mut usage, &second["usageMetadata"]);
    if !usage.is_null() {
        second["usageMetadata"] = usage;
    }
    if let Some(id) = first.get("responseId") {
        second["responseId"] = id.clone();
    }
    let parts = |answer: &Value| {
        let parts = answer["candidates"][0]["content"]["parts"].as_array();
        parts.cloned().unwrap_or_default()
    };
    let all = [parts(first), parts(&second)].concat();
    if let Some(candidate) = second.pointer_mut("/candidates/0").filter(|one| one.is_object()) {
        if candidate["content"].is_object() {
            candidate["content"]["parts"] = all.into();
        } else {
            candidate["content"] = message(&all);
        }
    }
    second
}

/// Returns the name of the model in the path of a request.
pub(crate) fn model(path: &str) -> Option<&str> {
    let (model, _) = path.rsplit('/').next()?.split_once(':')?;
    (!model.is_empty()).then_some(model)
}

/// Returns the reason for which a request is sent as it came.
pub(crate) fn doubt(body: &Map<String, Value>) -> Option<&'static str> {
    let of = |value: &Value, names: [&str; 2]| {
        names.iter().find_map(|name| value.get(*name)).cloned().unwrap_or_default()
    };
    let whole = |names: [&str; 2]| names.iter().find_map(|name| body.get(*name));
    if whole(["cachedContent", "cached_content"]).is_some() {
        return Some("unknown-history");
    }
    let generation = whole(["generationConfig", "generation_config"]);
    let count = generation.map(|all| of(all, ["candidateCount", "candidate_count"]));
    if count.is_some_and(|count| !count.is_null() && count != 1) {
        return Some("several-choices");
    }
    let calling = calling(body);
    let streamed = of(&calling, ["streamFunctionCallArguments", "stream_function_call_arguments"]);
    (streamed == true).then_some("partial-arguments")
}

/// Returns the names of the functions that the host allows alone.
pub(crate) fn chosen(body: &Map<String, Value>) -> Vec<String> {
    let calling = calling(body);
    let allowed = ["allowedFunctionNames", "allowed_function_names"];
    let names = allowed.iter().filter_map(|key| calling[*key].as_array()).flatten();
    names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// Returns true if the host has the model call a function, whatever it would say.
pub(crate) fn is_forced(body: &Map<String, Value>) -> bool {
    calling(body)["mode"] == "ANY"
}

/// Returns the text of a `toolConfig` without what it says of calls.
pub(crate) fn without_calling(config: &str) -> String {
    let fields = raw::fields(config).unwrap_or_default();
    let left = fields.iter().filter(|field| !CALLING.contains(&field.name.as_str()));
    raw::object(left.map(|field| (field.name.as_str(), field.text.to_owned())))
}

fn calling(body: &Map<String, Value>) -> Value {
    let config = ["toolConfig", "tool_config"].iter().find_map(|name| body.get(*name));
    let calling = config.and_then(|config| CALLING.iter().find_map(|key| config.get(*key)));
    calling.cloned().unwrap_or_default()
}

/// Returns an error amid a stream.
pub(crate) fn error(message: &str) -> Value {
    json!({ "error": { "code": 502, "message": message, "status": "UNAVAILABLE" } })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use toolgate_llm::SEARCH_TOOL_NAME;
    use toolgate_llm::envelope::{CALL_TOOL_NAME, wrap_history};
    use toolgate_llm::strategy::Api;

    use super::*;
    use crate::answer::Found;

    fn call(name: &str, args: &Value) -> Value {
        json!({ "functionCall": { "id": "1", "name": name, "args": args } })
    }

    fn answer(parts: &Value, reason: &str) -> Value {
        json!({ "candidates": [{ "content": { "role": "model", "parts": parts },
            "finishReason": reason }] })
    }

    #[test]
    fn schemas_of_geminis_kind_are_converted() {
        let converted = |declaration: &Value| {
            schema(&declaration.to_string(), declaration)
                .map(|text| serde_json::from_str::<Value>(&text).expect("JSON"))
        };
        let given = json!({ "name": "f", "parameters": {
            "type": "OBJECT", "propertyOrdering": ["type"], "required": ["type"],
            "properties": {
                "type": { "type": "STRING", "nullable": true, "enum": ["A"] },
                "list": { "type": "ARRAY", "minItems": "2", "items": { "type": "INTEGER" } },
                "either": { "anyOf": [{ "type": "NUMBER" }, { "type": "BOOLEAN" }] } } } });
        let expected = json!({ "type": "object", "required": ["type"], "properties": {
            "type": { "type": ["string", "null"], "enum": ["A"] },
            "list": { "type": "array", "minItems": 2, "items": { "type": "integer" } },
            "either": { "anyOf": [{ "type": "number" }, { "type": "boolean" }] } } });
        assert_eq!(converted(&given), Some(expected));
        let none = json!({ "type": "object", "properties": {} });
        assert_eq!(converted(&json!({ "name": "f" })), Some(none));
        let text = r#"{"name":"f","parametersJsonSchema":{ "x":1.0 }}"#;
        let read = serde_json::from_str(text).expect("JSON");
        assert_eq!(schema(text, &read).as_deref(), Some(r#"{ "x":1.0 }"#));
        assert_eq!(converted(&json!({ "name": "f", "behavior": "NON_BLOCKING" })), None);
    }

    #[test]
    fn a_schema_without_a_bottom_is_not_converted() {
        let mut deep = json!({ "type": "STRING" });
        for _ in 0..=NESTING_MAX {
            deep = json!({ "type": "ARRAY", "items": deep });
        }
        assert_eq!(schema("{}", &json!({ "name": "f", "parameters": deep })), None);
    }

    #[test]
    fn envelopes_are_opened_and_keep_the_signature_of_their_thoughts() {
        let mut part = call(CALL_TOOL_NAME, &json!({ "name": "t", "arguments": { "z": 1.0 } }));
        part["thoughtSignature"] = "s".into();
        let mut opened_part = call("t", &json!({ "z": 1.0 }));
        opened_part["thoughtSignature"] = "s".into();
        let mut given = answer(&json!([{ "text": "x" }, part]), STOPPED);
        assert!(opened(&mut given).has_calls);
        assert_eq!(given, answer(&json!([{ "text": "x" }, opened_part]), STOPPED));
        let mut history = [given["candidates"][0]["content"].clone()];
        wrap_history(Api::Gemini, &mut history, &HashSet::new());
        assert_eq!(history[0]["parts"], json!([{ "text": "x" }, part]));
    }

    #[test]
    fn a_signature_goes_from_a_search_to_the_next_call() {
        let mut search = call(SEARCH_TOOL_NAME, &json!({ "query": "q" }));
        search["thoughtSignature"] = "s".into();
        let mut given =
            answer(&json!([search, call("a", &json!({})), call("b", &json!({}))]), STOPPED);
        let asked = opened(&mut given);
        assert_eq!((asked.searches.len(), asked.has_calls), (1, true));
        let parts = &given["candidates"][0]["content"]["parts"];
        assert_eq!(parts[0]["thoughtSignature"], "s");
        assert_eq!(parts[1], call("b", &json!({})));
    }

    #[test]
    fn searches_are_answered_by_the_names_that_the_model_called() {
        let within = json!({ "name": SEARCH_TOOL_NAME, "arguments": { "query": "q" } });
        let whole = answer(
            &json!([{ "text": "hm", "thought": true }, { "text": "a" }, { "text": "b" },
                call(SEARCH_TOOL_NAME, &json!({ "query": "q" })),
                { "functionCall": { "name": CALL_TOOL_NAME, "args": within } }]),
            STOPPED,
        );
        let said = as_history(&whole);
        assert_eq!(said["parts"][0], json!({ "text": "ab" }));
        assert_eq!(opened(&mut whole.clone()).searches.len(), 2);
        let found = ["one", "two"].map(|text| Found { text: text.to_owned(), ..Found::default() });
        let found = results(&[said], &Results { found: &found, ..Results::default() });
        let expected = json!([
            { "functionResponse": { "name": SEARCH_TOOL_NAME, "response": { "output": "one" }, "id": "1" } },
            { "functionResponse": { "name": CALL_TOOL_NAME, "response": { "output": "two" } } }]);
        assert_eq!(found["parts"], expected);
    }

    #[test]
    fn a_search_that_was_cut_off_is_none() {
        let mut cut = answer(&json!([call(SEARCH_TOOL_NAME, &json!({}))]), "MAX_TOKENS");
        assert_eq!(opened(&mut cut), Asked::default());
        assert_eq!(cut, answer(&json!([]), "MAX_TOKENS"));
        assert_eq!(opened(&mut json!({ "promptFeedback": {} })), Asked::default());
        assert_eq!(opened(&mut json!([7])), Asked::default());
    }

    #[test]
    fn answers_of_one_turn_are_joined() {
        let usage = |tokens: u64| {
            json!({ "promptTokenCount": tokens, "promptTokensDetails": [
                { "modality": "TEXT", "tokenCount": tokens }] })
        };
        let mut first = answer(&json!([{ "text": "a" }]), STOPPED);
        first["usageMetadata"] = usage(2);
        first["responseId"] = "r1".into();
        let mut second = answer(&json!([{ "text": "b" }]), STOPPED);
        second["usageMetadata"] = usage(3);
        second["responseId"] = "r2".into();
        let mut expected = answer(&json!([{ "text": "a" }, { "text": "b" }]), STOPPED);
        expected["usageMetadata"] = usage(5);
        expected["responseId"] = "r1".into();
        assert_eq!(joined(&first, second), expected);
        assert_eq!(joined(&first, json!([7])), json!([7]));
    }

    #[test]
    fn models_are_named_by_the_path() {
        assert_eq!(model("/v1beta/models/gemini-3-pro:generateContent"), Some("gemini-3-pro"));
        for other in ["/v1beta/models", "/v1beta/models/:generateContent", ""] {
            assert_eq!(model(other), None, "{other}");
        }
    }
}
