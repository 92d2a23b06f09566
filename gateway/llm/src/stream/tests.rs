mod gemini;
mod responses;

use serde_json::json;

use super::*;
use crate::sse::Splitter;

fn event(value: &Value) -> String {
    match value["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {value}\n\n"),
        None => format!("data: {value}\n\n"),
    }
}

fn stream(values: &[Value]) -> String {
    values.iter().map(event).collect()
}

/// Runs a stream through a machine in pieces of so many bytes.
fn run(machine: &mut Machine, stream: &[u8], size: usize) -> String {
    let mut splitter = Splitter::default();
    let mut out = Vec::new();
    for piece in stream.chunks(size) {
        splitter.push(piece);
        while let Some(event) = splitter.next() {
            machine.event(&event, &mut out);
        }
    }
    out.extend(splitter.rest());
    String::from_utf8_lossy(&out).into_owned()
}

fn shown(text: &str) -> Vec<Value> {
    let events = text.split("\n\n").filter_map(|event| sse::data(event.as_bytes()));
    events.filter_map(|data| serde_json::from_str(&data).ok()).collect()
}

fn start(index: u64, block: &Value) -> Value {
    json!({ "type": "content_block_start", "index": index, "content_block": block })
}

fn delta(index: u64, delta: &Value) -> Value {
    json!({ "type": "content_block_delta", "index": index, "delta": delta })
}

fn stop(index: u64) -> Value {
    json!({ "type": "content_block_stop", "index": index })
}

fn begun(usage: u64) -> Value {
    json!({ "type": "message_start", "message": { "id": "m", "usage": { "input_tokens": usage, "output_tokens": 1 } } })
}

fn ended(reason: &str, usage: u64) -> [Value; 2] {
    [
        json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": { "output_tokens": usage } }),
        json!({ "type": "message_stop" }),
    ]
}

/// An Anthropic answer with a text and these calls, whose arguments come in pieces of three characters.
fn anthropic(calls: &[(&str, &str)]) -> Vec<Value> {
    let mut values = vec![begun(10)];
    values.push(start(0, &json!({ "type": "text", "text": "" })));
    values.push(delta(0, &json!({ "type": "text_delta", "text": "Wait." })));
    values.push(stop(0));
    for (at, (name, arguments)) in calls.iter().enumerate() {
        let index = at as u64 + 1;
        let block =
            json!({ "type": "tool_use", "id": format!("c{at}"), "name": name, "input": {} });
        values.push(start(index, &block));
        for piece in arguments.as_bytes().chunks(3) {
            let piece = String::from_utf8_lossy(piece);
            values
                .push(delta(index, &json!({ "type": "input_json_delta", "partial_json": piece })));
        }
        values.push(stop(index));
    }
    values.extend(ended("tool_use", 20));
    values
}

/// The calls that a host reads from an Anthropic stream.
fn host_calls(values: &[Value]) -> Vec<(u64, String, String)> {
    let begun = values.iter().filter(|value| value["content_block"]["type"] == "tool_use");
    begun
        .map(|begun| {
            let index = begun["index"].as_u64().expect("an index");
            let pieces = values.iter().filter(|value| value["index"] == index);
            let text = pieces.filter_map(|value| value["delta"]["partial_json"].as_str()).collect();
            let name = begun["content_block"]["name"].as_str().expect("a name");
            (index, name.to_owned(), text)
        })
        .collect()
}

const ENVELOPE: &str = r#"{"name":"mcp__git__log","arguments":{"n":1}}"#;
const SEARCH: &str = r#"{"query":"log"}"#;

/// A host that reads what it got by the same rules finds nothing else in it.
#[test]
fn events_without_a_valid_index_belong_to_no_block_that_has_one() {
    let text = json!({ "type": "text", "text": "" });
    let piece = json!({ "type": "text_delta", "text": "Wait." });
    let mut values = vec![begun(1), start(2, &text)];
    for index in [json!(null), json!(-1), json!("0"), json!(1e30)] {
        let mut event = delta(0, &piece);
        event["index"] = index;
        values.push(event);
    }
    values.push(json!({ "type": "content_block_stop" }));
    values.extend([stop(2)]);
    values.extend(ended("end_turn", 2));
    let stream = stream(&values);
    let once = run(&mut Machine::new(Api::Anthropic), stream.as_bytes(), 7);
    let twice = run(&mut Machine::new(Api::Anthropic), once.as_bytes(), 7);
    assert_eq!(twice, once);
    assert_eq!(shown(&once)[2..7], values[2..7]);
}

