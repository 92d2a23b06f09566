//! Courtesies: messages that thank, greet or take leave and ask for nothing, in ten languages
//! (`server/routing/courtesies/phrases.txt`). Such a message needs no tool. Joined with an earlier one, it would be near
//! to that one's tools.
//!
//! Any other word, a question mark, and an answer before it that asks or offers something make a message none, so that a
//! doubt sends tools. "Yes" and "perfect" alone are none either: they may mean "go on".

use std::collections::HashMap;
use std::sync::LazyLock;

/// Shipped phrases.
static SHIPPED: LazyLock<Phrases> =
    LazyLock::new(|| Phrases::parse(include_str!("../../courtesies/phrases.txt")));

/// Maximum number of words of a courtesy.
const WORDS_MAX: usize = 6;

/// Maximum number of letters of a courtesy in a script without spaces, for each word of [`WORDS_MAX`].
const LETTERS_A_WORD: usize = 3;

/// Maximum length of a message that is examined, in bytes. Courtesies are shorter.
const MESSAGE_MAX: usize = 400;

/// Marks that end a question, in any script.
const QUESTION_MARKS: [char; 5] = ['?', '？', '؟', '\u{37e}', '¿'];

/// Use of a phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Thanks, greeting or goodbye.
    Courtesy,
    /// Assent, praise or a word between them, which asks for nothing beside a courtesy.
    Assent,
}

/// Phrases by kind.
#[derive(Debug, Default)]
struct Phrases {
    /// Kinds of the phrases of messages, by their words with a space between them.
    of_messages: HashMap<String, Kind>,
    /// Phrases by which an answer offers something, with a space around each word.
    offers: Vec<String>,
    /// Number of words of the longest phrase of messages.
    longest: usize,
}

/// Returns true if a message only thanks, greets or takes leave. `answer` is what the model said before it; empty if the
/// message is the first.
#[must_use]
pub fn is_courtesy(message: &str, answer: &str) -> bool {
    if message.len() > MESSAGE_MAX || message.contains(QUESTION_MARKS) {
        return false;
    }
    let words = words(message);
    is_short(&words) && SHIPPED.cover(&words) && !SHIPPED.is_open(answer)
}

impl Phrases {
    /// Reads lines of `kind language: phrase, phrase`. Comments and anything else are passed over: a test holds the
    /// shipped file to the form.
    fn parse(text: &str) -> Self {
        let mut phrases = Self::default();
        for (head, listed) in text.lines().filter_map(|line| line.split_once(':')) {
            let kind = head.split_whitespace().next().unwrap_or_default();
            for phrase in listed.split(',').map(words).filter(|phrase| !phrase.is_empty()) {
                let spaced = phrase.join(" ");
                let kind = match kind {
                    "courtesy" => Kind::Courtesy,
                    "assent" => Kind::Assent,
                    "offer" => {
                        phrases.offers.push(format!(" {spaced} "));
                        continue;
                    }
                    _ => continue,
                };
                phrases.longest = phrases.longest.max(phrase.len());
                let known = phrases.of_messages.entry(spaced).or_insert(kind);
                if kind == Kind::Courtesy {
                    *known = kind;
                }
            }
        }
        phrases
    }

    /// Returns true if words are phrases, one after another, of which one is a courtesy.
    fn cover(&self, words: &[String]) -> bool {
        // For each place, whether phrases reach it, and whether they may have a courtesy among them.
        let mut reached: Vec<Option<bool>> = vec![None; words.len() + 1];
        reached[0] = Some(false);
        for begin in 0..words.len() {
            let Some(has_courtesy) = reached[begin] else { continue };
            let longest = words.len().min(begin + self.longest);
            for end in begin + 1..=longest {
                if let Some(kind) = self.of_messages.get(&words[begin..end].join(" ")) {
                    let has_courtesy = has_courtesy || *kind == Kind::Courtesy;
                    reached[end] = Some(has_courtesy || reached[end] == Some(true));
                }
            }
        }
        reached[words.len()] == Some(true)
    }

    /// Returns true if an answer asks or offers something.
    fn is_open(&self, answer: &str) -> bool {
        if answer.contains(QUESTION_MARKS) {
            return true;
        }
        let spaced = format!(" {} ", words(answer).join(" "));
        self.offers.iter().any(|offer| spaced.contains(offer))
    }
}

/// Returns true if words are few enough for a courtesy. A letter of a script without spaces is a word of its own here.
fn is_short(words: &[String]) -> bool {
    let dense = words.iter().filter(|word| word.chars().all(is_dense)).count();
    let spaced = words.len() - dense;
    !words.is_empty() && spaced + dense.div_ceil(LETTERS_A_WORD) <= WORDS_MAX
}

/// Returns the words of a text in small letters. A letter of a script without spaces is a word, and an apostrophe within a
/// word belongs to it.
fn words(text: &str) -> Vec<String> {
    let mut spaced = String::with_capacity(text.len() + 8);
    for letter in text.chars().flat_map(char::to_lowercase) {
        match letter {
            '\'' | '’' | 'ʼ' => spaced.push('\''),
            _ if is_dense(letter) => spaced.extend([' ', letter, ' ']),
            _ => spaced.push(if letter.is_alphanumeric() { letter } else { ' ' }),
        }
    }
    let trimmed = spaced.split_whitespace().map(|word| word.trim_matches('\''));
    trimmed.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Returns true for a letter of a script that is written without spaces.
fn is_dense(letter: char) -> bool {
    letter.is_alphanumeric()
        && matches!(letter, '\u{0e00}'..='\u{0eff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}')
}

#[cfg(test)]
mod tests;
