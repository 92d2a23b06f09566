//! OpenAI's Responses: items of requests, and the output of answers.

use std::slice;

use serde_json::{Map, Value, json};
use toolgate_llm::envelope::is_envelope;

use crate::answer::{Asked, Results, Search, is_search, join_heads};
use crate::gate::Call;
use crate::kept::{LATE, OpenCall};
use crate::opener::{Opener, Part};
use crate::raw;
use crate::toolset::{Names, Namespaced};

/// Calls that the provider answers by itself. The host answers all others.
const OF_PROVIDER: [&str; 5] = [
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
];

/// Calls that a text answers, whatever tool they are of.
const ANSWERABLE: [&str; 2] = ["function_call", "custom_tool_call"];

/// Kind of a search by the API's own tool, which the client executes. Of requests that are rewritten, the proxy is that.
const TOOL_SEARCH: &str = "tool_search_call";

/// Message of the developer's that a search found nothing, and what it adds while servers still connect.
const NOTHING: &str =
    "No tool fits: try other words, fewer of them with a +, or an MCP server's name.";
const LATER: &str =
    " The servers in `pending_servers` are still connecting: search again in a while.";

/// Returns the reason for which a request is sent as it came.
pub(crate) fn doubt(body: &Map<String, Value>) -> Option<&'static str> {
    let is_set = |name: &str| body.get(name).is_some_and(|value| !value.is_null());
    if is_set("conversation") {
        // The provider would keep hidden searches in it.
        return Some("unknown-history");
    }
    (body.get("background") == Some(&Value::Bool(true))).then_some("background")
}

/// Returns true if an item says that the host defers tools by itself.
pub(crate) fn is_deferring(item: &Value) -> bool {
    let kinds = [TOOL_SEARCH, "tool_search_output", "additional_tools"];
    item["type"].as_str().is_some_and(|kind| kinds.contains(&kind))
}

/// Returns the search in an item, if the model made it by the API's own tool.
pub(crate) fn search_in(item: &Value) -> Option<Search> {
    let is_asked = item["type"] == TOOL_SEARCH && item["execution"] != "server";
    let id = item["call_id"].as_str().unwrap_or_default().to_owned();
    is_asked.then(|| Search { id, arguments: item["arguments"].clone() })
}

/// Returns true if an item is thoughts of the model's.
pub(crate) fn is_thought(item: &Value) -> bool {
    item["type"] == "reasoning"
}

/// Returns true for thoughts that lead to nothing, because what they led to was a hidden search. OpenAI refuses them.
pub(crate) fn is_lone(item: &Value, next: Option<&Value>) -> bool {
    is_thought(item)
        && next.is_none_or(|next| {
            let kind = next["type"].as_str().unwrap_or_default();
            kind == "reasoning" || kind.ends_with("_output") || next["role"] == "user"
        })
}

/// Writes calls of tools in namespaces under the names that models get in their place.
pub(crate) fn join_names(item: &mut Value, names: &Names) {
    if item["type"] != "function_call" {
        return;
    }
    let is_named = |namespace: &Value, name: &Value| {
        names.iter().find(|(_, within)| within.namespace == *namespace && within.name == *name)
    };
    let Some((joined, _)) = is_named(&item["namespace"], &item["name"]) else { return };
    item["name"] = joined.as_str().into();
    if let Some(fields) = item.as_object_mut() {
        fields.shift_remove("namespace");
    }
}

/// Writes a call under the host's names of its tool.
pub(crate) fn put(item: &mut Value, name: &str, arguments: &str, names: &Names) {
    match names.get(name) {
        Some(within) => {
            item["name"] = within.name.as_str().into();
            item["namespace"] = within.namespace.as_str().into();
        }
        None => item["name"] = name.into(),
    }
    item["arguments"] = arguments.into();
}

/// Writes a call that the model made by the name that it has in the place of the host's under the host's names. Returns false
/// if it has them already.
pub(crate) fn split_name(item: &mut Value, names: &Names) -> bool {
    if item["type"] != "function_call" || item["namespace"].is_string() {
        return false;
    }
    let Some(within) = item["name"].as_str().and_then(|name| names.get(name)) else { return false };
    item["name"] = within.name.as_str().into();
    item["namespace"] = within.namespace.as_str().into();
    true
}

