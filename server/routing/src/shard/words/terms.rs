//! Splitting of text into terms: the stems of lower-cased runs of letters and digits. Names are also split at their
//! capitals, and stop words are left out.

use std::borrow::Cow;

use super::language::Languages;

/// Maximum bytes of a term, approximately. Longer terms are cut: they are of no use in a search, and a text must not
/// grow the index without limit.
const LONGEST_TERM: usize = 64;

/// Calls `take` with each term of `text`, in order, including repeats. A name with inner capitals gives its parts and
/// then itself, because people write `GitHub` as one word and `createIssue` as two. A word gives one term for each of
/// the languages, except for languages in which it is a stop word or has the same stem as in another.
pub fn each(text: &str, languages: Languages, mut take: impl FnMut(&str)) {
    words(text, |word| stems(word, languages, &mut take));
}

/// Calls `take` with each word of `text` in lower case, before stop words are left out and stems are taken.
pub(super) fn words(text: &str, mut take: impl FnMut(&str)) {
    let mut word = Word::default();
    let mut before = Kind::Other;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let kind = Kind::of(character);
        let next = characters.peek().map_or(Kind::Other, |next| Kind::of(*next));
        match edge(before, kind, next) {
            Edge::None => {}
            Edge::Part => word.end_part(&mut take),
            Edge::Word => word.end(&mut take),
        }
        if kind != Kind::Other {
            word.push(character);
        }
        before = kind;
    }
    word.end(&mut take);
}

/// Calls `take` with each term of a word that [`words`] gave.
pub(super) fn stems(word: &str, languages: Languages, mut take: impl FnMut(&str)) {
    let mut taken: Vec<Cow<'_, str>> = Vec::new();
    for stem in languages.iter().filter_map(|language| language.stem(word)) {
        if !taken.contains(&stem) {
            take(&stem);
            // Nearly always there is only one language, so there is nothing to remember.
            if languages.are_several() {
                taken.push(stem);
            }
        }
    }
}

/// Word being read. `whole[part..]` is its current part.
#[derive(Default)]
struct Word {
    whole: String,
    part: usize,
}

impl Word {
    fn push(&mut self, character: char) {
        if self.whole.len() >= LONGEST_TERM {
            return;
        }
        if character.is_ascii() {
            self.whole.push(character.to_ascii_lowercase());
        } else {
            // The lower case of a character may be several characters, some of them marks ("İ").
            self.whole.extend(character.to_lowercase().filter(|lower| lower.is_alphanumeric()));
        }
    }

    fn end_part(&mut self, take: &mut impl FnMut(&str)) {
        let part = &self.whole[self.part..];
        if !part.is_empty() {
            take(part);
        }
        self.part = self.whole.len();
    }

    fn end(&mut self, take: &mut impl FnMut(&str)) {
        let parted = self.part > 0;
        self.end_part(take);
        if parted {
            take(&self.whole);
        }
        self.whole.clear();
        self.part = 0;
    }
}

/// Kind of a character, which decides where a term ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Upper,
    /// Lower-case letters, letters without case, and digits: `s3` and `utf8` stay whole.
    Lower,
    /// Character of a script without spaces between words. Each is a term by itself.
    Alone,
    Other,
}

impl Kind {
    fn of(character: char) -> Self {
        match character {
            // Nearly all characters: no table of Unicode is asked.
            'A'..='Z' => Self::Upper,
            'a'..='z' | '0'..='9' => Self::Lower,
            '\0'..='\x7F' => Self::Other,
            // Thai and Lao; kana, Han and their extensions.
            '\u{0E00}'..='\u{0EFF}'
            | '\u{3040}'..='\u{30FF}'
            | '\u{3400}'..='\u{9FFF}'
            | '\u{F900}'..='\u{FAFF}'
            | '\u{20000}'..='\u{3FFFF}' => Self::Alone,
            _ if !character.is_alphanumeric() => Self::Other,
            _ if character.is_uppercase() => Self::Upper,
            _ => Self::Lower,
        }
    }
}

/// Unit of text that ends before a character.
enum Edge {
    None,
    Part,
    Word,
}

/// Returns the edge before a character of kind `kind`. `createIssue` is cut before the I, `HTTPServer` before the S.
fn edge(before: Kind, kind: Kind, next: Kind) -> Edge {
    match (before, kind) {
        (_, Kind::Alone | Kind::Other) | (Kind::Alone | Kind::Other, _) => Edge::Word,
        (Kind::Lower, Kind::Upper) => Edge::Part,
        (Kind::Upper, Kind::Upper) if next == Kind::Lower => Edge::Part,
        _ => Edge::None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::shard::words::language::Language;

    fn terms_in(text: &str, languages: Languages) -> Vec<String> {
        let mut terms = Vec::new();
        each(text, languages, |term| terms.push(term.to_owned()));
        terms
    }

    fn terms(text: &str) -> Vec<String> {
        terms_in(text, Languages::ENGLISH)
    }

    #[test]
    fn names_are_cut_where_people_read_a_word() {
        for (text, expected) in [
            ("create_issue-comment", "creat issu comment"),
            ("createIssue", "creat issu createissu"),
            ("HTTPServer getURL", "http server httpserver get url geturl"),
            ("S3 utf8 GitHub v2 OAuth2", "s3 utf8 git hub github v2 o auth2 oauth2"),
            ("Größe ÜBERSICHT naïve", "größe übersicht naïve"),
            ("The list of (all) files.", "list file"),
            ("日本 go", "日 本 go"),
            ("", ""),
        ] {
            assert_eq!(terms(text).join(" "), expected);
        }
    }

    #[test]
    fn a_word_has_a_stem_for_each_language() {
        let german =
            Languages::from(Language::of("Sucht die Rechnungen eines Kunden nach Zeitraum."));
        for (text, alone, with_english) in [
            ("die Rechnungen", "rechnung", "die rechnungen rechnung"),
            ("commits for repositories", "commit for repositori", "commit for repositori"),
            ("Größe", "gross", "größe gross"),
        ] {
            assert_eq!(terms_in(text, german).join(" "), alone);
            assert_eq!(terms_in(text, german | Languages::ENGLISH).join(" "), with_english);
        }
    }

    proptest! {
        #[test]
        fn any_text_gives_bounded_lower_case_terms(text in "\\PC{0,200}") {
            for term in terms(&text) {
                prop_assert!(!term.is_empty() && term.len() < LONGEST_TERM + 16);
                prop_assert!(term.chars().all(char::is_alphanumeric), "{term:?}");
            }
        }
    }
}
