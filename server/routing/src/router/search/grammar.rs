//! Grammar of queries: the reading of a text before any catalog is searched. The forms are those of the contract
//! (`SearchToolsRequest.query`).

use std::collections::HashSet;

use toolgate_core::error::Error;

/// Maximum number of names in one `select:` query.
pub const NAMES_MAX: usize = 100;

/// Maximum number of terms that are looked for in every tool.
pub const TERMS_MAX: usize = 16;

/// Maximum number of keywords; a longer text is read as a sentence.
const KEYWORDS_MAX: usize = 4;

/// Words that people do not type as keywords and that nearly every sentence contains. Sorted for binary search.
const FUNCTION_WORDS: [&str; 34] = [
    "a", "an", "and", "any", "are", "as", "at", "can", "do", "does", "for", "from", "how", "i",
    "in", "is", "it", "me", "my", "of", "on", "or", "our", "please", "that", "the", "this", "to",
    "what", "which", "who", "with", "you", "your",
];

/// Keyword of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// Keyword in lower case, without the `+`.
    pub text: String,
    /// True if a tool must match the term to be scored.
    pub required: bool,
}

/// Parsed query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// Tools by name, in this order.
    Select(Vec<String>),
    /// Text to search for.
    Text {
        /// Query as written, without white space around it.
        text: String,
        /// Keywords, required ones first; empty if the text is a sentence.
        terms: Vec<Term>,
    },
}

impl Query {
    /// Returns the text to search for; `None` for names.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Select(_) => None,
            Self::Text { text, .. } => Some(text),
        }
    }

    /// Parses a query.
    ///
    /// # Errors
    /// [`Error::InvalidFields`] for a blank query, a `select:` with no names or more than [`NAMES_MAX`], or more than
    /// [`TERMS_MAX`] terms if one of them is required.
    pub fn parse(query: &str) -> Result<Self, Error> {
        let text = query.trim();
        if text.is_empty() {
            return Err(wrong("must not be blank"));
        }
        match strip_select(text) {
            Some(names) => select(names),
            None => keywords(text).map(|terms| Self::Text { text: text.to_owned(), terms }),
        }
    }

    /// Returns true if the query has a required term.
    #[must_use]
    pub fn has_required(&self) -> bool {
        matches!(self, Self::Text { terms, .. } if terms.iter().any(|term| term.required))
    }
}

fn strip_select(text: &str) -> Option<&str> {
    let (form, names) = text.split_once(':')?;
    form.trim_end().eq_ignore_ascii_case("select").then_some(names)
}

fn select(names: &str) -> Result<Query, Error> {
    let mut seen = HashSet::new();
    let named = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    let names: Vec<String> = named.filter(|name| seen.insert(*name)).map(str::to_owned).collect();
    match names.len() {
        0 => Err(wrong("select: names no tool; write select:first,second")),
        1..=NAMES_MAX => Ok(Query::Select(names)),
        _ => Err(wrong("select: must name at most 100 tools")),
    }
}

fn keywords(text: &str) -> Result<Vec<Term>, Error> {
    let mut terms: Vec<Term> = Vec::new();
    for word in text.split_whitespace() {
        let (required, word) = word.strip_prefix('+').map_or((false, word), |rest| (true, rest));
        let text = word.trim_matches(is_punctuation).to_lowercase();
        match terms.iter_mut().find(|term| term.text == text) {
            _ if text.is_empty() => {}
            Some(known) => known.required |= required,
            None => terms.push(Term { text, required }),
        }
        if terms.len() > TERMS_MAX {
            break;
        }
    }
    let has_required = terms.iter().any(|term| term.required);
    if has_required && terms.len() > TERMS_MAX {
        return Err(wrong("must be at most 16 terms when one of them has a +"));
    }
    if !has_required && is_sentence(&terms) {
        return Ok(Vec::new());
    }
    // The sort is stable: required terms move to the front, and the written order stays otherwise.
    terms.sort_by_key(|term| !term.required);
    Ok(terms)
}

fn is_sentence(terms: &[Term]) -> bool {
    let is_function_word = |term: &Term| FUNCTION_WORDS.binary_search(&term.text.as_str()).is_ok();
    terms.len() > KEYWORDS_MAX || terms.iter().any(is_function_word)
}