/// Returns the name of a call's tool. Of a namespace and a name it is the one that stands for both.
fn name_of(item: &Value) -> String {
    let text = |key: &str| item[key].as_str().map(str::to_owned);
    let name = text("name").unwrap_or_default();
    match text("namespace") {
        Some(namespace) => Namespaced { namespace, name }.joined(),
        None => name,
    }
}

/// Returns the call of the host's in an item, if a text answers it.
pub(crate) fn call_of(item: &Value) -> Option<Call> {
    if !is_answerable(item) {
        return None;
    }
    let text = |key: &str| item[key].as_str().unwrap_or_default().to_owned();
    let arguments = if item["type"] == "function_call" { "arguments" } else { "input" };
    Some(Call { id: text("call_id"), name: name_of(item), arguments: text(arguments) })
}

/// Returns the call of the host's in an item, as the model wrote it, if a text answers it.
pub(crate) fn open_call(item: &Value) -> Option<OpenCall> {
    if !is_answerable(item) || are_searches(slice::from_ref(item)) {
        return None;
    }
    let id = item["call_id"].as_str()?.to_owned();
    let is_custom = item["type"] == "custom_tool_call";
    Some(if is_custom { OpenCall::Custom(id) } else { OpenCall::Function(id) })
}

/// Returns true if a text answers a call.
pub(crate) fn is_answerable(item: &Value) -> bool {
    item["type"].as_str().is_some_and(|kind| ANSWERABLE.contains(&kind))
}

/// Returns true if items, as the model wrote them, are searches that the proxy answers.
pub(crate) fn are_searches(items: &[Value]) -> bool {
    items.iter().all(|item| {
        let name = item["name"].as_str().unwrap_or_default();
        let named = || call_in(item["arguments"].as_str().unwrap_or_default()).name;
        let is_within = || is_envelope(name) && named().is_some_and(|name| is_search(&name));
        let is_function = item["type"] == "function_call" && (is_search(name) || is_within());
        is_function || search_in(item).is_some()
    })
}

/// Returns true if all of these items are taken back where a call of their answer is refused: calls, and searches.
pub(crate) fn are_taken_back(items: &[Value]) -> bool {
    items.iter().all(|item| is_answerable(item) || search_in(item).is_some())
}

/// Returns the place of the first call of the host's in an answer, as the model wrote it; that of its end if there is none.
pub(crate) fn first_call(items: &[Value]) -> usize {
    let is_call = |item: &Value| is_hosts(item) && !are_searches(slice::from_ref(item));
    items.iter().position(is_call).unwrap_or(items.len())
}

/// Returns the calls of a whole answer that texts answer.
pub(crate) fn calls(answer: &Value) -> Vec<Call> {
    answer["output"].as_array().into_iter().flatten().filter_map(call_of).collect()
}

/// Returns true if a text answers each of the host's calls in a whole answer.
pub(crate) fn are_answerable(answer: &Value) -> bool {
    let items = answer["output"].as_array();
    items.into_iter().flatten().all(|item| is_answerable(item) || !is_hosts(item))
}

/// Takes the calls of a whole answer out of it, and thoughts that led to nothing else.
pub(crate) fn remove_calls(answer: &mut Value) {
    let Some(output) = answer.get_mut("output").and_then(Value::as_array_mut) else { return };
    output.retain(|item| !is_answerable(item));
    remove_lone(output);
}

/// Takes thoughts at the end out of an output.
pub(crate) fn remove_lone(output: &mut Vec<Value>) {
    while output.last().is_some_and(|last| is_lone(last, None)) {
        output.pop();
    }
}

/// Returns true if an answer came to its end.
pub(crate) fn is_whole(answer: &Value) -> bool {
    answer["status"].as_str().is_none_or(|status| status == "completed")
}

/// Reads the call in the arguments of an envelope.
pub(crate) fn call_in(arguments: &str) -> Part {
    let mut opener = Opener::default();
    let mut call = opener.push(arguments);
    let rest = opener.end();
    call.name = call.name.or(rest.name);
    call.arguments.push_str(&rest.arguments);
    call
}

/// Returns true if an item is a call that the host answers.
pub(crate) fn is_hosts(item: &Value) -> bool {
    let kind = item["type"].as_str().unwrap_or_default();
    let is_others = OF_PROVIDER.contains(&kind) || kind == TOOL_SEARCH;
    kind == "mcp_approval_request" || (kind.ends_with("_call") && !is_others)
}

