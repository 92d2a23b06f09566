//! The clauses of a query, as a client without a language model of its own would cut it into intents.

/// What stands between two things to do.
const BETWEEN: [&str; 6] =
    [", and ", " and then ", ", then ", " and also ", " as well as ", " and "];

/// Words that a clause needs to say something.
const WORDS_MIN: usize = 3;

/// The most intents of one turn beside the whole text.
const CLAUSES_MAX: usize = 15;

/// The clauses of `query`, in their order; none when it is one clause.
#[must_use]
pub fn of(query: &str) -> Vec<&str> {
    let sentences = query.split(['.', '?', '!', ';', '\n']);
    let clauses = sentences.flat_map(|sentence| cut(sentence, &BETWEEN));
    let clauses =
        clauses.map(str::trim).filter(|clause| clause.split_whitespace().count() >= WORDS_MIN);
    let clauses: Vec<_> = clauses.take(CLAUSES_MAX).collect();
    if clauses.len() < 2 { Vec::new() } else { clauses }
}

fn cut<'a>(text: &'a str, between: &[&str]) -> Vec<&'a str> {
    let Some((first, rest)) = between.split_first() else { return vec![text] };
    text.split(first).flat_map(|piece| cut(piece, rest)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_are_cut_where_something_else_begins() {
        let query = "Find a flight to Oslo, and book a room there. What is the weather like?";
        let clauses = ["Find a flight to Oslo", "book a room there", "What is the weather like"];
        assert_eq!(of(query), clauses);
        assert!(of("list all issues of the repository").is_empty());
        assert!(of("salt and pepper").is_empty(), "two words are no clause");
        assert_eq!(of(&"do this one thing. ".repeat(40)).len(), CLAUSES_MAX);
    }
}