fn is_punctuation(c: char) -> bool {
    matches!(c, ',' | ';' | ':' | '.' | '?' | '!' | '"' | '\'' | '`' | '(' | ')')
}

fn wrong(problem: &str) -> Error {
    Error::field("query", problem)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn terms(text: &str) -> String {
        match Query::parse(text).expect(text) {
            Query::Select(names) => format!("select {}", names.join("|")),
            Query::Text { terms, .. } => {
                let shown = |t: &Term| format!("{}{}", if t.required { "+" } else { "" }, t.text);
                terms.iter().map(shown).collect::<Vec<_>>().join(" ")
            }
        }
    }

    #[test]
    fn each_form_is_told_apart() {
        for (query, read) in [
            ("select:mcp__git__log", "select mcp__git__log"),
            (" Select : a , b,,a ", "select a|b"),
            ("select:functions.a,git/log", "select functions.a|git/log"),
            ("slack send", "slack send"),
            ("Slack, SEND?", "slack send"),
            ("send +slack", "+slack send"),
            ("slack +slack", "+slack"),
            ("+the +of", "+the +of"),
            ("c++ c#", "c++ c#"),
            ("check my inbox", ""),
            ("tickets assigned today still open", ""),
            ("? !", ""),
            ("selected items", "selected items"),
            ("git:log", "git:log"),
        ] {
            assert_eq!(terms(query), read, "{query:?}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let many = |n: usize| (0..n).map(|i| format!("w{i}")).collect::<Vec<_>>();
        let names = format!("select:{}", many(101).join(","));
        let required = format!("+x {}", many(16).join(" "));
        for (query, part) in [
            ("  ", "blank"),
            ("select:", "names no tool"),
            ("select: , ", "names no tool"),
            (&names, "at most 100"),
            (&required, "at most 16"),
        ] {
            let error = Query::parse(query).expect_err(query).to_string();
            assert!(error.contains(part), "{error}");
        }
        assert!(Query::parse(&format!("select:{}", many(100).join(","))).is_ok());
        assert!(Query::parse(&format!("+x {}", many(15).join(" "))).is_ok());
    }

    #[test]
    fn function_words_are_sorted() {
        assert!(FUNCTION_WORDS.is_sorted());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,300}") {
            match Query::parse(&text) {
                Err(_) => {}
                Ok(Query::Select(names)) => {
                    prop_assert!((1..=NAMES_MAX).contains(&names.len()));
                    prop_assert!(names.iter().all(|name| !name.is_empty() && name.trim() == name));
                }
                Ok(Query::Text { text: kept, terms }) => {
                    prop_assert_eq!(kept, text.trim());
                    prop_assert!(terms.len() <= TERMS_MAX);
                    let distinct: HashSet<_> = terms.iter().map(|term| &term.text).collect();
                    prop_assert_eq!(distinct.len(), terms.len());
                    prop_assert!(terms.iter().all(|term| !term.text.is_empty()));
                    prop_assert!(terms.is_sorted_by_key(|term| !term.required));
                }
            }
        }

        #[test]
        fn what_is_selected_is_what_was_written(
            names in proptest::collection::vec("[A-Za-z0-9_./-]{1,20}", 1..100)
        ) {
            let mut seen = HashSet::new();
            let expected: Vec<_> = names.iter().filter(|n| seen.insert(*n)).cloned().collect();
            let query = format!("select:{}", names.join(" , "));
            prop_assert_eq!(Query::parse(&query).expect("names"), Query::Select(expected));
        }

        #[test]
        fn required_terms_are_required(
            required in proptest::collection::hash_set("[a-z]{2,8}", 1..8),
            others in proptest::collection::hash_set("[a-z]{2,8}", 0..8),
        ) {
            let plus = required.iter().map(|term| format!("+{term}"));
            let words: Vec<_> = others.iter().cloned().chain(plus).collect();
            let query = Query::parse(&words.join(" ")).expect("terms");
            prop_assert!(query.has_required());
            let Query::Text { terms, .. } = query else { panic!("{words:?}") };
            let read: HashSet<_> =
                terms.into_iter().filter(|t| t.required).map(|t| t.text).collect();
            prop_assert_eq!(read, required);
        }
    }
}