/// Opens the envelopes in an output and takes the searches out of it, and thoughts that led to nothing else.
pub(crate) fn open_output(output: &mut Vec<Value>, names: &Names) -> Asked {
    let asked = open_items(output, names);
    if !asked.searches.is_empty() {
        remove_lone(output);
    }
    asked
}

/// Opens the envelopes among items and takes the searches out of them.
fn open_items(items: &mut Vec<Value>, names: &Names) -> Asked {
    let mut asked = Asked::default();
    items.retain_mut(|item| keep(item, names, &mut asked));
    asked
}

/// Opens a call. Returns false if it is a search, which is noted.
fn keep(item: &mut Value, names: &Names, asked: &mut Asked) -> bool {
    if let Some(search) = search_in(item) {
        asked.searches.push(search);
        return false;
    }
    let name = item["name"].as_str().unwrap_or_default();
    let arguments = item["arguments"].as_str().unwrap_or_default();
    if item["type"] != "function_call" || !(is_search(name) || is_envelope(name)) {
        split_name(item, names);
        asked.has_calls |= is_hosts(item);
        return true;
    }
    let id = item["call_id"].as_str().unwrap_or_default().to_owned();
    if is_search(name) {
        asked.searches.push(Search { id, arguments: arguments.into() });
        return false;
    }
    let Part { name, arguments } = call_in(arguments);
    let name = name.unwrap_or_default();
    if is_search(&name) {
        asked.searches.push(Search { id, arguments: arguments.into() });
        return false;
    }
    put(item, &name, &arguments, names);
    asked.has_calls = true;
    true
}

/// Opens a whole answer. Searches of one that was cut off are not noted.
pub(crate) fn opened(answer: &mut Value, names: &Names) -> Asked {
    let is_whole = is_whole(answer);
    let output = answer.get_mut("output").and_then(Value::as_array_mut);
    let mut asked = output.map(|output| open_output(output, names)).unwrap_or_default();
    if !is_whole {
        asked.searches.clear();
    }
    asked
}

/// Returns the items of an output as they go back to the model. Where the provider keeps nothing, items have no IDs, and
/// thoughts must hold themselves.
pub(crate) fn sent_back(output: &[Value], is_kept: bool) -> Vec<Value> {
    if is_kept {
        return output.to_vec();
    }
    let holds =
        |item: &&Value| item["type"] != "reasoning" || item["encrypted_content"].is_string();
    let without_id = |item: &Value| {
        let mut item = item.clone();
        if let Some(fields) = item.as_object_mut() {
            fields.shift_remove("id");
        }
        item
    };
    output.iter().filter(holds).map(without_id).collect()
}

/// Returns the results of calls as items, whose kind is that of the calls in what the model said. That of the API's own search
/// holds definitions and no text: why there are none, or how many tools are deferred in all, is a message of the developer's.
pub(crate) fn results(said: &[Value], results: &Results<'_>) -> Vec<Value> {
    let called = |id: &str, is_such: fn(&Value) -> bool| {
        said.iter().find(|item| item["call_id"] == id && is_such(item))
    };
    let mut items = Vec::new();
    let mut told = Vec::new();
    let mut count = None;
    for (search, found) in results.searches.iter().zip(results.found) {
        let id = search.id.as_str();
        if called(id, |item| search_in(item).is_some()).is_none() {
            items.push(
                json!({ "type": "function_call_output", "call_id": id, "output": found.text }),
            );
            continue;
        }
        items.push(json!({ "type": "tool_search_output", "execution": "client", "call_id": id,
            "status": "completed", "tools": found.tools }));
        if found.tools.is_empty() {
            told.push(json!({ "role": "developer", "content": reason(&found.text) }));
        } else {
            count = deferred_tools(&found.text).or(count);
        }
    }
    // A reason holds the count already.
    if let Some(count) = count.filter(|_| told.is_empty()) {
        let content = json!({ "deferred_tools": count }).to_string();
        told.push(json!({ "role": "developer", "content": content }));
    }
    items.extend(results.told_by_id().map(|(id, text)| {
        let call = called(id, is_answerable);
        let is_custom = call.is_some_and(|call| call["type"] == "custom_tool_call");
        let kind = if is_custom { "custom_tool_call_output" } else { "function_call_output" };
        json!({ "type": kind, "call_id": id, "output": text })
    }));
    items.extend(told);
    items
}

