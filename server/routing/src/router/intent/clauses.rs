//! Clauses of an intent. If an intent asks for one thing after another, a tool that serves one of them has little in
//! common with the whole.

/// Separators between two things to do, beside the ends of sentences, in the languages that most people write to agents
/// in. A separator that contains another one comes before it.
const BETWEEN: [&str; 26] = [
    ", and then ",
    " and then ",
    ", and ",
    ", then ",
    " and also ",
    " as well as ",
    " and ",
    " und dann ",
    " und ",
    " et ensuite ",
    " puis ",
    " et ",
    " y luego ",
    " y ",
    " e depois ",
    " e poi ",
    " e ",
    " и затем ",
    " а потом ",
    " и ",
    " ve ",
    " ثم ",
    " और ",
    "，然后",
    "，并",
    "して、",
];

/// Characters that end a sentence.
const ENDS: [char; 10] = ['.', '?', '!', ';', '\n', '。', '？', '！', '；', '।'];

/// Minimum number of words of a clause that says something.
const WORDS_MIN: usize = 3;
/// Minimum number of characters of such a clause in a script without spaces.
const CHARACTERS_MIN: usize = 4;

/// Maximum number of clauses of one intent. The work of a turn must stay near that of its whole intents.
const CLAUSES_MAX: usize = 8;
/// Bytes of an intent's text that are searched for clauses, for the same reason.
const LOOK_AT: usize = 2 << 10;

/// Returns the clauses of `text` in their order; empty if it is one clause.
pub(super) fn of(text: &str) -> Vec<&str> {
    let text = &text[..text.floor_char_boundary(LOOK_AT)];
    let clauses = sentences(text).into_iter().flat_map(|sentence| cut(sentence, &BETWEEN));
    let clauses = clauses.map(str::trim).filter(|clause| says_something(clause));
    let clauses: Vec<_> = clauses.take(CLAUSES_MAX).collect();
    if clauses.len() < 2 { Vec::new() } else { clauses }
}

/// Splits `text` where sentences end. A full stop within a word, as in `config.yaml`, does not end a sentence.
fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    for (at, end) in text.char_indices().filter(|(_, c)| ENDS.contains(c)) {
        let after = &text[at + end.len_utf8()..];
        if end == '.' && after.starts_with(|c: char| !c.is_whitespace()) {
            continue;
        }
        sentences.push(&text[start..at]);
        start = at + end.len_utf8();
    }
    sentences.push(&text[start..]);
    sentences
}

fn cut<'a>(text: &'a str, between: &[&str]) -> Vec<&'a str> {
    let Some((first, rest)) = between.split_first() else { return vec![text] };
    text.split(first).flat_map(|piece| cut(piece, rest)).collect()
}

fn says_something(clause: &str) -> bool {
    let words = clause.split_whitespace().count();
    let spaced = clause.is_ascii() || words > 1;
    words >= WORDS_MIN || (!spaced && clause.chars().count() >= CHARACTERS_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_are_cut_where_something_else_begins() {
        let query = "Find a flight to Oslo, and book a room there. What is the weather like?";
        let clauses = ["Find a flight to Oslo", "book a room there", "What is the weather like"];
        assert_eq!(of(query), clauses);
        let query = "read the config.yaml of staging and then restart the pods";
        assert_eq!(of(query), ["read the config.yaml of staging", "restart the pods"]);
        assert!(of("list all issues of the repository").is_empty());
        assert!(of("salt and pepper").is_empty(), "two words are no clause");
        assert_eq!(of(&"do this one thing. ".repeat(40)).len(), CLAUSES_MAX);
        assert!(of("").is_empty());
    }

    #[test]
    fn other_languages_have_clauses_too() {
        let german = of("Lies die letzten Mails und schick mir eine Zusammenfassung");
        assert_eq!(german, ["Lies die letzten Mails", "schick mir eine Zusammenfassung"]);
        assert_eq!(of("查看未读邮件，然后发送摘要"), ["查看未读邮件", "发送摘要"]);
        assert_eq!(of("天気を調べて。予定を追加して。"), ["天気を調べて", "予定を追加して"]);
    }

    #[test]
    fn a_long_text_is_looked_at_in_part() {
        let long = format!("{}. open the other door", "字".repeat(LOOK_AT));
        assert!(of(&long).is_empty());
    }
}
