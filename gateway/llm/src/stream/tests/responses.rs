use toolgate_llm::SEARCH_TOOL_NAME;

use super::*;
use crate::toolset::{Names, Namespaced};

fn item(at: usize, name: &str, arguments: &str) -> Value {
    json!({ "type": "function_call", "id": format!("fc{at}"), "call_id": format!("c{at}"), "name": name,
        "arguments": arguments, "status": "completed" })
}

fn said() -> Value {
    json!({ "type": "message", "id": "m", "role": "assistant", "content": [
        { "type": "output_text", "text": "Wait." }] })
}

/// A Responses answer with a text and these calls, whose arguments come in pieces of three characters.
fn answer(id: &str, calls: &[(&str, &str)]) -> Vec<Value> {
    let begun = json!({ "id": id, "status": "in_progress", "output": [] });
    let mut values = vec![json!({ "type": "response.created", "response": begun })];
    let mut output = vec![said()];
    let mut empty = said();
    empty["content"] = json!([]);
    values.push(json!({ "type": "response.output_item.added", "output_index": 0, "item": empty }));
    values.push(json!({ "type": "response.output_text.delta", "item_id": "m", "output_index": 0, "delta": "Wait." }));
    values.push(json!({ "type": "response.output_item.done", "output_index": 0, "item": said() }));
    for (at, (name, arguments)) in calls.iter().enumerate() {
        let index = at + 1;
        let whole = item(at, name, arguments);
        let mut begun = item(at, name, "");
        begun["status"] = "in_progress".into();
        values.push(
            json!({ "type": "response.output_item.added", "output_index": index, "item": begun }),
        );
        for piece in arguments.as_bytes().chunks(3) {
            values.push(
                json!({ "type": "response.function_call_arguments.delta", "item_id": whole["id"],
                "output_index": index, "delta": String::from_utf8_lossy(piece) }),
            );
        }
        values
            .push(json!({ "type": "response.function_call_arguments.done", "item_id": whole["id"],
            "output_index": index, "arguments": arguments }));
        values.push(
            json!({ "type": "response.output_item.done", "output_index": index, "item": whole }),
        );
        output.push(whole);
    }
    let usage = json!({ "input_tokens": 10, "output_tokens": 2 });
    let ended = json!({ "id": id, "status": "completed", "output": output, "usage": usage });
    values.push(json!({ "type": "response.completed", "response": ended }));
    for (number, value) in values.iter_mut().enumerate() {
        value["sequence_number"] = number.into();
    }
    values
}

pub(super) fn text(id: &str, calls: &[(&str, &str)]) -> String {
    stream(&answer(id, calls))
}

/// Reads a stream as a host does; fails where it breaks the API's rules. Returns the items.
fn items(values: &[Value]) -> Vec<Value> {
    let numbers: Vec<u64> =
        values.iter().map(|value| value["sequence_number"].as_u64().expect("a number")).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>(), "{values:?}");
    let mut begun: Vec<&Value> = Vec::new();
    let mut texts: Vec<String> = Vec::new();
    let mut done = Vec::new();
    for value in values {
        let index =
            value["output_index"].as_u64().map(|index| usize::try_from(index).expect("small"));
        match value["type"].as_str().expect("a type") {
            "response.output_item.added" => {
                assert_eq!(index, Some(begun.len()), "{values:?}");
                begun.push(&value["item"]);
                texts.push(String::new());
            }
            "response.function_call_arguments.delta" => {
                texts[index.expect("an index")].push_str(value["delta"].as_str().expect("a text"));
            }
            "response.function_call_arguments.done" => {
                assert_eq!(value["arguments"], texts[index.expect("an index")].as_str());
            }
            "response.output_item.done" => {
                let index = index.expect("an index");
                let item = &value["item"];
                for same in ["id", "type", "name", "namespace", "call_id"] {
                    assert_eq!(begun[index][same], item[same], "{same}");
                }
                assert_eq!(done.len(), index);
                if item["type"] == "function_call" {
                    assert_eq!(item["arguments"], texts[index].as_str());
                }
                done.push(item.clone());
            }
            _ => {}
        }
    }
    done
}

fn last(values: &[Value]) -> &Value {
    let last = values.last().expect("an end");
    assert_eq!(last["type"], "response.completed");
    &last["response"]
}

