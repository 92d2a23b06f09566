//! Packs as YAML in the format of docs/packs.md. The same requests always give the same text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use toolgate_routing::packs::document::{NOT, VOICES};

/// Requests of one tool by voice, including those under "not".
pub type Voices = BTreeMap<String, Vec<String>>;

const HEAD: &str = "# What people say who want the tools of this MCP server, written by a language model. \
                    docs/packs.md of Toolgate has the format.\n";

/// Words that YAML does not read as text. One of them is a language code: `no`.
const NO_TEXT: [&str; 9] = ["false", "n", "no", "null", "off", "on", "true", "y", "yes"];

/// Returns the pack of these servers as YAML.
#[must_use]
pub fn to_yaml(servers: &[String], tools: &BTreeMap<String, Voices>) -> String {
    let names: Vec<String> = servers.iter().map(|name| key(name)).collect();
    let mut text = format!("{HEAD}servers: [{}]\n", names.join(", "));
    text.push_str(if tools.is_empty() { "tools: {}\n" } else { "tools:\n" });
    for (tool, voices) in tools {
        // Writing to a string can't fail.
        let _ = writeln!(text, "  {}:", key(tool));
        for (voice, requests) in in_order(voices) {
            let _ = writeln!(text, "    {}:", key(voice));
            for request in requests {
                let _ = writeln!(text, "      - {}", quoted(request));
            }
        }
    }
    text
}

/// Sorts voices for readers: English voices first, then languages, then "not". Leaves out empty voices.
fn in_order(voices: &Voices) -> Vec<(&str, &Vec<String>)> {
    let place = |voice: &str| match voice {
        NOT => VOICES.len() + 1,
        voice => VOICES.iter().position(|known| *known == voice).unwrap_or(VOICES.len()),
    };
    let filled = voices.iter().filter(|(_, requests)| !requests.is_empty());
    let mut ordered: Vec<_> = filled.map(|(voice, own)| (voice.as_str(), own)).collect();
    ordered.sort_by_key(|(voice, _)| place(voice));
    ordered
}

/// Returns a name as a YAML key, quoted only if YAML would not read it as text.
fn key(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        && !NO_TEXT.contains(&name.to_ascii_lowercase().as_str());
    if is_plain { name.to_owned() } else { quoted(name) }
}

/// Quotes a text. A JSON string is also a valid YAML string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_routing::packs::Pack;

    #[test]
    fn what_is_written_can_be_read() {
        let strange = "say \"hi\": #no, 'yes' \\ {a} & é 天 - [x] \u{1f600}";
        let voices = |voice: &str| Voices::from([(voice.to_owned(), vec![strange.to_owned()])]);
        let names = ["a_tool", "no", "3d/x.y", "true", "null", "x: y", "~"];
        let mut tools: BTreeMap<String, Voices> =
            names.iter().map(|name| ((*name).to_owned(), voices("no"))).collect();
        tools.insert("b".into(), voices("terse").into_iter().chain(voices(NOT)).collect());
        let text = to_yaml(&["a".into(), "on".into()], &tools);
        let pack = Pack::parse(&text).unwrap_or_else(|mistakes| panic!("{mistakes:?}\n{text}"));
        assert_eq!(pack.servers, ["a", "on"]);
        assert_eq!(pack.tools.len(), names.len() + 1);
        for name in names {
            assert_eq!(pack.tools[name].voices["no"], [strange], "{name}");
        }
        assert_eq!(pack.tools["b"].not, [strange]);
        assert!(Pack::parse(&to_yaml(&["a".into()], &BTreeMap::new())).is_ok());
    }

    #[test]
    fn voices_have_an_order() {
        let one = |voice: &str| (voice.to_owned(), vec!["a b".to_owned()]);
        let voices: Voices = ["not", "de", "terse", "multi_step"].map(one).into();
        let order: Vec<_> = in_order(&voices).into_iter().map(|(voice, _)| voice).collect();
        assert_eq!(order, ["terse", "multi_step", "de", "not"]);
    }
}
