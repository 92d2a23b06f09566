//! Synonyms: words of requests, and the words that tools use for the same (`server/routing/synonyms/english.txt`). They
//! stand in for the encoder where none runs.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use super::language::Languages;
use super::terms;

/// Shipped synonyms.
static SHIPPED: LazyLock<Synonyms> =
    LazyLock::new(|| Synonyms::parse(include_str!("../../../synonyms/english.txt")));

/// Separator of the words of requests and the words of tools in a line.
const MEANS: char = '>';

/// Terms of tools by a term of a request.
#[derive(Debug, Default)]
pub(super) struct Synonyms(HashMap<Box<str>, Box<[Box<str>]>>);

impl Synonyms {
    /// Returns the synonyms that come with the product.
    pub(super) fn shipped() -> &'static Self {
        &SHIPPED
    }

    /// Reads lines of `word, word > word word`. Comments and anything else are passed over: a test holds the shipped
    /// file to the form.
    fn parse(text: &str) -> Self {
        let mut related: HashMap<String, BTreeSet<String>> = HashMap::new();
        for (asked, used) in lines(text).filter_map(|line| line.split_once(MEANS)) {
            let used = stems(used);
            for word in stems(asked) {
                let others: Vec<_> = used.iter().filter(|used| **used != word).cloned().collect();
                related.entry(word).or_default().extend(others);
            }
        }
        let boxed = |(word, others): (String, BTreeSet<String>)| {
            (word.into(), others.into_iter().map(Into::into).collect())
        };
        Self(related.into_iter().map(boxed).collect())
    }

    /// Returns the terms by which tools say what `term` says in a request, sorted.
    pub(super) fn of(&self, term: &str) -> &[Box<str>] {
        self.0.get(term).map_or(&[], AsRef::as_ref)
    }
}

/// Returns the lines that are neither blank nor comments.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn stems(words: &str) -> Vec<String> {
    let mut stems = Vec::new();
    terms::each(words, Languages::ENGLISH, |term| stems.push(term.to_owned()));
    stems
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = include_str!("../../../synonyms/english.txt");

    /// Terms that one query word may add. It bounds the work that a query adds.
    const RELATED_MAX: usize = 40;

    #[test]
    fn each_line_of_the_shipped_file_has_words_on_both_sides_and_each_word_once() {
        for line in lines(FILE) {
            let (asked, used) = line.split_once(MEANS).expect(line);
            let asked: Vec<&str> = asked.split(',').map(str::trim).collect();
            let used: Vec<&str> = used.split_whitespace().collect();
            for words in [&asked, &used] {
                assert!(!words.is_empty(), "{line}");
                let is_word = |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase());
                assert!(words.iter().all(is_word), "lower-case letters only: {line}");
                let mut stems: Vec<_> = words.iter().flat_map(|word| stems(word)).collect();
                assert_eq!(stems.len(), words.len(), "a stop word has no effect: {line}");
                stems.sort();
                stems.dedup();
                assert_eq!(stems.len(), words.len(), "a word comes twice: {line}");
            }
        }
    }

    #[test]
    fn a_word_has_few_related_ones() {
        let shipped = Synonyms::shipped();
        assert!(shipped.0.len() > 300, "{}", shipped.0.len());
        for (word, related) in &shipped.0 {
            assert!(related.len() <= RELATED_MAX, "{word}: {}", related.len());
        }
    }

    #[test]
    fn words_are_related_from_left_to_right_by_their_stems() {
        let synonyms = Synonyms::parse("# a comment\n\ninbox, mails > email messages\nno arrow\n");
        let of = |term| synonyms.of(term).iter().map(AsRef::as_ref).collect::<Vec<&str>>();
        assert_eq!(of("inbox"), ["email", "messag"]);
        assert_eq!(of("mail"), ["email", "messag"]);
        assert!(of("email").is_empty() && of("arrow").is_empty());
    }
}
