//! Text as a model reads it, whatever it looks like to people: one form for patterns to be matched against, and the
//! disguises that were undone to get it.

use unicode_normalization::UnicodeNormalization;

use super::characters::{Oddity, latin_look_alike, oddity, plain_punctuation};

/// Minimum number of white space characters in a row that push the text after them out of view.
const FLOOD_SPACES: usize = 160;
/// Minimum number of line breaks in a row that push the text after them out of view.
const FLOOD_LINES: usize = 24;
/// Minimum number of styled letters for a disguise. Fewer may be a formula.
const STYLED_MIN: usize = 6;

/// Means by which a text is hidden or disguised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Disguise {
    /// Invisible characters within words.
    SplitWords,
    /// Invisible characters elsewhere.
    Invisible,
    /// Text in tag characters.
    Tags,
    /// Text whose direction is turned.
    Turned,
    /// Commands to a terminal.
    Commands,
    /// Letters in a mathematical style.
    Styled,
    /// Words with letters of two scripts that look like one.
    MixedScript,
    /// White space that pushes text out of view.
    Flood,
}

/// Text in the form for patterns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// Text in one line, with one space between words.
    pub flat: String,
    /// Byte offsets in `flat` at which lines of the text begin, except the first line.
    pub lines: Vec<usize>,
    /// Disguises that were undone, each kind once, with the approximate byte offset in the original text.
    pub disguises: Vec<(Disguise, usize)>,
}

impl Reading {
    /// Brings a text into the form for patterns and notes its disguises.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut reading = Self::default();
        if is_plain(text) {
            reading.flatten(text);
            return reading;
        }
        let shown = reading.without_hidden(text);
        let plain: String = shown.nfkc().map(plain_punctuation).collect();
        let plain = reading.latinised(plain, text);
        reading.flatten(&plain);
        reading
    }

    /// Returns the byte offsets in `flat` at which lines begin, including the first line.
    pub fn line_starts(&self) -> impl Iterator<Item = usize> {
        [0].into_iter().chain(self.lines.iter().copied())
    }

    fn note(&mut self, disguise: Disguise, at: usize) {
        if self.disguises.iter().all(|(known, _)| *known != disguise) {
            self.disguises.push((disguise, at));
        }
    }

    /// Returns the text without invisible characters, and with tag characters replaced by the characters that they
    /// stand for.
    fn without_hidden(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut styled = 0;
        let mut flag = false;
        let mut before = None;
        let mut rest = text.char_indices().peekable();
        while let Some((at, c)) = rest.next() {
            let odd = oddity(before, c, rest.peek().map(|(_, after)| *after));
            flag = c == '\u{1f3f4}' || (flag && matches!(odd, Some(Oddity::Tag(_))));
            before = Some(c);
            match odd {
                None => out.push(c),
                // Flags of parts of a country are written in tag characters.
                Some(Oddity::Tag(_)) if flag => {}
                Some(Oddity::Tag(plain)) => {
                    self.note(Disguise::Tags, at);
                    out.push(plain);
                }
                Some(Oddity::Command) => {
                    self.note(Disguise::Commands, at);
                    if c == '\u{1b}' || c == '\u{9b}' {
                        skip_sequence(c, &mut rest);
                    }
                }
                Some(Oddity::Styled) => {
                    styled += 1;
                    if styled == STYLED_MIN {
                        self.note(Disguise::Styled, at);
                    }
                    out.push(c);
                }
                Some(Oddity::SplitsWord) => self.note(Disguise::SplitWords, at),
                Some(Oddity::Invisible) => self.note(Disguise::Invisible, at),
                Some(Oddity::Turns) => self.note(Disguise::Turned, at),
            }
        }
        out
    }

    /// Returns the text with letters that look like Latin ones replaced by these, in words that have both.
    fn latinised(&mut self, plain: String, text: &str) -> String {
        if plain.chars().all(|c| latin_look_alike(c).is_none()) {
            return plain;
        }
        let mut out = String::with_capacity(plain.len());
        for word in plain.split_inclusive(|c: char| !c.is_alphabetic()) {
            match latin(word) {
                Some(latin) => {
                    // The original place is not known any more. The first place of such a letter will do.
                    let odd = word.chars().find(|c| latin_look_alike(*c).is_some());
                    let at = odd.and_then(|odd| text.find(odd)).unwrap_or(0);
                    self.note(Disguise::MixedScript, at);
                    out.push_str(&latin);
                }
                None => out.push_str(word),
            }
        }
        out
    }

    fn flatten(&mut self, text: &str) {
        self.flat.reserve(text.len());
        let mut spaces = 0;
        let mut breaks = 0;
        for (at, c) in text.char_indices() {
            if c.is_whitespace() {
                spaces += 1;
                breaks += usize::from(matches!(c, '\n' | '\u{2028}' | '\u{2029}'));
                continue;
            }
            if !self.flat.is_empty() {
                if spaces >= FLOOD_SPACES || breaks >= FLOOD_LINES {
                    self.note(Disguise::Flood, at);
                }
                if spaces > 0 {
                    self.flat.push(' ');
                }
                if breaks > 0 {
                    self.lines.push(self.flat.len());
                }
            }
            (spaces, breaks) = (0, 0);
            self.flat.push(c);
        }
    }
}

fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t'))
}

/// Skips the rest of a control sequence (ECMA-48): parameters and a final character.
fn skip_sequence(begun: char, rest: &mut std::iter::Peekable<impl Iterator<Item = (usize, char)>>) {
    let is_csi = begun == '\u{9b}' || rest.next_if(|(_, c)| *c == '[').is_some();
    if is_csi {
        while rest.next_if(|(_, c)| matches!(c, '0'..='?' | ' '..='/')).is_some() {}
        rest.next_if(|(_, c)| matches!(c, '@'..='~'));
    }
}

/// Returns the word in Latin letters, if it has some and all its other letters look like Latin ones.
fn latin(word: &str) -> Option<String> {
    let letters = || word.chars().filter(|c| c.is_alphabetic());
    let has_latin = letters().any(|c| c.is_ascii_alphabetic());
    let has_other = letters().any(|c| !c.is_ascii());
    let all = letters().all(|c| c.is_ascii_alphabetic() || latin_look_alike(c).is_some());
    (has_latin && has_other && all)
        .then(|| word.chars().map(|c| latin_look_alike(c).unwrap_or(c)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, flat: &str, disguises: &[Disguise]) {
        let reading = Reading::of(text);
        let found: Vec<_> = reading.disguises.iter().map(|(disguise, _)| *disguise).collect();
        assert_eq!((reading.flat.as_str(), found.as_slice()), (flat, disguises), "{text:?}");
    }

    #[test]
    fn texts_are_read_as_models_read_them() {
        check("Lists  files.\n\n  Use it.", "Lists files. Use it.", &[]);
        check("Don\u{2019}t \u{2014} \u{201c}x\u{201d}", "Don't - \"x\"", &[]);
        check("ig\u{200b}no\u{2060}re this", "ignore this", &[Disguise::SplitWords]);
        check("\u{feff}Lists files", "Lists files", &[Disguise::Invisible]);
        let tags: String = "do it"
            .chars()
            .map(|c| char::from_u32(c as u32 + 0xe0000))
            .map(Option::unwrap)
            .collect();
        check(&format!("Lists. {tags}"), "Lists. do it", &[Disguise::Tags]);
        check("\u{1f3f4}\u{e0067}\u{e0062}\u{e007f} flag", "\u{1f3f4} flag", &[]);
        check("\u{202e}elif\u{202c}", "elif", &[Disguise::Turned]);
        check("a\u{1b}[31;1mred\u{1b}[0m b", "ared b", &[Disguise::Commands]);
        check(
            "\u{1d422}\u{1d420}\u{1d427}\u{1d428}\u{1d42b}\u{1d41e}",
            "ignore",
            &[Disguise::Styled],
        );
        check("ｆｕｌｌ ｗｉｄｔｈ", "full width", &[]);
        check("pаsswоrd", "password", &[Disguise::MixedScript]);
        check("кириллица и Latin", "кириллица и Latin", &[]);
        check("5 μm, αβ-test", "5 μm, αβ-test", &[]);
    }

    #[test]
    fn floods_are_noted_only_before_text() {
        check(&format!("a{}b", " ".repeat(200)), "a b", &[Disguise::Flood]);
        check(&format!("a{}b", "\n".repeat(30)), "a b", &[Disguise::Flood]);
        check(&format!("a{}", " ".repeat(200)), "a", &[]);
        check(&format!("{}a", " ".repeat(200)), "a", &[]);
        check(&format!("a{}b", " ".repeat(60)), "a b", &[]);
    }

    #[test]
    fn lines_are_known() {
        let reading = Reading::of("one two\n  three\n\nfour");
        let starts: Vec<_> = reading.line_starts().map(|at| &reading.flat[at..]).collect();
        assert_eq!(starts, ["one two three four", "three four", "four"]);
    }
}