/// Returns how many tools are deferred in all, as the answer of a search says.
fn deferred_tools(text: &str) -> Option<u64> {
    let answer: Value = serde_json::from_str(text).ok()?;
    answer["deferred_tools"].as_u64()
}

/// Returns the text of a search that found nothing as the developer may say it. The search's own words are left out: the
/// model may have them from a tool's result, and a developer's message ranks above the user's.
fn reason(text: &str) -> String {
    let Ok(Value::Object(mut answer)) = serde_json::from_str(text) else { return text.to_owned() };
    if answer.contains_key("error") || !answer.contains_key("message") {
        return text.to_owned();
    }
    let pending = answer.get("pending_servers").and_then(Value::as_array);
    let has_pending = pending.is_some_and(|servers| !servers.is_empty());
    let later = if has_pending { LATER } else { "" };
    answer.insert("message".to_owned(), format!("{NOTHING}{later}").into());
    Value::Object(answer).to_string()
}

/// Joins two answers of one turn: what the first said comes first, and the usage is that of both.
pub(crate) fn joined(first: &Value, mut second: Value) -> Value {
    if !second.is_object() {
        return second;
    }
    join_heads(first, &mut second);
    let items = |answer: &Value| answer["output"].as_array().cloned().unwrap_or_default();
    if second["output"].is_array() {
        second["output"] = [items(first), items(&second)].concat().into();
    }
    second
}

/// Returns the text of a host's list of tools with `null` in the place of each that is no definition for the model alone: others
/// may hold a host's secrets, such as the headers and the URL of an MCP server, and the provider tells back less of them.
pub(crate) fn definitions(listed: &str) -> String {
    let texts = raw::items(listed).unwrap_or_default();
    let is_shown = |text: &str| serde_json::from_str(text).is_ok_and(|tool| is_definition(&tool));
    let texts = texts.into_iter().map(|text| if is_shown(text) { text } else { "null" });
    format!("[{}]", texts.collect::<Vec<_>>().join(","))
}

/// Returns true if a tool is a definition for the model alone, or a namespace of such.
fn is_definition(tool: &Value) -> bool {
    let is_one = |tool: &Value| tool["type"] == "function" || tool["type"] == "custom";
    let inner = tool["tools"].as_array().filter(|_| tool["type"] == "namespace");
    inner.map_or_else(|| is_one(tool), |inner| inner.iter().all(is_one))
}

/// Returns true if a tool that a provider was sent is the proxy's own.
fn is_own(tool: &Value) -> bool {
    let is_named = |name| is_search(name) || is_envelope(name);
    tool["type"] == "tool_search" || tool["name"].as_str().is_some_and(is_named)
}

/// Puts the tools of the host into a response that tells back those that the provider was sent: the definitions as
/// [`definitions`] has them, and the others as the provider tells them. Returns false if nothing changes.
pub(crate) fn put_tools(response: &mut Value, definitions: &str) -> bool {
    let told = response.get_mut("tools").and_then(Value::as_array_mut);
    let Some(told) = told.filter(|told| !told.is_empty()) else { return false };
    let Ok(listed) = serde_json::from_str::<Vec<Value>>(definitions) else { return false };
    let is_other = |tool: &&Value| !is_definition(tool) && !is_own(tool);
    let mut others = told.iter().filter(is_other).cloned();
    let own = listed.into_iter();
    let own = own.filter_map(|tool| if tool.is_null() { others.next() } else { Some(tool) });
    let mut tools: Vec<Value> = own.collect();
    tools.extend(others);
    let is_changed = *told != tools;
    *told = tools;
    is_changed
}

/// Takes the proxy's own tools out of a response that tells back those that the provider was sent.
pub(crate) fn remove_tools(response: &mut Value) {
    if let Some(told) = response.get_mut("tools").and_then(Value::as_array_mut) {
        told.retain(|tool| !is_own(tool));
    }
}

