//! Patterns of names, models and hosts. They know no classes and no alternatives, so that a text is matched in bounded
//! time, and the steps that it takes can be counted.

use std::fmt::{self, Write as _};

/// Pattern for a whole text: `*` stands for any text, and everything else for itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Glob(Vec<Part>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// `*`
    AnyText,
    /// `?`, in patterns that know it.
    AnyCharacter,
    Exactly(char),
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| {
            f.write_char(match part {
                Part::AnyText => '*',
                Part::AnyCharacter => '?',
                Part::Exactly(character) => *character,
            })
        })
    }
}

impl Glob {
    /// Creates a pattern in which `?` stands for one character.
    pub(crate) fn new(text: &str) -> Self {
        Self(text.chars().map(Part::of).collect())
    }

    /// Creates a pattern in which `?` stands for itself.
    pub(crate) fn of_stars(text: &str) -> Self {
        let part = |c| if c == '?' { Part::Exactly(c) } else { Part::of(c) };
        Self(text.chars().map(part).collect())
    }

    /// Returns true if the pattern matches every text.
    pub(crate) fn matches_all(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(|part| *part == Part::AnyText)
    }

    /// Returns true if some part of the pattern stands for more than itself.
    pub(crate) fn has_wildcard(&self) -> bool {
        self.0.iter().any(|part| !matches!(part, Part::Exactly(_)))
    }

    /// Returns true if the pattern matches the whole text. It takes at most as many steps as both lengths multiplied: on a
    /// mismatch the last star moves on by one character, and earlier stars never have to. Adds the steps to `steps`.
    pub(crate) fn matches(&self, text: &str, steps: &mut usize) -> bool {
        let glob = &self.0;
        let mut at = 0;
        let mut rest = text.chars();
        // Place after the last star, and the text that was left there.
        let mut star = None;
        loop {
            *steps += 1;
            let before = rest.clone();
            match (glob.get(at), rest.next()) {
                (Some(Part::AnyText), _) => {
                    rest = before;
                    at += 1;
                    star = Some((at, rest.clone()));
                }
                (None, None) => return true,
                (Some(Part::AnyCharacter), Some(_)) => at += 1,
                (Some(Part::Exactly(wanted)), Some(found)) if *wanted == found => at += 1,
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

impl Part {
    fn of(character: char) -> Self {
        match character {
            '*' => Self::AnyText,
            '?' => Self::AnyCharacter,
            other => Self::Exactly(other),
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

    #[test]
    fn some_patterns_know_stars_only() {
        let matches = |text: &str| Glob::of_stars("a?*").matches(text, &mut 0);
        assert!(matches("a?") && matches("a?bc") && !matches("ab"));
        assert_eq!(Glob::of_stars("a?*"), Glob::of_stars(&Glob::new("a?*").to_string()));
        assert!(!Glob::of_stars("a?").has_wildcard() && Glob::new("a?").has_wildcard());
    }
}
