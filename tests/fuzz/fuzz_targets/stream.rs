//! Fuzz target for the LLM proxy's reading of providers' streams. A stream gives the same however it is cut, and what the host
//! got of one without Toolgate's calls passes a second time with its bytes. The first byte selects the API, the second the size of the pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};
use toolgate_gateway_llm::fuzzing::{Api, events, opened, streamed, turned};

fuzz_target!(|input: &[u8]| {
    let [kind, size, stream @ ..] = input else { return };
    let size = usize::from(*size) + 1;
    match kind % 6 {
        0 => answer(Api::Anthropic, stream, size),
        1 => answer(Api::OpenAiChat, stream, size),
        2 => answer(Api::OpenAiResponses, stream, size),
        3 => answer(Api::Gemini, stream, size),
        4 => framing(stream, size),
        _ => envelope(&String::from_utf8_lossy(stream), size),
    }
});

fn answer(api: Api, stream: &[u8], size: usize) {
    let whole = streamed(api, stream, stream.len());
    assert_eq!(streamed(api, stream, size), whole, "in pieces of {size}");
    // It may end anywhere.
    let _ = streamed(api, &stream[..stream.len() * size / 257], size);
    let _ = turned(api, stream);
    let ours = [&b"toolgate"[..], b"tool_search_call", b"\\u"];
    let has_ours = ours.iter().any(|ours| holds(stream, ours));
    if !has_ours {
        let again = streamed(api, &whole.shown, size);
        let texts = [&again.shown, &whole.shown].map(|shown| String::from_utf8_lossy(shown));
        assert!(again.shown == whole.shown, "{} became {}", texts[1], texts[0]);
        assert!(!whole.has_searched);
    }
}

/// Events are the stream's bytes, and each but the last has one end, which is its own.
fn framing(stream: &[u8], size: usize) {
    let cut = events(stream, size);
    assert_eq!(cut.concat(), stream);
    assert_eq!(cut, events(stream, stream.len()));
    let ends: [&[u8]; 3] = [b"\n\n", b"\n\r\n", b"\r\r"];
    let (rest, whole) = cut.split_last().expect("there is a rest");
    assert!(!ends.iter().any(|end| holds(rest, end)));
    for event in whole {
        assert!(ends.iter().any(|end| event.ends_with(end)));
        assert!(!ends.iter().any(|end| holds(&event[..event.len() - 1], end)));
    }
}

fn envelope(text: &str, size: usize) {
    let whole = opened(text, text.len());
    let cut = opened(text, size);
    assert_eq!((&cut.name, &cut.arguments_json), (&whole.name, &whole.arguments_json));
    // A call comes out of the envelope that it was put into.
    let Ok(arguments) = serde_json::from_str::<Map<String, Value>>(text) else { return };
    let arguments = Value::Object(arguments);
    let envelope = json!({ "name": "mcp__a__b", "arguments": arguments }).to_string();
    let call = opened(&envelope, size);
    assert_eq!((call.name.as_str(), call.arguments_json), ("mcp__a__b", arguments.to_string()));
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