/// Makes what a host wrote of the items that an answer was asked with: without descriptions of tools, with plain calls, and without
/// hidden searches and their answers.
pub(crate) fn restore_input(list: &mut Value, names: &Names) {
    let Some(items) = list.get_mut("data").and_then(Value::as_array_mut) else { return };
    // Thoughts are the host's, wherever a page ends: those that led to nothing were not sent.
    let asked = open_items(items, names);
    let is_answer = |item: &Value| {
        let is_of = |search: &Search| item["call_id"] == search.id.as_str();
        let is_hidden = || is_late(&item["output"]) || asked.searches.iter().any(is_of);
        item["type"] == "function_call_output" && is_hidden()
    };
    items.retain_mut(|item| {
        !is_answer(item) && ["content", "output"].iter().all(|key| restore_text(item, key))
    });
}

/// Returns true if an output is the answer to a hidden search that was put back. The search may be on another page, or in an
/// earlier answer.
fn is_late(output: &Value) -> bool {
    match output.as_array().map(Vec::as_slice) {
        Some([part]) => part["text"] == LATE,
        Some(_) => false,
        None => output == LATE,
    }
}

/// Beginning of what the proxy adds to texts.
const ADDED: &str = "[Toolgate]";

/// Takes what the proxy added out of a field of an item. Returns false if it holds nothing else.
fn restore_text(item: &mut Value, key: &str) -> bool {
    let cut = |text: &mut String| {
        let at = text.find(&format!("\n\n{ADDED}"));
        text.truncate(at.unwrap_or(text.len()));
        !text.starts_with(ADDED)
    };
    match item.get_mut(key) {
        Some(Value::String(text)) => cut(text),
        Some(Value::Array(parts)) => {
            let count = parts.len();
            parts.retain_mut(|part| match part.get_mut("text") {
                Some(Value::String(text)) => cut(text),
                _ => true,
            });
            count == 0 || !parts.is_empty()
        }
        _ => true,
    }
}

