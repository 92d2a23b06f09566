use super::*;

fn chunk(parts: &Value, reason: Option<&str>, tokens: u64) -> Value {
    let mut candidate = json!({ "content": { "role": "model", "parts": parts }, "index": 0 });
    if let Some(reason) = reason {
        candidate["finishReason"] = reason.into();
    }
    let usage = json!({ "promptTokenCount": 10, "candidatesTokenCount": tokens });
    json!({ "candidates": [candidate], "usageMetadata": usage, "responseId": "g1" })
}

fn call(name: &str, args: &str) -> Value {
    let args: Value = serde_json::from_str(args).expect("JSON");
    json!({ "functionCall": { "name": name, "args": args }, "thoughtSignature": name })
}

/// A Gemini answer with a text and these calls; the end is an event of its own, or stands with the last call.
pub(super) fn answer(calls: &[(&str, &str)], is_end_apart: bool) -> Vec<Value> {
    let mut values = vec![
        chunk(&json!([{ "text": "hm", "thought": true }]), None, 1),
        chunk(&json!([{ "text": "Wa" }]), None, 1),
        chunk(&json!([{ "text": "it." }]), None, 1),
    ];
    values.extend(calls.iter().map(|(name, args)| chunk(&json!([call(name, args)]), None, 2)));
    if is_end_apart {
        values.push(chunk(&json!([{ "text": "" }]), Some("STOP"), 2));
    } else if let Some(last) = values.last_mut() {
        last["candidates"][0]["finishReason"] = "STOP".into();
    }
    values
}

fn parts(values: &[Value]) -> Vec<Value> {
    let parts =
        values.iter().filter_map(|value| value["candidates"][0]["content"]["parts"].as_array());
    parts.flatten().filter(|part| part["text"] != "").cloned().collect()
}

fn ends(values: &[Value]) -> usize {
    values.iter().filter(|value| value["candidates"][0]["finishReason"].is_string()).count()
}

#[test]
fn a_stream_without_ours_passes_with_its_bytes() {
    let text = stream(&answer(&[("own", "{ \"a\": 1.0 }")], true)).replace("\n", "\r\n");
    for size in [1, 7, text.len()] {
        let mut machine = Machine::new(Api::Gemini);
        assert_eq!(run(&mut machine, text.as_bytes(), size), text);
        assert_eq!(machine.end(), End::Done(Vec::new()));
        assert_eq!(machine.usage()["candidatesTokenCount"], 2);
    }
}

