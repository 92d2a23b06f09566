//! The texts that workers are checked with. They are drawn anew when the process starts, look like intents and
//! summaries, and come alone or among others, so that a worker can't tell a check from traffic by its texts.

use super::random::below;

/// Texts whose embeddings are known.
pub(super) const KNOWN: usize = 16;

/// Texts of a check that has more than one.
const TEXTS_MAX: usize = 4;

/// One check in so many has more than one text: intents come alone, registrations together.
const SEVERAL_IN: usize = 4;

/// Sentences of a text.
const SENTENCES_MAX: usize = 3;

const VERBS: [&str; 16] = [
    "find",
    "list",
    "show",
    "count",
    "open",
    "close",
    "delete",
    "update",
    "search",
    "summarize",
    "translate",
    "send",
    "rename",
    "compare",
    "download",
    "check",
];

const OBJECTS: [&str; 24] = [
    "the open issues of a repository",
    "the unread messages in my inbox",
    "all invoices of last month",
    "the weather forecast for Berlin",
    "flights from Oslo to Lisbon",
    "customers without an order this year",
    "the slow queries of the database",
    "the tests that fail on the main branch",
    "the notes of yesterday's meeting",
    "pictures of the product page",
    "support tickets that nobody answered",
    "a table with the columns name and price",
    "the logs of the payment service",
    "pull requests that are older than a week",
    "the files in the shared folder",
    "the calendar of the sales team",
    "GPU hours by project and day",
    "the contract with the supplier in Zürich",
    "restaurants near the station",
    "the subscribers of the newsletter",
    "a recipe for four persons",
    "the stock price of a company",
    "the containers that use the most memory",
    "the translation into French and Japanese",
];

const ENDS: [&str; 8] = [
    "",
    " and tell me what changed",
    ", newest first",
    " as a CSV file",
    " before Friday at 17:00",
    " in the staging environment",
    " for the customer with this number",
    " without asking me again",
];

/// A text and its embedding by an encoder that is trusted.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct KnownText {
    pub(super) text: String,
    pub(super) vector: Vec<f32>,
    /// The least cosine of a worker's embedding with it.
    pub(super) cosine_min: f32,
}

/// The texts of one check, of which one at least is known.
#[derive(Debug)]
pub(super) struct Check<'a> {
    pub(super) texts: Vec<String>,
    /// For each text what is known of it.
    pub(super) known: Vec<Option<&'a KnownText>>,
}

impl<'a> Check<'a> {
    /// Draws a check. `known` is not empty. Where the worker was `caught` with a wrong answer, one of those texts is in
    /// it: a worker that has learnt which texts are `known` has to answer that one as well. New texts begin with one
    /// of `prefixes`.
    pub(super) fn draw(
        known: &'a [KnownText],
        caught: &'a [KnownText],
        prefixes: &[String],
    ) -> Self {
        let mut drawn: Vec<(String, Option<&KnownText>)> = Vec::new();
        let add_known = |from: &'a [KnownText]| {
            from.get(below(from.len())).map(|one| (one.text.clone(), Some(one)))
        };
        drawn.extend(add_known(if caught.is_empty() { known } else { caught }));
        let texts = if below(SEVERAL_IN) == 0 { 2 + below(TEXTS_MAX - 1) } else { 1 };
        while drawn.len() < texts {
            let another = if below(2) == 0 { add_known(known) } else { None };
            drawn.push(another.unwrap_or_else(|| (new_text(prefixes), None)));
        }
        // A known text is at any place.
        for place in (1..drawn.len()).rev() {
            drawn.swap(place, below(place + 1));
        }
        let (texts, known) = drawn.into_iter().unzip();
        Self { texts, known }
    }
}

/// Draws texts to be known, each another one.
pub(super) fn new_texts(count: usize, prefixes: &[String]) -> Vec<String> {
    let mut texts: Vec<String> = Vec::with_capacity(count);
    while texts.len() < count {
        let text = new_text(prefixes);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

/// Draws a text of one to three sentences, most often of one.
fn new_text(prefixes: &[String]) -> String {
    let prefix = prefixes.get(below(prefixes.len())).map_or("", String::as_str);
    let sentences = 1 + below(1 + below(SENTENCES_MAX));
    let sentence = |_| {
        let verb = VERBS[below(VERBS.len())];
        let object = OBJECTS[below(OBJECTS.len())];
        format!("{verb} {object}{}", ENDS[below(ENDS.len())])
    };
    let sentences: Vec<String> = (0..sentences).map(sentence).collect();
    format!("{prefix}{}", sentences.join(". "))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn known(texts: &[String]) -> Vec<KnownText> {
        let known =
            |text: &String| KnownText { text: text.clone(), vector: vec![1.0], cosine_min: 0.99 };
        texts.iter().map(known).collect()
    }

    #[test]
    fn texts_differ_from_process_to_process() {
        let prefixes = ["query: ".to_owned(), "passage: ".to_owned()];
        let first = new_texts(KNOWN, &prefixes);
        assert_eq!(first.iter().collect::<HashSet<_>>().len(), KNOWN);
        assert!(first.iter().all(|text| prefixes.iter().any(|prefix| text.starts_with(prefix))));
        // The chance that two draws are the same is below 10^-50.
        assert_ne!(first, new_texts(KNOWN, &prefixes));
    }

    #[test]
    fn a_known_text_comes_alone_and_among_others_at_any_place() {
        let known = known(&new_texts(KNOWN, &[]));
        let mut shapes = HashSet::new();
        let mut seen = HashSet::new();
        for _ in 0..10_000 {
            let check = Check::draw(&known, &[], &[]);
            assert_eq!(check.texts.len(), check.known.len());
            for (place, one) in check.known.iter().enumerate() {
                let Some(one) = one else { continue };
                assert_eq!(one.text, check.texts[place]);
                seen.insert(one.text.clone());
                shapes.insert((check.texts.len(), place));
            }
            assert!(check.known.iter().any(Option::is_some));
        }
        assert_eq!(seen.len(), KNOWN);
        assert_eq!(shapes.len(), (1..=TEXTS_MAX).sum::<usize>(), "{shapes:?}");
    }

    #[test]
    fn what_a_worker_was_caught_with_is_asked_each_time() {
        let known = known(&new_texts(KNOWN, &[]));
        let caught = super::tests::known(&["an intent".to_owned()]);
        for _ in 0..1_000 {
            let check = Check::draw(&known, &caught, &[]);
            assert!(check.texts.iter().any(|text| text == "an intent"));
        }
    }
}
