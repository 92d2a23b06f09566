//! Conversion of descriptions to requests: "This tool lists the files." becomes "list the files".

/// Phrases before the verb in many descriptions. A longer phrase comes before a shorter one that it begins with.
const LEAD_INS: [&str; 35] = [
    "use this tool when the user wants to",
    "use this tool when you need to",
    "use this tool when you want to",
    "use when the user wants to",
    "use when you need to",
    "this tool can be used to",
    "this tool is used to",
    "this tool allows you to",
    "this tool lets you",
    "this tool will",
    "this tool",
    "this endpoint allows you to",
    "this endpoint",
    "this function",
    "this method",
    "this api will",
    "this api",
    "use this tool to",
    "use this tool for",
    "use this to",
    "use it to",
    "can be used to",
    "used to",
    "use to",
    "allows you to",
    "allows the user to",
    "allows users to",
    "enables you to",
    "lets you",
    "a tool that",
    "a tool to",
    "a tool for",
    "tool that",
    "tool to",
    "tool for",
];

/// Verbs that are common in descriptions of tools. Sorted for the binary search.
const VERBS: [&str; 187] = [
    "abort",
    "accept",
    "access",
    "activate",
    "add",
    "adjust",
    "aggregate",
    "analyze",
    "append",
    "apply",
    "approve",
    "archive",
    "assign",
    "attach",
    "authenticate",
    "book",
    "browse",
    "build",
    "calculate",
    "call",
    "cancel",
    "capture",
    "change",
    "check",
    "clear",
    "click",
    "clone",
    "close",
    "collect",
    "compare",
    "complete",
    "compose",
    "compute",
    "configure",
    "connect",
    "convert",
    "copy",
    "count",
    "crawl",
    "create",
    "decode",
    "define",
    "delete",
    "demonstrate",
    "deploy",
    "describe",
    "detect",
    "determine",
    "diagnose",
    "disable",
    "disconnect",
    "discover",
    "display",
    "download",
    "drag",
    "drop",
    "edit",
    "emulate",
    "enable",
    "encode",
    "ensure",
    "establish",
    "estimate",
    "evaluate",
    "exchange",
    "execute",
    "explain",
    "export",
    "expose",
    "extract",
    "fetch",
    "fill",
    "filter",
    "find",
    "forward",
    "generate",
    "get",
    "give",
    "grant",
    "handle",
    "identify",
    "import",
    "inform",
    "insert",
    "inspect",
    "install",
    "invoke",
    "join",
    "launch",
    "link",
    "list",
    "load",
    "locate",
    "log",
    "look",
    "lookup",
    "make",
    "manage",
    "map",
    "mark",
    "merge",
    "modify",
    "monitor",
    "move",
    "navigate",
    "open",
    "parse",
    "pause",
    "perform",
    "play",
    "post",
    "predict",
    "press",
    "print",
    "process",
    "promote",
    "provide",
    "publish",
    "pull",
    "push",
    "query",
    "read",
    "recommend",
    "record",
    "refresh",
    "remove",
    "rename",
    "render",
    "replace",
    "reply",
    "report",
    "request",
    "reset",
    "resize",
    "resolve",
    "restart",
    "restore",
    "retrieve",
    "return",
    "revert",
    "rotate",
    "run",
    "save",
    "scale",
    "schedule",
    "scrape",
    "search",
    "select",
    "send",
    "set",
    "share",
    "show",
    "simulate",
    "sort",
    "start",
    "stop",
    "stream",
    "submit",
    "suggest",
    "summarize",
    "switch",
    "sync",
    "take",
    "terminate",
    "test",
    "toggle",
    "track",
    "transfer",
    "transform",
    "translate",
    "trigger",
    "type",
    "undo",
    "uninstall",
    "unlink",
    "unlock",
    "unstage",
    "update",
    "upgrade",
    "upload",
    "use",
    "validate",
    "verify",
    "view",
    "wait",
    "watch",
    "write",
];

