//! Fuzz target for requests that hold chats and are none themselves. Without a tool of theirs, all else keeps its bytes. The
//! first byte selects the kind of the request.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use toolgate_gateway_llm::fuzzing::read_enclosed;

/// Name of the tool that is taken out.
const TOOL: &str = "mcp__git__log";

fuzz_target!(|input: &[u8]| {
    let Some((kind, text)) = input.split_first() else { return };
    let text = String::from_utf8_lossy(text);
    let read = read_enclosed(*kind, &text, TOOL);
    assert_eq!(read.same.is_some(), !read.chats.is_empty());
    if let Some(same) = &read.same {
        assert_eq!(*same, text);
    }
    let Some(thinned) = &read.thinned else { return };
    // Too large a number may be gone.
    assert!(is_json(thinned) || !is_json(&text), "{thinned}");
    let again = read_enclosed(*kind, thinned, TOOL);
    assert_eq!(again.hollow, read.hollow);
    assert_eq!(again.thinned, None, "{thinned}");
    assert_eq!(again.chats.len(), read.chats.len());
    for (before, after) in read.chats.iter().zip(&again.chats) {
        assert!(before == after || before.contains("tools") || before.contains('\\'), "{before}");
        assert!(is_json(after) || !is_json(before));
    }
});

fn is_json(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok()
}
