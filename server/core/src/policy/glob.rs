//! Patterns of names: `*` stands for any text, `?` for one character, and everything else for itself.

use std::fmt::{self, Write as _};

/// Pattern for names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Glob(Vec<char>);

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|c| f.write_char(*c))
    }
}

impl Glob {
    pub(super) fn new(text: &str) -> Self {
        Self(text.chars().collect())
    }

    /// Returns true if the pattern matches every name.
    pub(super) fn matches_all(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(|c| *c == '*')
    }

    /// Returns true if the pattern matches the name. It takes at most as many steps as both lengths multiplied: on a
    /// mismatch the last star moves on by one character, and earlier stars never have to. Adds the steps to `steps`.
    pub(super) fn matches(&self, text: &str, steps: &mut usize) -> bool {
        let glob = &self.0;
        let mut at = 0;
        let mut rest = text.chars();
        // Place after the last star, and the text that was left there.
        let mut star = None;
        loop {
            *steps += 1;
            let before = rest.clone();
            match (glob.get(at), rest.next()) {
                (Some('*'), _) => {
                    rest = before;
                    at += 1;
                    star = Some((at, rest.clone()));
                }
                (None, None) => return true,
                (Some(wanted), Some(c)) if *wanted == '?' || *wanted == c => at += 1,
                _ => {
                    let Some((after, left)) = &mut star else { return false };
                    if left.next().is_none() {
                        return false;
                    }
                    (at, rest) = (*after, left.clone());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks() {
        let matches = |glob: &str, text: &str| Glob::new(glob).matches(text, &mut 0);
        for (glob, text) in [
            ("*", ""),
            ("*", "a"),
            ("a*", "a"),
            ("a*b*c", "aXbYbZc"),
            ("??", "äß"),
            ("", ""),
            ("delete_*", "delete_repo"),
            ("*_repo", "delete_repo"),
            ("a**b", "ab"),
            ("a?c", "abc"),
        ] {
            assert!(matches(glob, text), "{glob} {text}");
        }
        for (glob, text) in [
            ("", "a"),
            ("?", ""),
            ("a", "ab"),
            ("a*b", "abc"),
            ("A", "a"),
            ("[a]", "a"),
            ("*?", ""),
        ] {
            assert!(!matches(glob, text), "{glob} {text}");
        }
        assert!(!matches(&"*a".repeat(60), &"a".repeat(59)));
    }
}
