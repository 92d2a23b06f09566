//! Intent without the parts that only an argument would hold: quotations, addresses and ids. The encoder would take
//! them for what is wanted.

use std::borrow::Cow;

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

/// Minimum bytes of a word with digits to be an id. Shorter ones, such as `s3` and `oauth2`, name things.
const ID_MIN: usize = 7;

/// Bytes of an intent that are examined. Encoders read less of it.
const READ_MAX: usize = 4 << 10;

/// Returns `text` as it is embedded.
pub(super) fn of(text: &str) -> Cow<'_, str> {
    let (head, unread) = text.split_at(text.floor_char_boundary(READ_MAX));
    let unquoted = unquoted(head);
    let words: Vec<&str> = unquoted.split_whitespace().filter(|word| !is_argument(word)).collect();
    if words.len() < WORDS_MIN || words.len() == head.split_whitespace().count() {
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

/// Returns true if a word is an address, an id, a date or a number.
fn is_argument(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    let digits = word.chars().filter(char::is_ascii_digit).count();
    let letters = word.chars().filter(|c| c.is_alphabetic()).count();
    word.contains("://")
        || word.starts_with("www.")
        || word.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'))
        || (digits > 0 && (letters == 0 || word.len() >= ID_MIN))
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
            ("mail ann@mail.example the weekly report", "mail the weekly report"),
            ("summarise https://a.example/b?c=d for me please", "summarise for me please"),
            ("restart pod web-7f9c4d-x2 in the cluster", "restart pod in the cluster"),
            ("what's new in the team's 'general' channel", "what's new in the team's channel"),
            ("füge «Milch» zur Liste der Einkäufe hinzu", "füge zur Liste der Einkäufe hinzu"),
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