/// Some servers leave the index out: their only block is one of its own.
#[test]
fn blocks_without_an_index_get_one() {
    let mut values = vec![begun(1)];
    for mut event in [
        start(0, &json!({ "type": "text", "text": "" })),
        delta(0, &json!({ "type": "text_delta", "text": "Hm." })),
        stop(0),
    ] {
        event.as_object_mut().expect("an event is an object").shift_remove("index");
        values.push(event);
    }
    let shown = shown(&run(&mut Machine::new(Api::Anthropic), stream(&values).as_bytes(), 7));
    let indices = shown[1..].iter().map(|event| &event["index"]);
    assert_eq!(indices.collect::<Vec<_>>(), [0, 0, 0]);
}

#[test]
fn a_stream_without_ours_passes_with_its_bytes() {
    let text = format!(
        ": hi\n\nevent: odd\ndata: [x\n\n{}",
        stream(&anthropic(&[("Bash", "{ \"a\": 1.0 }")]))
    );
    for size in [1, 7, text.len()] {
        let mut machine = Machine::new(Api::Anthropic);
        assert_eq!(run(&mut machine, text.as_bytes(), size), text);
        assert_eq!(machine.end(), End::Done(Vec::new()));
        assert_eq!(machine.usage()["output_tokens"], 20);
    }
}