#[test]
fn an_envelope_is_a_plain_call_that_keeps_its_signature() {
    for is_end_apart in [true, false] {
        let calls = [("toolgate_call_tool", ENVELOPE), ("own", "{}")];
        let mut machine = Machine::new(Api::Gemini);
        let text = stream(&answer(&calls, is_end_apart));
        let values = shown(&run(&mut machine, text.as_bytes(), 5));
        let shown = &parts(&values)[3..];
        let mut plain = call("mcp__git__log", r#"{"n":1}"#);
        plain["thoughtSignature"] = "toolgate_call_tool".into();
        assert_eq!(*shown, [plain, call("own", "{}")]);
        assert_eq!(ends(&values), 1);
        assert_eq!(machine.end(), End::Done(Vec::new()));
    }
}

#[test]
fn a_search_is_held_and_gone_on_from() {
    for is_end_apart in [true, false] {
        let mut machine = Machine::new(Api::Gemini);
        let text = stream(&answer(&[("toolgate_search_tools", SEARCH)], is_end_apart));
        let first = run(&mut machine, text.as_bytes(), 9);
        assert_eq!(ends(&shown(&first)), 0);
        let End::Searching(said, searches) = machine.end() else { panic!("a search") };
        assert_eq!(searches[0].arguments, json!({ "query": "log" }));
        let back = said[0]["parts"].as_array().expect("parts");
        assert_eq!(back[..2], [json!({ "text": "Wait." }), call("toolgate_search_tools", SEARCH)]);
        machine.go_on();
        let mut values = answer(&[("toolgate_call_tool", ENVELOPE)], is_end_apart);
        for value in &mut values {
            value["responseId"] = "g2".into();
        }
        let second = run(&mut machine, stream(&values).as_bytes(), 9);
        let values = shown(&(first + &second));
        let calls: Vec<Value> =
            parts(&values).into_iter().filter(|part| part["functionCall"].is_object()).collect();
        assert_eq!((calls.len(), &calls[0]["functionCall"]["name"]), (1, &json!("mcp__git__log")));
        assert_eq!(ends(&values), 1);
        assert!(values.iter().all(|value| value["responseId"] == "g1"));
        let usage = &values.last().expect("an end")["usageMetadata"];
        assert_eq!(*usage, json!({ "promptTokenCount": 20, "candidatesTokenCount": 4 }));
        assert_eq!(machine.end(), End::Done(Vec::new()));
    }
}

#[test]
fn a_text_in_the_event_of_the_end_is_not_held() {
    let values = [chunk(
        &json!([{ "text": "Wait." }, call("toolgate_search_tools", SEARCH)]),
        Some("STOP"),
        2,
    )];
    let mut machine = Machine::new(Api::Gemini);
    let values = shown(&run(&mut machine, stream(&values).as_bytes(), 64));
    assert_eq!((parts(&values), ends(&values)), (vec![json!({ "text": "Wait." })], 0));
    assert!(matches!(machine.end(), End::Searching(..)));
    let mut out = Vec::new();
    machine.give_up(&mut out);
    let values = shown(&String::from_utf8_lossy(&out));
    assert_eq!((parts(&values).len(), ends(&values)), (0, 1));
    assert_eq!(values[0]["usageMetadata"]["candidatesTokenCount"], 2);
}

#[test]
fn a_search_beside_a_call_of_the_hosts_is_only_looked_up() {
    let calls = [("toolgate_search_tools", SEARCH), ("own", "{}")];
    let mut machine = Machine::new(Api::Gemini);
    let text = stream(&answer(&calls, true));
    let values = shown(&run(&mut machine, text.as_bytes(), 9));
    assert_eq!((parts(&values).len(), ends(&values)), (4, 1));
    assert!(matches!(machine.end(), End::Done(searches) if searches.len() == 1));
}

#[test]
fn an_answer_that_was_cut_off_is_not_gone_on_from() {
    let mut values = answer(&[("toolgate_search_tools", SEARCH)], true);
    values.last_mut().expect("an end")["candidates"][0]["finishReason"] = "MAX_TOKENS".into();
    let mut machine = Machine::new(Api::Gemini);
    let values = shown(&run(&mut machine, stream(&values).as_bytes(), 64));
    assert_eq!(ends(&values), 1);
    assert_eq!(machine.end(), End::Done(Vec::new()));
}

#[test]
fn a_stream_may_end_anywhere() {
    let calls =
        [("toolgate_call_tool", ENVELOPE), ("toolgate_search_tools", SEARCH), ("own", "{}")];
    for calls in [&calls[..], &calls[1..2]] {
        let text = stream(&answer(calls, false));
        for end in 0..=text.len() {
            let mut machine = Machine::new(Api::Gemini);
            let out = run(&mut machine, &text.as_bytes()[..end], 1_000);
            let is_asking = matches!(machine.end(), End::Searching(..));
            assert!(!is_asking || text[..end].contains("finishReason"), "{end}: {out}");
            machine.give_up(&mut Vec::new());
        }
    }
}

#[test]
fn an_answer_is_taken_back_with_what_stood_beside_its_first_call() {
    let calls = [call("toolgate_call_tool", ENVELOPE), call("own", "{}")];
    let parts_said = json!([{ "text": "Wait." }, calls[0], calls[1]]);
    let whole = chunk(&parts_said, Some("STOP"), 2);
    let mut machine = Machine::new(Api::Gemini);
    run(&mut machine, stream(std::slice::from_ref(&whole)).as_bytes(), 64);
    let known = machine.calls().expect("they are small");
    let known: Vec<[&str; 2]> = known.iter().map(|call| [&*call.name, &*call.arguments]).collect();
    assert_eq!(known, [["mcp__git__log", r#"{"n":1}"#], ["own", "{}"]]);
    let (back, searches) = machine.take_back();
    assert_eq!((back[0]["parts"].clone(), searches.len()), (parts_said, 0));
    let mut out = Vec::new();
    machine.write_said(&mut out);
    let values = shown(&String::from_utf8_lossy(&out));
    assert_eq!((parts(&values), ends(&values)), (vec![json!({ "text": "Wait." })], 0));
    machine.go_on();
    assert!(!machine.has_calls());
    let mut cut = whole;
    cut["candidates"][0]["finishReason"] = "MAX_TOKENS".into();
    let mut machine = Machine::new(Api::Gemini);
    run(&mut machine, stream(&[cut]).as_bytes(), 64);
    assert_eq!((machine.has_calls(), machine.calls()), (true, None));
}