#[test]
fn a_stream_without_ours_passes_with_its_bytes() {
    let text = text("r1", &[("Bash", "{ \"a\": 1.0 }")]);
    for size in [1, 7, text.len()] {
        let mut machine = Machine::new(Api::OpenAiResponses);
        assert_eq!(run(&mut machine, text.as_bytes(), size), text);
        assert_eq!(machine.end(), End::Done(Vec::new()));
        assert_eq!(machine.ids(), ["r1"]);
        assert_eq!(machine.usage()["output_tokens"], 2);
    }
}

#[test]
fn an_envelope_is_a_plain_call_for_the_host() {
    let other = r#"{"arguments":{"z":2.0},"name":"mcp__a__b"}"#;
    let calls = [("toolgate_call_tool", ENVELOPE), ("Bash", "{}"), ("toolgate_call_tool", other)];
    let mut machine = Machine::new(Api::OpenAiResponses);
    let values = shown(&run(&mut machine, text("r1", &calls).as_bytes(), 5));
    let expected = [
        said(),
        item(0, "mcp__git__log", r#"{"n":1}"#),
        item(1, "Bash", "{}"),
        item(2, "mcp__a__b", r#"{"z":2.0}"#),
    ];
    assert_eq!(items(&values), expected);
    assert_eq!(last(&values)["output"], json!(expected));
    assert_eq!(machine.end(), End::Done(Vec::new()));
}

#[test]
fn a_call_reaches_the_host_in_its_namespace() {
    let within = Namespaced { namespace: "mcp__git".to_owned(), name: "log".to_owned() };
    let names = Names::from([(within.joined(), within)]);
    let mut machine = Machine::new(Api::OpenAiResponses).with_names(names);
    let values =
        shown(&run(&mut machine, text("r1", &[("toolgate_call_tool", ENVELOPE)]).as_bytes(), 5));
    let mut expected = item(0, "log", r#"{"n":1}"#);
    expected["namespace"] = "mcp__git".into();
    assert_eq!(items(&values)[1], expected);
    assert_eq!(last(&values)["output"][1], expected);
}

#[test]
fn a_search_is_held_and_gone_on_from() {
    let within = format!(r#"{{"name":"toolgate_search_tools","arguments":{SEARCH}}}"#);
    for (name, arguments) in [("toolgate_search_tools", SEARCH), ("toolgate_call_tool", &within)] {
        let mut machine = Machine::new(Api::OpenAiResponses);
        let first = run(&mut machine, text("r1", &[(name, arguments)]).as_bytes(), 9);
        assert!(machine.is_holding());
        let End::Searching(back, searches) = machine.end() else { panic!("a search") };
        assert_eq!(searches, [Search { id: "c0".to_owned(), arguments: SEARCH.into() }]);
        assert_eq!(back, [said(), item(0, name, arguments)]);
        machine.go_on();
        let calls = [("toolgate_call_tool", ENVELOPE)];
        let second = run(&mut machine, text("r2", &calls).as_bytes(), 9);
        let values = shown(&(first + &second));
        let call = item(0, "mcp__git__log", r#"{"n":1}"#);
        assert_eq!(items(&values), [said(), said(), call.clone()]);
        let of = |kind: &str| values.iter().filter(|value| value["type"] == kind).count();
        assert_eq!((of("response.created"), of("response.completed")), (1, 1));
        let ended = last(&values);
        assert_eq!(
            (&ended["id"], &ended["output"]),
            (&json!("r1"), &json!([said(), said(), call]))
        );
        assert_eq!(ended["usage"], json!({ "input_tokens": 20, "output_tokens": 4 }));
        assert_eq!(machine.end(), End::Done(Vec::new()));
        assert_eq!(machine.ids(), ["r1", "r2"]);
    }
}

#[test]
fn a_search_by_the_apis_own_tool_is_held_and_gone_on_from() {
    let search = json!({ "type": "tool_search_call", "id": "ts", "call_id": "s1",
        "execution": "client", "arguments": { "query": "log" }, "status": "completed" });
    let mut begun = search.clone();
    begun["arguments"] = json!({});
    let mut values = answer("r1", &[]);
    let mut ended = values.pop().expect("an end");
    ended["response"]["output"].as_array_mut().expect("a list").push(search.clone());
    values.extend([
        json!({ "type": "response.output_item.added", "output_index": 1, "item": begun }),
        json!({ "type": "response.tool_search_call.in_progress", "output_index": 1 }),
        json!({ "type": "response.output_item.done", "output_index": 1, "item": search }),
        ended,
    ]);
    for (number, value) in values.iter_mut().enumerate() {
        value["sequence_number"] = number.into();
    }
    let whole = stream(&values);
    let mut machine = Machine::new(Api::OpenAiResponses);
    let mut out = run(&mut machine, whole.as_bytes(), 9);
    assert!(machine.is_holding() && !out.contains("tool_search_call"), "{out}");
    let End::Searching(back, searches) = machine.end() else { panic!("a search") };
    assert_eq!(back, [said(), search]);
    let expected = Search { id: "s1".to_owned(), arguments: json!({ "query": "log" }) };
    assert_eq!(searches, [expected]);
    machine.go_on();
    out += &run(&mut machine, text("r2", &[("mcp__git__log", "{}")]).as_bytes(), 9);
    let values = shown(&out);
    assert_eq!(items(&values), [said(), said(), item(0, "mcp__git__log", "{}")]);
    assert_eq!(last(&values)["output"], json!([said(), said(), item(0, "mcp__git__log", "{}")]));
    assert_eq!(machine.usage()["input_tokens"], 20);
    // It may end anywhere.
    for end in 0..=whole.len() {
        let mut machine = Machine::new(Api::OpenAiResponses);
        run(&mut machine, &whole.as_bytes()[..end], 1_000);
        let is_asking = matches!(machine.end(), End::Searching(..));
        assert!(!is_asking || whole[..end].contains("response.completed"), "{end}");
        machine.give_up(&mut Vec::new());
    }
}

#[test]
fn a_search_beside_a_call_of_the_hosts_is_only_looked_up() {
    let mut machine = Machine::new(Api::OpenAiResponses);
    let text = text("r1", &[("toolgate_search_tools", SEARCH), ("Bash", "{}")]);
    let values = shown(&run(&mut machine, text.as_bytes(), 9));
    let expected = [said(), item(1, "Bash", "{}")];
    assert_eq!(items(&values), expected);
    assert_eq!(last(&values)["output"], json!(expected));
    assert!(matches!(machine.end(), End::Done(searches) if searches.len() == 1));
}

#[test]
fn a_search_that_is_not_answered_ends_the_turn() {
    let mut machine = Machine::new(Api::OpenAiResponses);
    let text = text("r1", &[("toolgate_search_tools", SEARCH)]);
    let first = run(&mut machine, text.as_bytes(), 9);
    machine.end();
    let mut out = first.into_bytes();
    machine.give_up(&mut out);
    let values = shown(&String::from_utf8_lossy(&out));
    assert_eq!(items(&values), [said()]);
    assert_eq!(last(&values)["output"], json!([said()]));
}

#[test]
fn an_answer_that_was_cut_off_is_not_gone_on_from() {
    let mut values = answer("r1", &[("toolgate_search_tools", SEARCH)]);
    let ended = values.last_mut().expect("an end");
    ended["type"] = "response.incomplete".into();
    ended["response"]["status"] = "incomplete".into();
    let mut machine = Machine::new(Api::OpenAiResponses);
    let values = shown(&run(&mut machine, stream(&values).as_bytes(), 64));
    assert_eq!(values.last().expect("an end")["response"]["output"], json!([said()]));
    assert!(matches!(machine.end(), End::Done(_)));
}

#[test]
fn an_error_behind_a_search_ends_the_response_of_the_host() {
    let mut machine = Machine::new(Api::OpenAiResponses);
    let text = text("r1", &[("toolgate_search_tools", SEARCH)]);
    let mut out = run(&mut machine, text.as_bytes(), 9).into_bytes();
    machine.end();
    machine.fail(&json!({ "error": { "code": "overloaded", "message": "later" } }), &mut out);
    let values = shown(&String::from_utf8_lossy(&out));
    items(&values);
    let failed = values.last().expect("an end");
    assert_eq!(
        (&failed["type"], &failed["response"]["id"]),
        (&json!("response.failed"), &json!("r1"))
    );
    assert_eq!(failed["response"]["error"]["message"], "later");
}

#[test]
fn items_may_come_without_pieces_or_without_a_beginning() {
    let calls = [("toolgate_call_tool", ENVELOPE), ("Bash", "{}")];
    for skipped in [
        vec!["response.function_call_arguments.delta", "response.function_call_arguments.done"],
        vec![
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.added",
        ],
    ] {
        let mut values = answer("r1", &calls);
        values.retain(|value| !skipped.iter().any(|kind| value["type"] == *kind));
        let mut machine = Machine::new(Api::OpenAiResponses);
        let values = shown(&run(&mut machine, stream(&values).as_bytes(), 64));
        let done = values.iter().filter(|value| value["type"] == "response.output_item.done");
        let done: Vec<&Value> = done.map(|value| &value["item"]).collect();
        let expected = [said(), item(0, "mcp__git__log", r#"{"n":1}"#), item(1, "Bash", "{}")];
        assert_eq!(done, expected.iter().collect::<Vec<_>>());
        let indices = values.iter().filter(|value| value["type"] == "response.output_item.done");
        let indices: Vec<_> = indices.filter_map(|value| value["output_index"].as_u64()).collect();
        assert_eq!(indices, [0, 1, 2]);
    }
}

#[test]
fn a_stream_without_numbers_gets_none() {
    let mut values = answer("r1", &[("toolgate_call_tool", ENVELOPE)]);
    for value in &mut values {
        value.as_object_mut().expect("an object").shift_remove("sequence_number");
    }
    let mut machine = Machine::new(Api::OpenAiResponses);
    let out = run(&mut machine, stream(&values).as_bytes(), 64);
    assert!(!out.contains("sequence_number") && out.contains("mcp__git__log"), "{out}");
}

#[test]
fn a_stream_may_end_anywhere() {
    let calls =
        [("toolgate_call_tool", ENVELOPE), ("toolgate_search_tools", SEARCH), ("Bash", "{}")];
    for calls in [&calls[..], &calls[1..2]] {
        let text = text("r1", calls);
        for end in 0..=text.len() {
            let mut machine = Machine::new(Api::OpenAiResponses);
            let out = run(&mut machine, &text.as_bytes()[..end], 1_000);
            let is_asking = matches!(machine.end(), End::Searching(..));
            assert!(!is_asking || text[..end].contains("response.completed"), "{end}: {out}");
            machine.give_up(&mut Vec::new());
        }
    }
}

#[test]
fn a_long_answer_is_not_gone_on_from() {
    let mut values = answer("r1", &[("toolgate_search_tools", SEARCH)]);
    values[3]["item"]["content"][0]["text"] = "x".repeat(KEPT_MAX + 1).into();
    let mut machine = Machine::new(Api::OpenAiResponses);
    run(&mut machine, stream(&values).as_bytes(), 1 << 16);
    assert!(matches!(machine.end(), End::Done(searches) if searches.len() == 1));
    let mut out = Vec::new();
    machine.give_up(&mut out);
    assert!(String::from_utf8_lossy(&out).contains("response.completed"));
}

/// Runs a stream up to its first call, and returns what the host gets of that.
fn before_calls(machine: &mut Machine, values: &[Value]) -> String {
    let mut passed = Vec::new();
    for value in values {
        let mut written = Vec::new();
        machine.event(event(value).as_bytes(), &mut written);
        if !machine.has_calls() {
            passed.extend(written);
        }
    }
    String::from_utf8_lossy(&passed).into_owned()
}

#[test]
fn a_plain_call_reaches_the_host_in_its_namespace() {
    let within = Namespaced { namespace: "mcp__git".to_owned(), name: "log".to_owned() };
    let names = Names::from([(within.joined(), within)]);
    let mut machine = Machine::new(Api::OpenAiResponses).with_names(names);
    let mut values = answer("r1", &[("mcp__git__log", r#"{"n":1}"#)]);
    let ended = "response.function_call_arguments.done";
    for value in values.iter_mut().filter(|value| value["type"] == ended) {
        value["name"] = "mcp__git__log".into();
    }
    let values = shown(&run(&mut machine, stream(&values).as_bytes(), 5));
    let mut expected = item(0, "log", r#"{"n":1}"#);
    expected["namespace"] = "mcp__git".into();
    assert_eq!(items(&values)[1], expected);
    assert_eq!(last(&values)["output"][1], expected);
    assert!(values.iter().any(|value| value["type"] == ended && value["name"] == "log"));
    assert_eq!(machine.calls().expect("small")[0].name, "mcp__git__log");
}

#[test]
fn an_answer_is_taken_back_from_its_first_call_on() {
    let calls =
        [("toolgate_call_tool", ENVELOPE), ("toolgate_search_tools", SEARCH), ("Bash", "{}")];
    let mut machine = Machine::new(Api::OpenAiResponses);
    let first = before_calls(&mut machine, &answer("r1", &calls));
    let known = machine.calls().expect("they are small");
    let known: Vec<[&str; 3]> =
        known.iter().map(|call| [&*call.id, &*call.name, &*call.arguments]).collect();
    assert_eq!(known, [["c0", "mcp__git__log", r#"{"n":1}"#], ["c2", "Bash", "{}"]]);
    assert!(machine.is_answerable());
    let (back, searches) = machine.take_back();
    assert_eq!((back.len(), searches.len()), (4, 1));
    assert_eq!(back[1], item(0, "toolgate_call_tool", ENVELOPE));
    machine.go_on();
    let second = run(&mut machine, text("r2", &[("Bash", "{}")]).as_bytes(), 7);
    let values = shown(&(first + &second));
    let expected = [said(), said(), item(0, "Bash", "{}")];
    assert_eq!(items(&values), expected);
    let ended = last(&values);
    assert_eq!((&ended["id"], &ended["output"]), (&json!("r1"), &json!(expected)));
    assert_eq!(ended["usage"]["input_tokens"], 20);
    assert_eq!(machine.ids(), ["r1", "r2"]);
}

#[test]
fn calls_are_known_if_they_came_whole_and_a_text_answers_them() {
    let mut values = answer("r1", &[("Bash", "{}")]);
    values.pop();
    let mut machine = Machine::new(Api::OpenAiResponses);
    before_calls(&mut machine, &values);
    assert_eq!((machine.has_calls(), machine.calls()), (true, None));
    for (kind, is_answerable) in [("custom_tool_call", true), ("local_shell_call", false)] {
        let mut values = answer("r1", &[("Bash", "{}")]);
        for value in &mut values {
            if value["item"]["name"] == "Bash" {
                value["item"]["type"] = kind.into();
            }
        }
        let mut machine = Machine::new(Api::OpenAiResponses);
        before_calls(&mut machine, &values);
        assert_eq!(machine.is_answerable(), is_answerable, "{kind}");
        assert_eq!(machine.calls().map(|calls| calls.len()), Some(usize::from(is_answerable)));
    }
}

#[test]
fn each_event_with_a_response_tells_the_host_its_own_tools() {
    let own = json!([{ "type": "function", "name": "Bash" }, { "type": "function", "name": "mcp__git__log" }]);
    let sent = json!([own[0], { "type": "function", "name": SEARCH_TOOL_NAME }]);
    let told = |id: &str, calls: &[(&str, &str)]| {
        let mut values = answer(id, calls);
        for value in &mut values {
            if let Some(response) = value.get_mut("response") {
                response["tools"] = sent.clone();
            }
        }
        values
    };
    let mut machine = Machine::new(Api::OpenAiResponses).with_tools(own.to_string().into());
    let searching = stream(&told("r1", &[(SEARCH_TOOL_NAME, SEARCH)]));
    let mut text = run(&mut machine, searching.as_bytes(), 64);
    assert!(matches!(machine.end(), End::Searching(..)));
    machine.go_on();
    let held = format!("{machine:?}");
    assert_eq!(
        held.matches("mcp__git__log").count(),
        1,
        "a stream has the host's tools once: {held}"
    );
    text += &run(&mut machine, stream(&told("r2", &[])).as_bytes(), 64);
    let mut error = Vec::new();
    machine.fail(&json!("late"), &mut error);
    text += &String::from_utf8_lossy(&error);
    let values = shown(&text);
    let responses: Vec<&Value> = values.iter().filter_map(|value| value.get("response")).collect();
    assert_eq!(responses.len(), 3);
    assert!(responses.iter().all(|response| response["tools"] == own), "{responses:?}");
}
