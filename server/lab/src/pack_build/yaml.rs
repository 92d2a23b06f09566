//! Packs as YAML in the format of docs/packs.md. The same requests always give the same text.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_saphyr::{DoubleQuoted, FlowSeq};
use toolgate_routing::packs::document::{NOT, VOICES};

/// Requests of one tool by voice, including those under "not".
pub type Voices = BTreeMap<String, Vec<String>>;

const HEAD: &str = "# What people say who want the tools of this MCP server, written by a language model. \
                    docs/packs.md of Toolgate has the format.\n";

#[derive(Serialize)]
struct Document<'a> {
    servers: FlowSeq<&'a [String]>,
    tools: BTreeMap<&'a str, InOrder<'a>>,
}

struct InOrder<'a>(&'a Voices);

impl<'a> Serialize for InOrder<'a> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let quoted = |own: &'a [String]| own.iter().map(DoubleQuoted).collect::<Vec<_>>();
        serializer
            .collect_map(in_order(self.0).into_iter().map(|(voice, own)| (voice, quoted(own))))
    }
}

/// Returns the pack of these servers as YAML.
#[must_use]
pub fn to_yaml(servers: &[String], tools: &BTreeMap<String, Voices>) -> String {
    let tools = tools.iter().map(|(tool, voices)| (tool.as_str(), InOrder(voices))).collect();
    let options = serde_saphyr::ser_options! { compact_list_indent: false };
    let document = Document { servers: FlowSeq(servers), tools };
    let text = serde_saphyr::to_string_with_options(&document, options);
    format!("{HEAD}{}", text.expect("lists and maps of texts can be written"))
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
    fn what_is_written_looks_like_shipped_packs() {
        let requests = vec!["what time is it".to_owned(), "say \"now\"".to_owned()];
        let voices = Voices::from([("no".to_owned(), requests)]);
        let text = to_yaml(&["time".into(), "on".into()], &[("now".to_owned(), voices)].into());
        let wanted = "servers: [time, \"on\"]
tools:
  now:
    \"no\":
      - \"what time is it\"
      - \"say \\\"now\\\"\"
";
        assert_eq!(text, format!("{HEAD}{wanted}"));
        assert!(to_yaml(&[], &BTreeMap::new()).ends_with("servers: []\ntools: {}\n"));
    }

    #[test]
    fn voices_have_an_order() {
        let one = |voice: &str| (voice.to_owned(), vec!["a b".to_owned()]);
        let voices: Voices = ["not", "de", "terse", "multi_step"].map(one).into();
        let order: Vec<_> = in_order(&voices).into_iter().map(|(voice, _)| voice).collect();
        assert_eq!(order, ["terse", "multi_step", "de", "not"]);
    }
}
