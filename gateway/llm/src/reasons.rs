//! Meanings of the reasons for which a request is sent as it came, for people who have not read about them.

/// Meaning of each reason, by its name in `x-toolgate`. docs/llm-proxy.md says more of them.
const MEANINGS: [(&str, &str); 28] = [
    ("no-chat", "the request is none for an answer of a model"),
    ("no-tools", "the request has no tools"),
    ("nothing-to-defer", "no tool has a name that `defer` matches"),
    ("few-tools", "the definitions are smaller than `defer_above`"),
    ("cheaper", "all tools cost less than deferring them"),
    ("host-defers", "the program or its provider defers tools itself"),
    (
        "unknown-history",
        "the provider keeps the conversation, and the proxy does not know what is in it",
    ),
    ("background", "the answer is fetched later"),
    ("partial-arguments", "arguments of calls come in parts of a form of their own"),
    ("has-toolgate-already", "a tool is named as the search or the envelope"),
    ("no-request", "no message of the user has a text"),
    ("late", "the choice of tools took longer than `decision_timeout`"),
    (
        "new-tools",
        "tools that were not seen before were still being registered after `first_decision_timeout`; requests after that are rewritten",
    ),
    ("plane-failed", "the routing plane gave no answer"),
    ("busy", "several new sets of tools came at once"),
    ("shape", "the request is not as expected"),
    ("schema", "a definition or a message is not as expected"),
    ("several-choices", "the request asks for several answers"),
    ("encoded", "the request is compressed"),
    ("large", "the request is larger than `max_body`"),
    ("not-rewritten", "the request is not as expected"),
    ("panic", "the proxy failed, which is a defect of Toolgate"),
    ("no-memory", "requests have all of `request_memory`, or tools all of `toolset_memory`"),
    ("refused", "the provider refused the rewritten request"),
    ("refused-before", "the provider refused a rewritten request within the last hour"),
    ("strategy", "`strategy` is \"pass\""),
    ("switched-off", "the routing plane's operator switched deferral off"),
    ("not-deferred", "the routing plane's mode of deferral says so"),
];

/// Returns what a reason means, in a few words; `None` for one that is not known.
#[must_use]
pub fn meaning_of(reason: &str) -> Option<&'static str> {
    MEANINGS.iter().find(|(name, _)| *name == reason).map(|(_, meaning)| *meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reasons_are_those_of_the_documentation() {
        // The sources of images have no docs, so that it is not included.
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/llm-proxy.md");
        let page = std::fs::read_to_string(page).expect("the page");
        let table = page.lines().skip_while(|line| *line != "| reason | |").skip(2);
        let rows = table.take_while(|line| line.starts_with('|'));
        let cells = rows.filter_map(|row| row.split('|').nth(1));
        let documented: Vec<&str> =
            cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
        assert!(documented.contains(&"new-tools"), "{documented:?}");
        let lacking: Vec<_> = documented.iter().filter(|name| meaning_of(name).is_none()).collect();
        assert!(lacking.is_empty(), "{lacking:?}");
        assert_eq!(documented.len(), MEANINGS.len());
        assert_eq!(meaning_of("x"), None);
    }
}