/// Returns a sentence as a request, starting in lower case and without its full stop.
#[must_use]
pub fn imperative(sentence: &str) -> String {
    let sentence = sentence.trim().trim_end_matches(['.', '!', ' ']);
    let rest = without_lead_in(sentence);
    let (first, after) = rest.split_once(' ').unwrap_or((rest, ""));
    match verb(first) {
        Some(verb) => {
            let mark = first.trim_start_matches(char::is_alphabetic);
            format!("{verb}{mark} {after}").trim_end().to_owned()
        }
        None => lower_first(rest),
    }
}

/// Returns a name's words with the verb first: `issue get` becomes `get issue`.
#[must_use]
pub fn verb_first(words: &str) -> String {
    let mut words: Vec<&str> = words.split_whitespace().collect();
    if let Some(place) = words.iter().position(|word| verb(word).is_some()) {
        let verb = words.remove(place);
        words.insert(0, verb);
    }
    words.join(" ")
}

/// Returns the base form of a verb, or `None` for other words.
fn verb(word: &str) -> Option<&'static str> {
    let word = word.trim_end_matches([',', ':']).to_lowercase();
    let forms = [
        Some(word.clone()),
        word.strip_suffix('s').map(str::to_owned),
        word.strip_suffix("es").map(str::to_owned),
        word.strip_suffix("ies").map(|stem| format!("{stem}y")),
        word.strip_suffix("ing").map(str::to_owned),
        word.strip_suffix("ing").map(|stem| format!("{stem}e")),
    ];
    let place = |form: String| VERBS.binary_search(&form.as_str()).ok();
    forms.into_iter().flatten().find_map(place).map(|place| VERBS[place])
}

fn without_lead_in(sentence: &str) -> &str {
    let starts = |lead_in: &&&str| {
        let begins = sentence.get(..lead_in.len());
        begins.is_some_and(|begins| begins.eq_ignore_ascii_case(lead_in))
            && sentence[lead_in.len()..].starts_with(' ')
    };
    let found = LEAD_INS.iter().find(starts);
    found.map_or(sentence, |lead_in| sentence[lead_in.len()..].trim_start())
}

/// Lowers the first letter, but keeps the capitals of abbreviations.
fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    let Some(first) = letters.next() else { return String::new() };
    if letters.clone().next().is_some_and(char::is_uppercase) {
        return text.to_owned();
    }
    first.to_lowercase().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_become_requests() {
        for (sentence, wanted) in [
            ("Lists the files of a folder.", "list the files of a folder"),
            ("This tool fetches a URL.", "fetch a URL"),
            ("Use this tool to query logs", "query logs"),
            ("Queries logs", "query logs"),
            ("Deletes, or removes, logs", "delete, or removes, logs"),
            ("Use this tool when the user wants to send mail.", "send mail"),
            ("A tool for booking rooms.", "book rooms"),
            ("Tool that analyzes it!", "analyze it"),
            ("Navigates to a page", "navigate to a page"),
            ("Retrieving pages", "retrieve pages"),
            ("Status of a crawl", "status of a crawl"),
            ("URL of a page", "URL of a page"),
            ("Get", "get"),
            ("", ""),
        ] {
            assert_eq!(imperative(sentence), wanted);
        }
    }

    #[test]
    fn names_begin_with_their_verb() {
        assert_eq!(verb_first("fileshare delete"), "delete fileshare");
        assert_eq!(verb_first("get issue"), "get issue");
        assert_eq!(verb_first("sequential thinking"), "sequential thinking");
    }

    #[test]
    fn verbs_are_sorted() {
        assert!(VERBS.is_sorted());
    }

    #[test]
    fn longer_lead_ins_stand_before_their_beginnings() {
        for (place, lead_in) in LEAD_INS.iter().enumerate() {
            let hidden =
                LEAD_INS[..place].iter().find(|before| lead_in.starts_with(&format!("{before} ")));
            assert_eq!(hidden, None, "{lead_in}");
        }
    }
}
