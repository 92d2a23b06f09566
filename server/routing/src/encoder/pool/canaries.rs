//! Texts for checks of workers. They are drawn anew when the process starts and look like intents and summaries. They
//! are sent alone or among others, in the numbers that registrations send too. A worker can't tell a check from traffic
//! by its texts.

use std::ops::RangeInclusive;

use super::CHUNK;

/// Number of texts whose embeddings are known.
pub(super) const KNOWN: usize = 16;

/// Maximum texts of a small check.
const TEXTS_MAX: usize = 4;

/// One small check in this many has more than one text: intents are sent alone, registrations together.
const SEVERAL_IN: usize = 4;

/// One check in this many has `MANY` texts, like the requests of registrations. Two or three of its texts are known.
const MANY_IN: usize = 16;
const MANY: RangeInclusive<usize> = 8..=CHUNK;

/// Maximum sentences of a text.
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

/// Text and its embedding by a trusted encoder.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct KnownText {
    pub(super) text: String,
    pub(super) vector: Vec<f32>,
    /// Minimum cosine of a worker's embedding with this one.
    pub(super) cosine_min: f32,
}

/// Texts of one check, of which at least one is known.
#[derive(Debug)]
pub(super) struct Check<'a> {
    pub(super) texts: Vec<String>,
    /// Known text at each position, or `None` if the text is new.
    pub(super) known: Vec<Option<&'a KnownText>>,
}

impl<'a> Check<'a> {
    /// Draws a check. `known` must not be empty. If `caught` holds texts that the worker answered wrongly, one of them
    /// is included: a worker that has learned which texts are `known` has to answer that one too. New texts begin with
    /// one of `prefixes`.
    pub(super) fn draw(
        known: &'a [KnownText],
        caught: &'a [KnownText],
        prefixes: &[String],
    ) -> Self {
        let mut drawn: Vec<Option<&KnownText>> = Vec::new();
        let one_of = |from: &'a [KnownText]| fastrand::choice(from);
        drawn.push(one_of(if caught.is_empty() { known } else { caught }));
        if fastrand::usize(..MANY_IN) == 0 {
            let mut others: Vec<_> = known.iter().map(Some).collect();
            fastrand::shuffle(&mut others);
            drawn.extend(others.into_iter().take(fastrand::usize(1..=2)));
            drawn.resize(many(), None);
        } else if fastrand::usize(..SEVERAL_IN) == 0 {
            let texts = fastrand::usize(2..=TEXTS_MAX);
            drawn.resize_with(texts, || if fastrand::bool() { one_of(known) } else { None });
        }
        // Shuffling lets a known text take any position.
        fastrand::shuffle(&mut drawn);
        let text = |one: &Option<&KnownText>| {
            one.map_or_else(|| new_text(prefixes), |one| one.text.clone())
        };
        Self { texts: drawn.iter().map(text).collect(), known: drawn }
    }
}

/// Draws the number of texts of a large check. Every number in `MANY` is possible, and small ones are more likely.
fn many() -> usize {
    let span = MANY.end() - MANY.start();
    MANY.start() + fastrand::usize(..=fastrand::usize(..=span))
}

/// Draws `count` distinct texts.
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

/// Draws a text of one to three sentences, most often one.
fn new_text(prefixes: &[String]) -> String {
    let prefix = fastrand::choice(prefixes).map_or("", String::as_str);
    let sentences = 1 + fastrand::usize(..=fastrand::usize(..SENTENCES_MAX));
    let sentence = |_| {
        let verb = VERBS[fastrand::usize(..VERBS.len())];
        let object = OBJECTS[fastrand::usize(..OBJECTS.len())];
        format!("{verb} {object}{}", ENDS[fastrand::usize(..ENDS.len())])
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
        let mut large = Vec::new();
        for _ in 0..10_000 {
            let check = Check::draw(&known, &[], &[]);
            assert_eq!(check.texts.len(), check.known.len());
            if check.texts.len() > TEXTS_MAX {
                large.push((check.texts.len(), check.known.iter().flatten().count()));
            }
            for (place, one) in check.known.iter().enumerate() {
                let Some(one) = one else { continue };
                assert_eq!(one.text, check.texts[place]);
                seen.insert(one.text.clone());
                shapes.insert((check.texts.len(), place));
            }
            assert!(check.known.iter().any(Option::is_some));
        }
        assert_eq!(seen.len(), KNOWN);
        let few = shapes.iter().filter(|(texts, _)| *texts <= TEXTS_MAX).count();
        assert_eq!(few, (1..=TEXTS_MAX).sum::<usize>(), "{shapes:?}");
        // One in sixteen is as large as those of registrations. The bounds are 12 standard deviations wide.
        assert!((330..920).contains(&large.len()), "{}", large.len());
        assert!(large.iter().all(|(texts, known)| MANY.contains(texts) && (2..=3).contains(known)));
        for known in [2, 3] {
            let of = large.iter().filter(|(_, count)| *count == known).map(|(texts, _)| *texts);
            let sizes: HashSet<_> = of.collect();
            assert!(sizes.iter().min() < Some(&12) && sizes.iter().max() > Some(&40), "{sizes:?}");
        }
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