/// Returns the event that ends a stream with an error, for a response that was begun as `begun`.
pub(crate) fn failure(begun: &Value, error: &Value) -> Value {
    let error = error.get("error").filter(|inner| inner.is_object()).unwrap_or(error);
    let code = [&error["code"], &error["type"]].into_iter().find_map(Value::as_str);
    let message = error["message"].as_str().unwrap_or("the provider failed");
    let mut response =
        if begun.is_object() { begun.clone() } else { json!({ "object": "response" }) };
    response["status"] = "failed".into();
    response["error"] = json!({ "code": code.unwrap_or("server_error"), "message": message });
    json!({ "type": "response.failed", "response": response })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use toolgate_llm::SEARCH_TOOL_NAME;
    use toolgate_llm::envelope::{CALL_TOOL_NAME, wrap_history};
    use toolgate_llm::strategy::Api;

    use super::*;
    use crate::answer::Found;
    use crate::toolset::Namespaced;

    fn call(name: &str, arguments: &str) -> Value {
        json!({ "type": "function_call", "id": "fc", "call_id": "c1", "name": name, "arguments": arguments })
    }

    fn names() -> Names {
        let within = Namespaced { namespace: "mcp__git".to_owned(), name: "log".to_owned() };
        Names::from([(within.joined(), within)])
    }

    #[test]
    fn a_call_in_a_namespace_goes_there_and_back() {
        let mut host = call("log", r#"{"n":1.0}"#);
        host["namespace"] = "mcp__git".into();
        let mut sent = host.clone();
        join_names(&mut sent, &names());
        let mut history = [sent];
        wrap_history(Api::OpenAiResponses, &mut history, &HashSet::from(["log"]));
        let wrapped = call(CALL_TOOL_NAME, r#"{"name":"mcp__git__log","arguments":{"n":1.0}}"#);
        assert_eq!(history, [wrapped]);
        let mut output = history.to_vec();
        assert!(open_output(&mut output, &names()).has_calls);
        assert_eq!(output, [host]);
        let mut other = call("log", "{}");
        join_names(&mut other, &names());
        assert_eq!(other, call("log", "{}"));
    }

    #[test]
    fn searches_are_taken_out_with_the_thoughts_that_led_to_them() {
        let reasoning = json!({ "type": "reasoning", "id": "r" });
        let message = json!({ "type": "message", "role": "assistant" });
        let search = call(SEARCH_TOOL_NAME, "{}");
        let within = call(CALL_TOOL_NAME, r#"{"name":"toolgate_search_tools","arguments":{}}"#);
        let mut answer = json!({ "output": [message, reasoning, search, within] });
        let asked = opened(&mut answer, &Names::new());
        assert_eq!((asked.searches.len(), asked.has_calls), (2, false));
        assert_eq!(answer["output"], json!([message]));
        let mut beside = json!({ "output": [reasoning, search, call("Bash", "{}")] });
        assert!(opened(&mut beside, &Names::new()).has_calls);
        assert_eq!(beside["output"], json!([reasoning, call("Bash", "{}")]));
        let mut cut = json!({ "status": "incomplete", "output": [search] });
        assert_eq!(opened(&mut cut, &Names::new()), Asked::default());
        assert_eq!(cut["output"], json!([]));
    }

    #[test]
    fn what_holds_no_call_stays_and_so_do_calls_of_other_kinds() {
        for item in [
            call(CALL_TOOL_NAME, "{"),
            call(CALL_TOOL_NAME, r#"{"name":7}"#),
            json!({ "type": "custom_tool_call", "name": CALL_TOOL_NAME, "input": "x" }),
            json!({ "type": "local_shell_call", "call_id": "c" }),
            json!({ "type": "mcp_approval_request" }),
        ] {
            let mut output = vec![item.clone()];
            let asked = open_output(&mut output, &Names::new());
            assert!(asked.has_calls && asked.searches.is_empty(), "{item}");
            assert_eq!(output, [item]);
        }
        let mut output = vec![json!({ "type": "web_search_call" }), json!(7)];
        assert!(!open_output(&mut output, &Names::new()).has_calls);
    }

    fn tool_search(execution: &str) -> Value {
        json!({ "type": "tool_search_call", "id": "ts", "call_id": "s1", "execution": execution,
            "arguments": { "query": "log" }, "status": "completed" })
    }

    #[test]
    fn searches_of_the_apis_own_tool_are_taken_out_and_answered_with_definitions() {
        let reasoning = json!({ "type": "reasoning", "id": "r" });
        let mut answer = json!({ "output": [reasoning, tool_search("client")] });
        let asked = opened(&mut answer, &Names::new());
        let search = Search { id: "s1".to_owned(), arguments: json!({ "query": "log" }) };
        assert_eq!(asked, Asked { searches: vec![search], has_calls: false });
        assert_eq!(answer["output"], json!([]));
        // The provider answers these by itself.
        let mut hosted = vec![tool_search("server")];
        assert_eq!(open_output(&mut hosted, &Names::new()), Asked::default());
        assert_eq!(hosted, [tool_search("server")]);

        let log = json!({ "type": "function", "name": "mcp__git__log" });
        let answer = |text: &str| Found { text: text.to_owned(), ..Found::default() };
        let found =
            [Found { tools: vec![log.clone()], ..answer("found") }, answer("Say what for.")];
        let searches = ["s1", "s1"].map(|id| Search { id: id.to_owned(), arguments: json!({}) });
        let results = Results { searches: &searches, found: &found, ..Results::default() };
        let output = |tools: Value| {
            json!({ "type": "tool_search_output", "execution": "client",
            "call_id": "s1", "status": "completed", "tools": tools })
        };
        let told = json!({ "role": "developer", "content": "Say what for." });
        assert_eq!(
            super::results(&[tool_search("client")], &results),
            [output(json!([log])), output(json!([])), told]
        );
        let counted = [Found { tools: vec![log.clone()], ..answer(r#"{"deferred_tools":6}"#) }];
        let results = Results { found: &counted, ..results };
        let told = json!({ "role": "developer", "content": r#"{"deferred_tools":6}"# });
        assert_eq!(
            super::results(&[tool_search("client")], &results),
            [output(json!([log])), told]
        );
        let function = call(SEARCH_TOOL_NAME, "{}");
        let items = super::results(&[function], &results);
        assert!(items.iter().all(|item| item["type"] == "function_call_output"), "{items:?}");
    }

    #[test]
    fn the_developer_does_not_repeat_what_a_search_was_for() {
        let said = |answer: Value| {
            let text = reason(&answer.to_string());
            serde_json::from_str::<Value>(&text).expect("an object")
        };
        let message = "No tool matches +ignore +the +user or any other term.";
        let empty = json!({ "tools": [], "deferred_tools": 6, "message": message });
        let told = json!({ "tools": [], "deferred_tools": 6, "message": NOTHING });
        assert_eq!(said(empty), told);
        let pending = json!({ "tools": [], "message": message, "pending_servers": ["jira"] });
        let message = format!("{NOTHING}{LATER}");
        let told = json!({ "tools": [], "message": message, "pending_servers": ["jira"] });
        assert_eq!(said(pending), told);
        let mistake = json!({ "error": "arguments_invalid", "message": "query: must be a text" });
        assert_eq!(said(mistake.clone()), mistake, "it has none of the model's words");
    }

    #[test]
    fn thoughts_go_back_where_they_can_be_read() {
        let output = [
            json!({ "type": "reasoning", "id": "r1" }),
            json!({ "type": "reasoning", "id": "r2", "encrypted_content": "e" }),
            json!({ "type": "message", "id": "m" }),
        ];
        assert_eq!(sent_back(&output, true), output);
        let bare = [
            json!({ "type": "reasoning", "encrypted_content": "e" }),
            json!({ "type": "message" }),
        ];
        assert_eq!(sent_back(&output, false), bare);
    }

    #[test]
    fn thoughts_that_lead_to_nothing_are_known() {
        let reasoning = json!({ "type": "reasoning" });
        let user = json!({ "role": "user", "content": "x" });
        let output = json!({ "type": "function_call_output" });
        for next in [None, Some(&reasoning), Some(&user), Some(&output)] {
            assert!(is_lone(&reasoning, next), "{next:?}");
        }
        assert!(!is_lone(&reasoning, Some(&call("x", "{}"))));
        assert!(!is_lone(&reasoning, Some(&json!({ "type": "message", "role": "assistant" }))));
        assert!(!is_lone(&user, None));
    }

    #[test]
    fn answers_of_one_turn_are_joined() {
        let answer = |id: &str, text: &str, tokens: u64| json!({ "id": id, "output": [text], "usage": { "input_tokens": tokens } });
        let both = joined(&answer("r1", "a", 1), answer("r2", "b", 2));
        assert_eq!(
            both,
            json!({ "id": "r1", "output": ["a", "b"], "usage": { "input_tokens": 3 } })
        );
        assert_eq!(joined(&answer("r1", "a", 1), json!([7])), json!([7]));
    }

    #[test]
    fn a_response_tells_the_host_its_own_tools() {
        let listed = r#"[ {"type":"function","name":"log"} ]"#;
        let mut response = json!({ "id": "r", "tools": [{ "name": SEARCH_TOOL_NAME }], "x": 1 });
        assert!(put_tools(&mut response, listed));
        let own = json!([{ "type": "function", "name": "log" }]);
        assert_eq!(response, json!({ "id": "r", "tools": own, "x": 1 }));
        assert!(!put_tools(&mut response, listed));
        for without in [json!({ "tools": [] }), json!({ "tools": null }), json!({}), json!([7])] {
            let mut response = without.clone();
            assert!(!put_tools(&mut response, listed));
            assert_eq!(response, without);
        }
    }

    #[test]
    fn a_response_tells_no_secret_of_a_tool_that_the_provider_runs() {
        let server = |path: &str, more: &str| {
            format!(r#"{{"type":"mcp","server_label":"x","server_url":"https://x{path}"{more}}}"#)
        };
        let secret = server("/s3cret", r#","headers":{"Authorization":"Bearer s3cret"}"#);
        let plain = server("", "");
        let function = r#"{ "type":"function","name":"log","x":1.0 }"#;
        let space = format!(r#"{{"type":"namespace","name":"n","tools":[{function}]}}"#);
        let odd = format!(r#"{{"type":"namespace","name":"n","tools":[{secret}]}}"#);
        let custom = r#"{"type":"custom","name":"patch"}"#;
        let search = r#"{"type":"web_search"}"#;
        let listed = format!("[{secret},{function} ,{space},{odd},{search}, {custom}]");
        let shown = definitions(&listed);
        assert_eq!(shown, format!("[null,{function},{space},null,null,{custom}]"));
        let read = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        let told = |others: &[&str]| {
            let own = [
                json!({ "type": "tool_search" }),
                json!({ "type": "function", "name": SEARCH_TOOL_NAME }),
            ];
            let others = others.iter().map(|text| read(text));
            json!({ "tools": others.chain(own).collect::<Vec<_>>() })
        };
        let mut response = told(&[&plain, custom, search]);
        assert!(put_tools(&mut response, &shown));
        let expected = [plain.as_str(), function, &space, search, custom].map(read);
        assert_eq!(response["tools"], json!(expected));
        // What the provider tells of beside them comes last.
        let mut response = told(&[search, search, search, search]);
        assert!(put_tools(&mut response, &shown));
        let kinds = response["tools"].as_array().expect("a list").iter().map(|tool| &tool["type"]);
        let kinds: Vec<_> = kinds.filter_map(Value::as_str).collect();
        let expected = [
            "web_search",
            "function",
            "namespace",
            "web_search",
            "web_search",
            "custom",
            "web_search",
        ];
        assert_eq!(kinds, expected);
    }

    #[test]
    fn a_response_whose_tools_are_forgotten_has_none_of_the_proxys() {
        let told = json!([{ "type": "function", "name": "Bash" }, { "type": "web_search" },
            { "type": "function", "name": SEARCH_TOOL_NAME }, { "type": "function", "name": CALL_TOOL_NAME }]);
        let mut response = json!({ "tools": told });
        remove_tools(&mut response);
        assert_eq!(response["tools"], json!([told[0], told[1]]));
    }

    #[test]
    fn items_of_a_request_are_those_that_the_host_wrote() {
        let part = |text: &str| json!({ "type": "input_text", "text": text });
        let user =
            |content: Value| json!({ "type": "message", "role": "user", "content": content });
        let answer =
            |id: &str| json!({ "type": "function_call_output", "call_id": id, "output": "x" });
        let mut search = call(SEARCH_TOOL_NAME, "{}");
        search["call_id"] = "s".into();
        let wrapped = call(CALL_TOOL_NAME, r#"{"name":"mcp__git__log","arguments":{}}"#);
        let added = "[Toolgate] More tools. Call them only through toolgate_call_tool:";
        let mut list = json!({ "object": "list", "has_more": false, "data": [
            user(json!([part("Log?"), part(added)])), user(json!([part("Log? [Toolgate]\n\n[Toolgate] More")])),
            user(json!([part(added)])), search, answer("s"), wrapped, answer("c1"),
            { "type": "function_call_output", "call_id": "c2", "output": format!("dry\n\n{added}") }] });
        restore_input(&mut list, &Names::new());
        let mut plain = answer("c2");
        plain["output"] = "dry".into();
        let expected = [
            user(json!([part("Log?")])),
            user(json!([part("Log? [Toolgate]")])),
            call("mcp__git__log", "{}"),
            answer("c1"),
            plain,
        ];
        assert_eq!(list["data"], json!(expected));
        assert_eq!(list["has_more"], false);
    }

    #[test]
    fn pages_of_a_requests_items_have_no_answer_to_a_hidden_search_and_all_thoughts() {
        let thought = json!({ "type": "reasoning", "id": "r" });
        let message = json!({ "type": "message", "role": "assistant", "content": "x" });
        let search = call(SEARCH_TOOL_NAME, "{}");
        let late = |output: Value| json!({ "type": "function_call_output", "call_id": "c1", "output": output });
        let part = json!([{ "type": "input_text", "text": LATE }]);
        let restored = |items: &[&Value]| {
            let mut list = json!({ "data": items });
            restore_input(&mut list, &Names::new());
            list["data"].take()
        };
        // The newest come first, and the page ends with what led to the search.
        let page = [&message, &late(json!(LATE)), &search, &thought];
        assert_eq!(restored(&page), json!([message, thought]));
        // The search of these is on the next page, or in an earlier answer.
        for output in [json!(LATE), part] {
            assert_eq!(restored(&[&message, &late(output)]), json!([message]));
        }
        let own = late(json!([{ "type": "input_text", "text": "x" }]));
        assert_eq!(restored(&[&own]), json!([own]));
    }

    #[test]
    fn an_error_ends_the_response_that_was_begun() {
        let error =
            json!({ "error": { "type": "server_error", "code": null, "message": "later" } });
        let failed = failure(&json!({ "id": "r1", "output": [] }), &error);
        assert_eq!(failed["response"]["id"], "r1");
        assert_eq!(
            failed["response"]["error"],
            json!({ "code": "server_error", "message": "later" })
        );
        assert_eq!(failure(&Value::Null, &json!("x"))["response"]["status"], "failed");
    }
}