#[test]
fn an_envelope_is_a_plain_call_for_the_host() {
    let text = stream(&anthropic(&[("toolgate_call_tool", ENVELOPE), ("Bash", "{}")]));
    let mut machine = Machine::new(Api::Anthropic);
    let values = shown(&run(&mut machine, text.as_bytes(), 5));
    let expected = [
        (1, "mcp__git__log".to_owned(), r#"{"n":1}"#.to_owned()),
        (2, "Bash".to_owned(), "{}".to_owned()),
    ];
    assert_eq!(host_calls(&values), expected);
    assert_eq!(values.iter().filter(|value| value["type"] == "content_block_stop").count(), 3);
    assert_eq!(machine.end(), End::Done(Vec::new()));
}

#[test]
fn a_search_is_held_and_gone_on_from() {
    let mut machine = Machine::new(Api::Anthropic);
    let first =
        run(&mut machine, stream(&anthropic(&[("toolgate_search_tools", SEARCH)])).as_bytes(), 9);
    let End::Searching(said, searches) = machine.end() else { panic!("a search") };
    assert_eq!(searches, [Search { id: "c0".to_owned(), arguments: SEARCH.into() }]);
    assert_eq!(said[0]["content"][0], json!({ "type": "text", "text": "Wait." }));
    assert_eq!(said[0]["content"][1]["input"], json!({ "query": "log" }));
    machine.go_on();
    let second =
        run(&mut machine, stream(&anthropic(&[("toolgate_call_tool", ENVELOPE)])).as_bytes(), 9);
    let values = shown(&(first + &second));
    let of = |kind: &str| values.iter().filter(|value| value["type"] == kind).count();
    assert_eq!((of("message_start"), of("message_delta"), of("message_stop")), (1, 1, 1));
    let indices: Vec<u64> = values
        .iter()
        .filter(|value| value["type"] == "content_block_start")
        .filter_map(|value| value["index"].as_u64())
        .collect();
    assert_eq!(indices, [0, 1, 2]);
    let last = values.iter().find(|value| value["type"] == "message_delta").expect("an end");
    assert_eq!(last["usage"], json!({ "input_tokens": 20, "output_tokens": 40 }));
    assert_eq!(machine.end(), End::Done(Vec::new()));
}

#[test]
fn a_search_beside_a_call_of_the_hosts_is_only_looked_up() {
    let mut machine = Machine::new(Api::Anthropic);
    let text = stream(&anthropic(&[("toolgate_search_tools", SEARCH), ("Bash", "{}")]));
    let values = shown(&run(&mut machine, text.as_bytes(), 9));
    assert_eq!(host_calls(&values), [(1, "Bash".to_owned(), "{}".to_owned())]);
    assert!(matches!(machine.end(), End::Done(searches) if searches.len() == 1));
    assert!(values.iter().any(|value| value["delta"]["stop_reason"] == "tool_use"));
}

#[test]
fn a_search_that_is_not_answered_ends_the_turn() {
    let mut machine = Machine::new(Api::Anthropic);
    run(&mut machine, stream(&anthropic(&[("toolgate_search_tools", SEARCH)])).as_bytes(), 9);
    machine.end();
    let mut out = Vec::new();
    machine.give_up(&mut out);
    let values = shown(&String::from_utf8_lossy(&out));
    assert_eq!(values[0]["delta"]["stop_reason"], "end_turn");
    assert_eq!(values[1]["type"], "message_stop");
}

#[test]
fn a_turn_that_was_cut_off_amid_a_search_says_so() {
    let mut values = anthropic(&[("toolgate_search_tools", SEARCH)]);
    values.truncate(values.len() - 2);
    values.extend(ended("max_tokens", 20));
    let text = chat("x1", &[("toolgate_search_tools", SEARCH)]);
    let text = text.replace("\"finish_reason\":\"tool_calls\"", "\"finish_reason\":\"length\"");
    for (api, text, reason) in
        [(Api::Anthropic, stream(&values), "max_tokens"), (Api::OpenAiChat, text, "length")]
    {
        let mut machine = Machine::new(api);
        run(&mut machine, text.as_bytes(), 9);
        machine.end();
        let mut out = Vec::new();
        machine.give_up(&mut out);
        assert!(String::from_utf8_lossy(&out).contains(reason), "{reason}");
    }
}

#[test]
fn thoughts_go_back_with_their_signature() {
    let mut values =
        vec![begun(1), start(0, &json!({ "type": "thinking", "thinking": "", "signature": "" }))];
    values.push(delta(0, &json!({ "type": "thinking_delta", "thinking": "hm" })));
    values.push(delta(0, &json!({ "type": "signature_delta", "signature": "s1" })));
    values.push(stop(0));
    values.extend(anthropic(&[("toolgate_search_tools", SEARCH)]).into_iter().skip(4));
    let mut machine = Machine::new(Api::Anthropic);
    run(&mut machine, stream(&values).as_bytes(), 64);
    let End::Searching(said, _) = machine.end() else { panic!("a search") };
    assert_eq!(
        said[0]["content"][0],
        json!({ "type": "thinking", "thinking": "hm", "signature": "s1" })
    );
}

fn chunk(delta: &Value, reason: Option<&str>) -> Value {
    json!({ "id": "x1", "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }] })
}

/// A Chat Completions answer with a text and these calls.
fn chat(id: &str, calls: &[(&str, &str)]) -> String {
    let mut values = vec![chunk(&json!({ "role": "assistant", "content": "Wait." }), None)];
    for (at, (name, arguments)) in calls.iter().enumerate() {
        let call = json!({ "index": at, "id": format!("c{at}"), "type": "function",
            "function": { "name": name, "arguments": "" } });
        values.push(chunk(&json!({ "tool_calls": [call] }), None));
        for piece in arguments.as_bytes().chunks(3) {
            let piece =
                json!({ "index": at, "function": { "arguments": String::from_utf8_lossy(piece) } });
            values.push(chunk(&json!({ "tool_calls": [piece] }), None));
        }
    }
    values.push(chunk(&json!({}), Some("tool_calls")));
    values.push(json!({ "id": "x1", "choices": [], "usage": { "prompt_tokens": 10, "completion_tokens": 2 } }));
    let mut text = String::new();
    for mut value in values {
        value["id"] = id.into();
        text.push_str(&event(&value));
    }
    text + "data: [DONE]\n\n"
}

/// The calls that a host reads from a stream of Chat Completions.
fn chat_calls(values: &[Value]) -> Vec<(String, String, String)> {
    let mut calls: Vec<(String, String, String)> = Vec::new();
    for piece in values
        .iter()
        .filter_map(|value| value["choices"][0]["delta"]["tool_calls"].as_array())
        .flatten()
    {
        let index = usize::try_from(piece["index"].as_u64().expect("an index")).expect("small");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if index == calls.len() {
            calls.push((text(&piece["id"]), text(&piece["function"]["name"]), String::new()));
        }
        calls[index].2.push_str(&text(&piece["function"]["arguments"]));
    }
    calls
}

#[test]
fn a_chat_without_ours_passes_with_its_bytes() {
    let text = chat("x1", &[("bash", "{ \"a\": 1.0 }")]);
    let mut machine = Machine::new(Api::OpenAiChat);
    assert_eq!(run(&mut machine, text.as_bytes(), 5), text);
    assert_eq!(machine.end(), End::Done(Vec::new()));
}

#[test]
fn envelopes_of_a_chat_are_opened() {
    let other = r#"{"arguments":{"z":2},"name":"mcp__a__b"}"#;
    let text = chat(
        "x1",
        &[("toolgate_call_tool", ENVELOPE), ("bash", "{}"), ("toolgate_call_tool", other)],
    );
    let mut machine = Machine::new(Api::OpenAiChat);
    let out = run(&mut machine, text.as_bytes(), 5);
    let call = |id: &str, name: &str, text: &str| (id.to_owned(), name.to_owned(), text.to_owned());
    let expected = [
        call("c0", "mcp__git__log", r#"{"n":1}"#),
        call("c1", "bash", "{}"),
        call("c2", "mcp__a__b", r#"{"z":2}"#),
    ];
    assert_eq!(chat_calls(&shown(&out)), expected);
    assert!(out.ends_with("data: [DONE]\n\n"));
}

#[test]
fn a_search_of_a_chat_is_held_and_gone_on_from() {
    let mut machine = Machine::new(Api::OpenAiChat);
    let within = format!(r#"{{"name":"toolgate_search_tools","arguments":{SEARCH}}}"#);
    for (name, arguments) in [("toolgate_search_tools", SEARCH), ("toolgate_call_tool", &within)] {
        machine = Machine::new(Api::OpenAiChat);
        let out = run(&mut machine, chat("x1", &[(name, arguments)]).as_bytes(), 9);
        assert!(
            !out.contains("DONE")
                && !out.contains("finish_reason\":\"")
                && !out.contains("tool_calls"),
            "{out}"
        );
        let End::Searching(said, searches) = machine.end() else { panic!("a search") };
        assert_eq!(searches, [Search { id: "c0".to_owned(), arguments: SEARCH.into() }]);
        assert_eq!(said[0]["tool_calls"][0]["id"], "c0");
    }
    machine.go_on();
    let out = run(&mut machine, chat("x2", &[("toolgate_call_tool", ENVELOPE)]).as_bytes(), 9);
    let values = shown(&out);
    assert!(values.iter().all(|value| value["id"] == "x1"), "{out}");
    assert_eq!(chat_calls(&values).len(), 1);
    assert!(values.iter().all(|value| value["choices"][0]["delta"]["role"].is_null()), "{out}");
    let usage = &values.last().expect("an end")["usage"];
    assert_eq!(*usage, json!({ "prompt_tokens": 20, "completion_tokens": 4 }));
    assert_eq!(out.matches("[DONE]").count(), 1);
}

#[test]
fn a_search_of_a_chat_that_is_not_answered_ends_the_turn() {
    let mut machine = Machine::new(Api::OpenAiChat);
    run(&mut machine, chat("x1", &[("toolgate_search_tools", SEARCH)]).as_bytes(), 9);
    machine.end();
    let mut out = Vec::new();
    machine.give_up(&mut out);
    let out = String::from_utf8_lossy(&out);
    assert!(
        out.contains(r#""finish_reason":"stop""#) && out.ends_with("data: [DONE]\n\n"),
        "{out}"
    );
}

#[test]
fn a_stream_may_end_anywhere() {
    let calls =
        [("toolgate_call_tool", ENVELOPE), ("toolgate_search_tools", SEARCH), ("Bash", "{}")];
    let search = [("toolgate_search_tools", SEARCH)];
    let streams = [
        (Api::Anthropic, stream(&anthropic(&calls))),
        (Api::Anthropic, stream(&anthropic(&search))),
        (Api::OpenAiChat, chat("x", &calls)),
        (Api::OpenAiChat, chat("x", &search)),
    ];
    for (api, text) in streams {
        for end in 0..=text.len() {
            let mut machine = Machine::new(api);
            let out = run(&mut machine, &text.as_bytes()[..end], 1_000);
            let is_asking = matches!(machine.end(), End::Searching(..));
            // Only what came to its end is gone on from.
            let is_finished = text[..end].contains("finish_reason\":\"")
                || text[..end].contains("message_delta\",\"delta");
            assert!(!is_asking || is_finished, "{end}: {out}");
            machine.give_up(&mut Vec::new());
        }
    }
}

/// Runs a stream whose body ends here through a machine.
fn run_out(api: Api, stream: &[u8]) -> Vec<u8> {
    let mut machine = Machine::new(api);
    let mut splitter = Splitter::default();
    splitter.push(stream);
    let mut out = Vec::new();
    while let Some(event) = splitter.next() {
        machine.event(&event, &mut out);
    }
    machine.event(&splitter.rest(), &mut out);
    out
}

#[test]
fn what_came_of_a_plain_stream_that_breaks_off_passes_with_its_bytes() {
    let calls = [("Bash", "{ \"a\": 1.0 }"), ("Read", "{}")];
    let streams = [
        (Api::Anthropic, stream(&anthropic(&calls))),
        (Api::OpenAiChat, chat("x", &calls)),
        (Api::OpenAiResponses, responses::text("r", &calls)),
        (Api::Gemini, stream(&gemini::answer(&calls, true))),
    ];
    for (api, text) in streams {
        for end in 0..=text.len() {
            let came = &text.as_bytes()[..end];
            assert_eq!(run_out(api, came), came, "{api:?} {end}");
        }
    }
}

#[test]
fn odd_events_pass_or_are_left_out_but_break_nothing() {
    let odd = [
        r#"{"type":"content_block_start"}"#,
        r#"{"type":"content_block_start","index":-1,"content_block":7}"#,
        r#"{"type":"content_block_delta","index":99,"delta":"x"}"#,
        r#"{"type":"content_block_stop"}"#,
        r#"{"type":"message_delta","delta":"x","usage":7}"#,
        r#"{"choices":{"0":1}}"#,
        r#"{"choices":[7]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[7,{"index":"x","function":"y"}]}}]}"#,
        r#"{"choices":[{"delta":"x","finish_reason":"stop"}],"usage":[]}"#,
        r#"{"usage":{"a":{}},"id":[]}"#,
        r#"{"type":"response.created","response":7}"#,
        r#"{"type":"response.output_item.added","output_index":-1,"item":7}"#,
        r#"{"type":"response.output_item.added","item":{"type":"function_call","name":"toolgate_call_tool"}}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":0,"delta":7}"#,
        r#"{"type":"response.function_call_arguments.done","output_index":0,"arguments":[]}"#,
        r#"{"type":"response.output_item.done","output_index":0}"#,
        r#"{"type":"response.output_item.done","item":{"type":"function_call","name":"toolgate_search_tools"}}"#,
        r#"{"type":"response.completed","response":{"output":7,"usage":7,"id":[]},"sequence_number":-1}"#,
        r#"{"candidates":[7]}"#,
        r#"{"candidates":[{"content":{"parts":[7,{"functionCall":7},{"functionCall":{"name":7}}]},"finishReason":7}]}"#,
        r#"{"candidates":[{"content":7,"finishReason":"STOP"}],"usageMetadata":[7]}"#,
        "7",
        "null",
    ];
    for api in [Api::Anthropic, Api::OpenAiChat, Api::OpenAiResponses, Api::Gemini] {
        let mut machine = Machine::new(api);
        for data in odd {
            run(&mut machine, format!("data: {data}\n\n").as_bytes(), 1_000);
        }
        machine.end();
        machine.go_on();
        machine.give_up(&mut Vec::new());
    }
}

#[test]
fn arguments_may_come_with_the_beginning_of_a_call() {
    let input: Value = serde_json::from_str(ENVELOPE).expect("JSON");
    let block =
        json!({ "type": "tool_use", "id": "c0", "name": "toolgate_call_tool", "input": input });
    let mut values = vec![begun(1), start(0, &block), stop(0)];
    values.extend(ended("tool_use", 2));
    let mut machine = Machine::new(Api::Anthropic);
    let values = shown(&run(&mut machine, stream(&values).as_bytes(), 9));
    assert_eq!(host_calls(&values), [(0, "mcp__git__log".to_owned(), r#"{"n":1}"#.to_owned())]);
    let begun = values.iter().find(|value| value["type"] == "content_block_start");
    assert_eq!(begun.expect("a call")["content_block"]["input"], json!({}));
}

#[test]
fn calls_of_the_providers_own_tools_go_back_with_their_arguments() {
    let block = json!({ "type": "server_tool_use", "id": "s1", "name": "web_search", "input": {} });
    let mut values = vec![begun(1), start(0, &block)];
    values.push(delta(0, &json!({ "type": "input_json_delta", "partial_json": SEARCH })));
    values.push(stop(0));
    values.extend(anthropic(&[("toolgate_search_tools", SEARCH)]).into_iter().skip(4));
    let mut machine = Machine::new(Api::Anthropic);
    run(&mut machine, stream(&values).as_bytes(), 64);
    let End::Searching(said, _) = machine.end() else { panic!("a search") };
    assert_eq!(said[0]["content"][0]["input"], json!({ "query": "log" }));
}

/// A chunk with a whole call of Chat Completions, as some servers send it: each under the same index.
fn whole_call(id: &str, name: &str, arguments: &str) -> Value {
    json!({ "tool_calls": [{ "index": 0, "id": id, "type": "function", "extra": id,
        "function": { "name": name, "arguments": arguments } }] })
}

#[test]
fn calls_of_a_chat_under_one_index_stay_apart() {
    let other = r#"{"name":"mcp__a__b","arguments":{}}"#;
    let values = [
        chunk(&whole_call("c0", "toolgate_call_tool", ENVELOPE), None),
        chunk(&whole_call("c1", "toolgate_call_tool", other), None),
        chunk(&whole_call("c2", "Bash", "{}"), Some("tool_calls")),
    ];
    let mut machine = Machine::new(Api::OpenAiChat);
    let values = shown(&run(&mut machine, stream(&values).as_bytes(), 64));
    let calls = chat_calls(&values);
    let names: Vec<&str> = calls.iter().map(|(_, name, _)| name.as_str()).collect();
    assert_eq!(names, ["mcp__git__log", "mcp__a__b", "Bash"]);
    let begun = values.iter().map(|value| &value["choices"][0]["delta"]["tool_calls"][0]);
    // Signatures of thoughts stand there.
    assert!(begun.clone().all(|call| call["extra"] == call["id"]), "{values:?}");
}

#[test]
fn a_chat_in_one_chunk_is_held_without_its_text_and_goes_back_whole() {
    let mut delta = whole_call("c0", "toolgate_search_tools", SEARCH);
    delta["role"] = "assistant".into();
    delta["content"] = "Wait.".into();
    delta["reasoning_content"] = "hm".into();
    let values = [chunk(&delta, Some("tool_calls"))];
    let mut machine = Machine::new(Api::OpenAiChat);
    let values = shown(&run(&mut machine, stream(&values).as_bytes(), 64));
    assert_eq!(values.len(), 1);
    assert_eq!(values[0]["choices"][0]["delta"]["content"], "Wait.");
    assert!(values[0]["choices"][0]["finish_reason"].is_null(), "{values:?}");
    let End::Searching(said, _) = machine.end() else { panic!("a search") };
    assert_eq!(
        (&said[0]["content"], &said[0]["reasoning_content"]),
        (&json!("Wait."), &json!("hm"))
    );
    let call = json!({ "id": "c0", "type": "function", "extra": "c0",
        "function": { "name": "toolgate_search_tools", "arguments": SEARCH } });
    assert_eq!(said[0]["tool_calls"], json!([call]));
}

#[test]
fn an_empty_reason_of_a_chat_is_no_end() {
    let mut machine = Machine::new(Api::OpenAiChat);
    let mut values: Vec<Value> = Vec::new();
    for piece in [r#"{"name":"mcp__a__b","#, r#""arguments":{"#, "}}"] {
        values.push(chunk(&whole_call("c0", "toolgate_call_tool", piece), Some("")));
    }
    values.push(chunk(&json!({}), Some("tool_calls")));
    let values = shown(&run(&mut machine, stream(&values).as_bytes(), 64));
    let expected = [("c0".to_owned(), "mcp__a__b".to_owned(), "{}".to_owned())];
    assert_eq!(chat_calls(&values), expected);
}

#[test]
fn calls_are_known_as_the_host_gets_them() {
    let calls = [
        ("toolgate_call_tool", ENVELOPE),
        ("Bash", r#"{"c":1}"#),
        ("toolgate_search_tools", SEARCH),
        ("toolgate_call_tool", "{}"),
    ];
    let streams =
        [(Api::Anthropic, stream(&anthropic(&calls))), (Api::OpenAiChat, chat("x", &calls))];
    for (api, text) in streams {
        let mut machine = Machine::new(api);
        run(&mut machine, text.as_bytes(), 7);
        assert!(machine.has_calls());
        let known = machine.calls().expect("they are small");
        let shown: Vec<[&str; 3]> =
            known.iter().map(|call| [&*call.id, &*call.name, &*call.arguments]).collect();
        let expected = [
            ["c0", "mcp__git__log", r#"{"n":1}"#],
            ["c1", "Bash", r#"{"c":1}"#],
            ["c3", "toolgate_call_tool", "{}"],
        ];
        assert_eq!(shown, expected, "{api:?}");
    }
}

#[test]
fn an_answer_is_taken_back_from_its_first_call_on() {
    let calls = [("toolgate_call_tool", ENVELOPE), ("toolgate_search_tools", SEARCH)];
    let mut machine = Machine::new(Api::Anthropic);
    run(&mut machine, stream(&anthropic(&calls)).as_bytes(), 7);
    let (said, searches) = machine.take_back();
    let ids: Vec<&str> = searches.iter().map(|search| search.id.as_str()).collect();
    assert_eq!(ids, ["c1"]);
    assert_eq!(said[0]["content"][1]["name"], "toolgate_call_tool");
    assert_eq!(said[0]["content"].as_array().map(Vec::len), Some(3));
    machine.go_on();
    let second = stream(&anthropic(&[("toolgate_call_tool", ENVELOPE)]));
    let values = shown(&run(&mut machine, second.as_bytes(), 7));
    // The text of the first answer has index 0, that of the second 1.
    assert_eq!(host_calls(&values)[0].0, 2);
    assert_eq!(machine.usage()["output_tokens"], 40);

    let mut machine = Machine::new(Api::OpenAiChat);
    run(&mut machine, chat("x1", &calls).as_bytes(), 7);
    let (said, searches) = machine.take_back();
    let [said] = said.as_slice() else { panic!("one message") };
    assert_eq!((searches.len(), said["tool_calls"].as_array().map(Vec::len)), (1, Some(2)));
    assert_eq!((&said["content"], &said["tool_calls"][0]["id"]), (&json!("Wait."), &json!("c0")));
    machine.go_on();
    let second = chat("x2", &[("bash", "{}")]);
    let values = shown(&run(&mut machine, second.as_bytes(), 7));
    assert_eq!(chat_calls(&values)[0].0, "c0", "its index is that of a first call");
    assert!(values.iter().all(|value| value["id"] == "x1"));
}

#[test]
fn calls_that_did_not_come_to_their_end_are_not_known() {
    let text =
        stream(&anthropic(&[("Bash", "{\"a\":")])).replace("\"tool_use\"},", "\"max_tokens\"},");
    assert!(text.contains("max_tokens"));
    let mut machine = Machine::new(Api::Anthropic);
    run(&mut machine, text.as_bytes(), 7);
    assert_eq!((machine.has_calls(), machine.calls()), (true, None));
    let text = chat("x", &[("bash", "{\"a\":")]).replace("\"tool_calls\"}", "\"length\"}");
    assert!(text.contains("length"));
    let mut machine = Machine::new(Api::OpenAiChat);
    run(&mut machine, text.as_bytes(), 7);
    assert_eq!((machine.has_calls(), machine.calls()), (true, None));
    let text = chat("x", &[("bash", "{\"a\":1}")]);
    let cut = text.find("finish_reason\":\"tool_calls").expect("there");
    let mut machine = Machine::new(Api::OpenAiChat);
    run(&mut machine, &text.as_bytes()[..cut], 7);
    assert_eq!(machine.calls(), None);
}

#[test]
fn no_more_is_held_behind_an_end_than_is_kept_of_an_answer() {
    let mut machine = Machine::new(Api::OpenAiChat);
    let text = chat("x1", &[("toolgate_search_tools", SEARCH)]);
    let text = text.strip_suffix("data: [DONE]\n\n").expect("an end");
    run(&mut machine, text.as_bytes(), text.len());
    let more = event(&json!({ "id": "x1", "choices": [], "padding": "x".repeat(KEPT_MAX / 2) }));
    let mut out = Vec::new();
    for _ in 0..8 {
        machine.event(more.as_bytes(), &mut out);
    }
    assert!(out.is_empty());
    machine.end();
    machine.give_up(&mut out);
    assert!(out.len() < 2 * KEPT_MAX, "{}", out.len());
    assert!(String::from_utf8_lossy(&out).contains("finish_reason"));
}
