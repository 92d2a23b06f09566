//! Characters that a reader doesn't see or takes for others, and the places where honest texts have them.

/// Oddity of a character at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Oddity {
    /// Invisible character between two ASCII letters or digits.
    SplitsWord,
    /// Invisible character elsewhere, where it may stand by accident.
    Invisible,
    /// Tag character, part of a text that nobody sees, with the character that it stands for.
    Tag(char),
    /// Character that changes the direction of the text after it.
    Turns,
    /// Command to a terminal.
    Command,
    /// Styled form of a plain letter.
    Styled,
}

/// Returns the oddity of `c` between its neighbours; `None` if there is nothing odd about it.
#[must_use]
pub fn oddity(before: Option<char>, c: char, after: Option<char>) -> Option<Oddity> {
    match c {
        '\t' | '\n' | '\r' | '\u{c}' | ' '..='~' => None,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => Some(Oddity::Command),
        '\u{202a}'..='\u{202e}' => Some(Oddity::Turns),
        '\u{2066}'..='\u{2069}' => Some(unless_foreign(before, after, Oddity::Turns)),
        '\u{200e}' | '\u{200f}' | '\u{61c}' => Some(Oddity::Invisible),
        '\u{200c}' | '\u{200d}' => joiner(before, after),
        '\u{ad}' => Some(Oddity::Invisible),
        '\u{fe0e}' | '\u{fe0f}' => selector(before),
        '\u{fe00}'..='\u{fe0d}' | '\u{e0100}'..='\u{e01ef}' => Some(between(before, after)),
        '\u{e0000}'..='\u{e007f}' => Some(Oddity::Tag(plain_tag(c))),
        '\u{1d400}'..='\u{1d7ff}' => Some(Oddity::Styled),
        c if is_invisible(c) => Some(between(before, after)),
        _ => None,
    }
}

/// Returns true for characters without a visible form, except those that [`oddity`] names.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}'
            | '\u{206a}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0080}'..='\u{e00ff}' | '\u{e01f0}'..='\u{e0fff}'
    )
}

fn is_ascii_word(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_ascii_alphanumeric())
}

fn between(before: Option<char>, after: Option<char>) -> Oddity {
    if is_ascii_word(before) && is_ascii_word(after) {
        Oddity::SplitsWord
    } else {
        Oddity::Invisible
    }
}

/// Returns `oddity`, or only `Invisible` beside a script that is written from right to left, where isolates belong.
fn unless_foreign(before: Option<char>, after: Option<char>, oddity: Oddity) -> Oddity {
    let is_foreign = |c: Option<char>| c.is_some_and(|c| ('\u{590}'..='\u{8ff}').contains(&c));
    if is_foreign(before) || is_foreign(after) { Oddity::Invisible } else { oddity }
}

/// Returns the oddity of a joiner. Scripts of South Asia, Arabic and emoji need joiners.
fn joiner(before: Option<char>, after: Option<char>) -> Option<Oddity> {
    let needs = |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && !is_invisible(c));
    if needs(before) && needs(after) { None } else { Some(between(before, after)) }
}

/// Returns the oddity of a variation selector. Emoji and keycaps need selectors.
fn selector(before: Option<char>) -> Option<Oddity> {
    let fits = |c: char| !c.is_ascii() || c.is_ascii_digit() || matches!(c, '#' | '*');
    match before {
        Some(c) if fits(c) => None,
        _ => Some(Oddity::Invisible),
    }
}

/// Returns the character that a tag character stands for.
fn plain_tag(c: char) -> char {
    char::from_u32(c as u32 - 0xe0000).filter(|c| matches!(c, ' '..='~')).unwrap_or(' ')
}

/// Replaces typographic quotation marks and dashes by plain ones, with which patterns are written.
#[must_use]
pub fn plain_punctuation(c: char) -> char {
    match c {
        '\u{2018}' | '\u{2019}' | '\u{201b}' | '\u{2032}' | '\u{ff07}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{ff02}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        c => c,
    }
}

/// Returns the Latin letter that a letter of another script looks like; `None` if it looks like none.
#[must_use]
pub fn latin_look_alike(c: char) -> Option<char> {
    Some(match c {
        'а' | 'α' => 'a',
        'с' => 'c',
        'ԁ' => 'd',
        'е' | 'ё' | 'ε' => 'e',
        'һ' => 'h',
        'і' | 'ї' | 'ι' => 'i',
        'ј' => 'j',
        'к' | 'κ' => 'k',
        'ӏ' => 'l',
        'м' => 'm',
        'о' | 'ο' => 'o',
        'р' | 'ρ' => 'p',
        'ԛ' => 'q',
        'г' => 'r',
        'ѕ' => 's',
        'т' | 'τ' => 't',
        'υ' => 'u',
        'ѵ' | 'ν' => 'v',
        'ԝ' => 'w',
        'х' => 'x',
        'у' => 'y',
        'А' | 'Α' => 'A',
        'В' => 'B',
        'С' => 'C',
        'Е' | 'Ε' => 'E',
        'Н' => 'H',
        'І' | 'Ι' => 'I',
        'Ј' => 'J',
        'К' => 'K',
        'М' => 'M',
        'О' | 'Ο' => 'O',
        'Р' => 'P',
        'Ѕ' => 'S',
        'Т' | 'Τ' => 'T',
        'Х' => 'X',
        'У' => 'Y',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Oddity> {
        let letters: Vec<char> = text.chars().collect();
        let places = 0..letters.len();
        let odd = |i: usize| {
            let before = i.checked_sub(1).map(|i| letters[i]);
            oddity(before, letters[i], letters.get(i + 1).copied())
        };
        places.filter_map(odd).next()
    }

    #[test]
    fn odd_characters_are_told_from_honest_ones() {
        for (text, wanted) in [
            ("plain text,\n\twith lines", None),
            ("Grüße, 日本語, ελληνικά, кириллица", None),
            ("ig\u{200b}nore", Some(Oddity::SplitsWord)),
            ("end.\u{200b} Next", Some(Oddity::Invisible)),
            ("\u{feff}begin", Some(Oddity::Invisible)),
            ("family \u{1f468}\u{200d}\u{1f469}", None),
            ("warn \u{26a0}\u{fe0f} and key 1\u{fe0f}\u{20e3}", None),
            ("क्\u{200d}ष می\u{200c}خواهم", None),
            ("a\u{200d}b", Some(Oddity::SplitsWord)),
            ("a\u{fe0f}", Some(Oddity::Invisible)),
            ("a\u{e0101}b", Some(Oddity::SplitsWord)),
            ("\u{e0048}", Some(Oddity::Tag('H'))),
            ("\u{202e}txt", Some(Oddity::Turns)),
            ("a \u{2066}b", Some(Oddity::Turns)),
            ("ש\u{2066}b", Some(Oddity::Invisible)),
            ("\u{1b}[2J", Some(Oddity::Command)),
            ("a\u{8}", Some(Oddity::Command)),
            ("\u{1d422}gnore", Some(Oddity::Styled)),
        ] {
            assert_eq!(of(text), wanted, "{text:?}");
        }
    }

    #[test]
    fn look_alikes_are_letters_of_other_scripts() {
        assert_eq!(latin_look_alike('а'), Some('a'));
        assert_eq!(latin_look_alike('a'), None);
        assert_eq!(latin_look_alike('ж'), None);
        assert_eq!(
            ["’", "“", "—"].map(|c| plain_punctuation(c.chars().next().expect("one"))),
            ['\'', '"', '-']
        );
    }
}
