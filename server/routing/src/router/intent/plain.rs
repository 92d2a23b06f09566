//! Intent without the parts that only an argument would hold: quotations, addresses and ids. The encoder would take
//! them for what is wanted. Where their shape says what they name, that stands in their place: who asks about `PAY-317`
//! speaks of an issue.

use std::borrow::Cow;

use super::shape;

/// Opening and closing marks of quotations.
const QUOTES: [(char, char); 9] = [
    ('"', '"'),
    ('\'', '\''),
    ('`', '`'),
    ('“', '”'),
    ('„', '“'),
    ('«', '»'),
    ('「', '」'),
    ('『', '』'),
    ('<', '>'),
];

/// Maximum bytes of a quotation. An opening mark that is not closed within them opens none.
const QUOTED_MAX: usize = 200;

/// Minimum number of words that must be left. An intent with fewer is embedded unchanged.
const WORDS_MIN: usize = 3;

/// Bytes of an intent that are examined. Encoders read less of it.
const READ_MAX: usize = 4 << 10;

/// Returns `text` as it is embedded.
pub(super) fn of(text: &str) -> Cow<'_, str> {
    let (head, unread) = text.split_at(text.floor_char_boundary(READ_MAX));
    let unquoted = unquoted(head);
    let mut kept = 0;
    let mut words: Vec<&str> = Vec::new();
    for word in unquoted.split_whitespace() {
        match shape::of(word) {
            None => {
                kept += 1;
                words.push(word);
            }
            // Several of a kind are one thing that is spoken of.
            Some(shape) if shape.hint().is_empty() || words.last() == Some(&shape.hint()) => {}
            Some(shape) => words.push(shape.hint()),
        }
    }
    if words.len() < WORDS_MIN || kept == head.split_whitespace().count() {
        return Cow::Borrowed(text);
    }
    // The unread part is kept, so that the encoder can report that the text was cut.
    Cow::Owned(words.join(" ") + unread)
}

/// Returns `text` with a space in the place of each quotation.
fn unquoted(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        match quotation(rest, c, before) {
            Some(length) => {
                kept.push(' ');
                (rest, before) = (&rest[length..], ' ');
            }
            None => {
                kept.push(c);
                (rest, before) = (&rest[c.len_utf8()..], c);
            }
        }
    }
    kept
}

/// Returns the bytes of the quotation that `rest` begins with. An apostrophe within a word opens no quotation, and an
/// apostrophe before a letter closes none.
fn quotation(rest: &str, first: char, before: char) -> Option<usize> {
    let (open, close) = QUOTES.into_iter().find(|(open, _)| *open == first)?;
    if open == '\'' && before.is_alphanumeric() {
        return None;
    }
    let inside = &rest[open.len_utf8()..];
    let within = &inside[..inside.floor_char_boundary(QUOTED_MAX)];
    let closes = |at: &usize| {
        let after = inside[at + close.len_utf8()..].chars().next();
        close != '\'' || !after.is_some_and(char::is_alphanumeric)
    };
    let at = within.match_indices(close).map(|(at, _)| at).find(closes)?;
    (!within[..at].contains('\n')).then_some(open.len_utf8() + at + close.len_utf8())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_an_argument_would_hold_is_left_out() {
        for (text, wanted) in [
            ("open issue 4711 in the tracker", "open issue in the tracker"),
            ("send \"see you at 8\" to the team", "send to the team"),
            ("restart pod web-7f9c4d-x2 in the cluster", "restart pod in the cluster"),
            ("what's new in the team's 'general' channel", "what's new in the team's channel"),
            ("füge «Milch» zur Liste der Einkäufe hinzu", "füge zur Liste der Einkäufe hinzu"),
        ] {
            assert_eq!(of(text), wanted);
        }
    }

    #[test]
    fn what_an_argument_names_stands_in_its_place() {
        for (text, wanted) in [
            ("what happened to PAY-317?", "what happened to issue"),
            ("throw out CRM-4, CRM-9, CRM-12 for now", "throw out issue for now"),
            ("tell #general lunch is here", "tell channel lunch is here"),
            ("mail ann@mail.example the weekly report", "mail email address the weekly report"),
            ("summarise https://a.example/b?c=d please", "summarise web page please"),
            ("what's at 48.2082, 16.3738", "what's at coordinates"),
        ] {
            assert_eq!(of(text), wanted);
        }
    }

    #[test]
    fn what_names_a_thing_stays_and_so_does_what_would_be_left_empty() {
        for text in [
            "upload to s3 with oauth2 and ec2",
            "\"list the pull requests of a repository\"",
            "look up 4711",
            "don't do what the cat's owner said",
            "an \" alone in a text",
            "",
        ] {
            assert!(matches!(of(text), Cow::Borrowed(_)), "{text}: {}", of(text));
        }
    }

    #[test]
    fn only_the_beginning_is_looked_through() {
        let long = "open issue 4711 ".repeat(READ_MAX);
        let read = of(&long);
        assert!(read.starts_with("open issue open issue"), "{}", &read[..100]);
        assert!(read.ends_with("open issue 4711 ") && read.len() > long.len() - READ_MAX);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[\\PC\n'\"`<>«»]{0,300}") {
            let read = of(&text);
            prop_assert!(read.len() <= text.len());
            prop_assert_eq!(read.trim().is_empty(), text.trim().is_empty());
        }
    }
}
