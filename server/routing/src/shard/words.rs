//! Lexical index of one shard: BM25 over the terms of each slot's text. It also ranks alone if there is no embedding.
//! The module `terms` splits texts into terms.

pub mod language;
mod stop_words;
mod synonyms;
pub mod terms;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use fixedbitset::FixedBitSet;

use language::Languages;
use synonyms::Synonyms;

/// Saturation of repeated terms, and weight of a text's length, with the usual values for BM25 (S. Robertson and H.
/// Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", Foundations and Trends in Information Retrieval
/// 3(4), 2009).
const K1: f32 = 1.2;
const B: f32 = 0.75;

/// Units of [`Field::halves`] that count as one occurrence of a term.
const HALVES: f32 = 2.0;

/// Maximum terms of a query that are looked up, from its beginning. About as much as the encoder reads of a text.
const QUERY_TERMS: usize = 256;

/// Weight of a synonym against the word itself, for a text that has none of the query's words. docs/evaluation.md has the
/// effect. With .4, recall at 5 of 400 queries of StableToolBench fell by .010; with .2, that at 10 of 900 requests of
/// packs rose by .033 and not by .044.
const SYNONYM: f32 = 0.3;

/// Words that a search looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Words of the query.
    Words,
    /// Words of the query, and the words that tools use for the same. Texts that lack the query's words are found too.
    Synonyms,
}

/// Result of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WordHit {
    /// Position of the text in the texts given to [`WordIndex::build`].
    pub slot: u32,
    /// BM25 score, above 0. Scores are comparable within one answer only.
    pub score: f32,
    /// Share of the query's terms that the text has, weighted by rarity, 0 to 1. Terms that no text has count too.
    pub share: f32,
}

/// Occurrences of a term in one slot.
#[derive(Debug, Clone, Copy)]
struct Posting {
    slot: u32,
    halves: u32,
}

/// Part of a slot's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field<'a> {
    /// Text of the field.
    pub text: Cow<'a, str>,
    /// Weight of each of its terms, in halves of an occurrence: 2 is once.
    pub halves: u32,
    /// Languages in which its words are read.
    pub languages: Languages,
}

impl<'a> Field<'a> {
    /// Creates a field from a text in these languages, with a weight in halves.
    pub fn new(halves: u32, languages: Languages, text: impl Into<Cow<'a, str>>) -> Self {
        Self { text: text.into(), halves, languages }
    }
}

/// Index of texts by slot, searched by their words. It is immutable and shared between threads by reference.
#[derive(Debug, Default)]
pub struct WordIndex {
    postings: HashMap<Box<str>, Box<[Posting]>>,
    slots: Vec<Slot>,
}

/// Length and languages of a slot's text.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// Number of terms, in halves.
    length: u32,
    languages: Languages,
}

/// Postings of an index that is being built.
#[derive(Default)]
struct Gathered {
    /// Position of each term's postings.
    terms: HashMap<Box<str>, usize>,
    postings: Vec<Vec<Posting>>,
    /// Positions of each word's terms. The same words come again and again, and stemming takes longer than a lookup.
    words: HashMap<Languages, HashMap<Box<str>, Box<[usize]>>>,
}

impl Gathered {
    /// Adds the terms of a field, and returns their number, in halves.
    fn add(&mut self, slot: u32, field: &Field<'_>) -> u32 {
        let Self { terms, postings, words } = self;
        let known = words.entry(field.languages).or_default();
        let mut length = 0;
        terms::words(&field.text, |word| {
            let places = match known.get(word) {
                Some(places) => places,
                None => {
                    let mut places = Vec::new();
                    terms::stems(word, field.languages, |term| {
                        places.push(place(terms, postings, term));
                    });
                    known.entry(word.into()).or_insert(places.into())
                }
            };
            for place in places {
                length += field.halves;
                count(&mut postings[*place], slot, field.halves);
            }
        });
        length
    }

    fn postings(self) -> HashMap<Box<str>, Box<[Posting]>> {
        let mut postings = self.postings;
        let lists = self.terms.into_iter().map(|(term, place)| {
            let list = std::mem::take(&mut postings[place]);
            (term, list.into())
        });
        lists.collect()
    }
}

/// Returns the position of a term's postings, which are empty if the term is new.
fn place(
    terms: &mut HashMap<Box<str>, usize>,
    postings: &mut Vec<Vec<Posting>>,
    term: &str,
) -> usize {
    if let Some(place) = terms.get(term) {
        return *place;
    }
    postings.push(Vec::new());
    terms.insert(term.into(), postings.len() - 1);
    postings.len() - 1
}

impl WordIndex {
    /// Indexes the fields of each slot, slot 0 first.
    pub fn build<'a>(slots: impl Iterator<Item = Vec<Field<'a>>>) -> Self {
        let mut gathered = Gathered::default();
        let mut indexed = Vec::new();
        for (slot, fields) in (0..).zip(slots) {
            let mut text = Slot::default();
            for field in fields {
                text.languages = text.languages | field.languages;
                text.length += gathered.add(slot, &field);
            }
            indexed.push(text);
        }
        Self { postings: gathered.postings(), slots: indexed }
    }

    /// Returns the `k` best of the allowed slots (`None`: of all) that share a term with `query`, best first. Equal
    /// scores are ordered by slot. Bits of `allowed` beyond the last slot are ignored. Texts that are not allowed do
    /// not influence scores, so that scores reveal nothing about them.
    #[must_use]
    pub fn search(
        &self,
        query: &str,
        k: usize,
        allowed: Option<&FixedBitSet>,
        reach: Reach,
    ) -> Vec<WordHit> {
        let search = Search::new(self, allowed);
        let terms = distinct_terms(query, search.texts.languages);
        let mut sums = vec![Sums::default(); self.slots.len()];
        let asked = search.add_words(&terms, &mut sums);
        // A word of another language may be spelt like an English one.
        if reach == Reach::Synonyms && language::may_be_english(query) {
            search.add_synonyms(&terms, asked, &mut sums);
        }
        let hit = |(slot, Sums { score, had })| WordHit { slot, score, share: had / asked };
        let mut hits: Vec<WordHit> =
            (0..).zip(sums).filter(|(_, sums)| sums.score > 0.0).map(hit).collect();
        let best_first =
            |a: &WordHit, b: &WordHit| b.score.total_cmp(&a.score).then(a.slot.cmp(&b.slot));
        // A word that every tool has makes all of them hits, so only the best are sorted.
        if k < hits.len() {
            hits.select_nth_unstable_by(k, best_first);
            hits.truncate(k);
        }
        hits.sort_unstable_by(best_first);
        hits
    }

    /// Returns the number of slots.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns true if there are no texts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the resident bytes, for the memory budget. The slack of the hash table is estimated.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let entry = size_of::<(Box<str>, Box<[Posting]>)>() + 1;
        let texts: usize = self.postings.keys().map(|term| term.len()).sum();
        let lists: usize = self.postings.values().map(|list| size_of_val(&**list)).sum();
        size_of::<Self>()
            + self.postings.capacity() * entry
            + texts
            + lists
            + self.slots.capacity() * size_of::<Slot>()
    }

    /// Returns the postings of a term; empty if no text has it.
    fn postings(&self, term: &str) -> &[Posting] {
        self.postings.get(term).map(AsRef::as_ref).unwrap_or_default()
    }
}

/// Returns each distinct term that `query` has in these languages. They are sorted, so that sums are the same in every
/// run.
fn distinct_terms(query: &str, languages: Languages) -> Vec<String> {
    let mut distinct: Vec<String> = Vec::new();
    terms::each(query, languages.of_query(query), |term| {
        if distinct.len() < QUERY_TERMS {
            distinct.push(term.to_owned());
        }
    });
    distinct.sort_unstable();
    distinct.dedup();
    distinct
}

/// Search of the allowed texts.
struct Search<'a> {
    index: &'a WordIndex,
    allowed: Option<&'a FixedBitSet>,
    texts: Texts,
}

impl<'a> Search<'a> {
    fn new(index: &'a WordIndex, allowed: Option<&'a FixedBitSet>) -> Self {
        let is_allowed = |slot: usize| allowed.is_none_or(|bits| bits.contains(slot));
        Self { index, allowed, texts: Texts::of(&index.slots, is_allowed) }
    }

    /// Adds the scores of the terms themselves, and returns the total rarity of the terms.
    fn add_words(&self, terms: &[String], sums: &mut [Sums]) -> f32 {
        let mut asked = 0.0;
        for term in terms {
            let rarity = self.rarity(term);
            asked += rarity;
            for posting in self.found(term) {
                let sums = &mut sums[posting.slot as usize];
                sums.score += rarity * self.saturation(posting);
                sums.had += rarity;
            }
        }
        asked
    }

    /// Adds the scores of the terms' synonyms. They count for the part of the query that a text lacks, so that one with
    /// all the words gains nothing. A synonym is worth no more than the word that it stands for.
    fn add_synonyms(&self, terms: &[String], asked: f32, sums: &mut [Sums]) {
        let mut related: BTreeMap<&str, f32> = BTreeMap::new();
        for term in terms {
            let is_known = self.found(term).next().is_some();
            let most = if is_known { self.rarity(term) } else { f32::INFINITY };
            for synonym in Synonyms::shipped().of(term) {
                let worth = related.entry(synonym).or_insert(0.0);
                *worth = worth.max(most);
            }
        }
        related.retain(|synonym, _| terms.binary_search_by(|term| (**term).cmp(synonym)).is_err());
        for (synonym, most) in related {
            let rarity = self.rarity(synonym).min(most);
            for posting in self.found(synonym) {
                let sums = &mut sums[posting.slot as usize];
                let lacking = 1.0 - sums.had / asked;
                sums.score += SYNONYM * lacking * rarity * self.saturation(posting);
            }
        }
    }

    /// Returns the postings of a term in the allowed texts.
    fn found(&self, term: &str) -> impl Iterator<Item = &'a Posting> {
        let allowed = self.allowed;
        let is_allowed = move |slot: u32| allowed.is_none_or(|bits| bits.contains(slot as usize));
        self.index.postings(term).iter().filter(move |posting| is_allowed(posting.slot))
    }

    fn rarity(&self, term: &str) -> f32 {
        self.texts.rarity(self.found(term).count())
    }

    /// Returns the part of BM25's score that depends on the occurrences of the term and on the text's length.
    fn saturation(&self, posting: &Posting) -> f32 {
        let times = posting.halves as f32 / HALVES;
        let damping = self.texts.damping(self.index.slots[posting.slot as usize].length);
        times * (K1 + 1.0) / (times + damping)
    }
}

/// Sums over a query's terms for one slot.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    score: f32,
    /// Total rarity of the terms that the slot has.
    had: f32,
}

/// Statistics of the texts that are searched.
struct Texts {
    count: usize,
    mean_length: f32,
    languages: Languages,
}

impl Texts {
    fn of(slots: &[Slot], is_allowed: impl Fn(usize) -> bool) -> Self {
        let mut count = 0_usize;
        let mut total = 0_u64;
        let mut languages = Languages::default();
        for (_, slot) in slots.iter().enumerate().filter(|(slot, _)| is_allowed(*slot)) {
            count += 1;
            total += u64::from(slot.length);
            languages = languages | slot.languages;
        }
        Self { count, mean_length: (total as f32 / count.max(1) as f32).max(1.0), languages }
    }

    /// Returns BM25's inverse document frequency, in the form that never falls below 0.
    fn rarity(&self, having: usize) -> f32 {
        let all = self.count as f32;
        let having = having as f32;
        (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
    }

    /// Returns K1 times the length part of BM25's denominator.
    fn damping(&self, length: u32) -> f32 {
        K1 * (1.0 - B + B * length as f32 / self.mean_length)
    }
}

/// Adds an occurrence to the postings of a term. Texts come in order of slot, so only the last posting can belong to
/// this slot.
fn count(postings: &mut Vec<Posting>, slot: u32, halves: u32) {
    match postings.last_mut() {
        Some(last) if last.slot == slot => last.halves += halves,
        _ => postings.push(Posting { slot, halves }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use language::Language;

    fn of_texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> WordIndex {
        let field = |text| vec![Field::new(2, Language::of(text).into(), text)];
        WordIndex::build(texts.into_iter().map(field))
    }

    const TEXTS: [&str; 5] = [
        "createIssue: open a new issue in a GitHub repository",
        "list_pull_requests: list the pull requests of a repository",
        "send-email: send an e-mail to one or more people",
        "s3_upload_object: upload an object to an S3 bucket",
        "天気予報を取得する: weather forecast for a city",
    ];

    fn index() -> WordIndex {
        of_texts(TEXTS)
    }

    fn slots(query: &str, k: usize, allowed: Option<&FixedBitSet>) -> Vec<u32> {
        index().search(query, k, allowed, Reach::Words).iter().map(|hit| hit.slot).collect()
    }

    #[test]
    fn finds_by_parts_of_names_in_any_case() {
        assert_eq!(slots("please CREATE an ISSUE", 3, None), [0]);
        assert_eq!(slots("pull request list", 1, None), [1]);
        assert_eq!(slots("new github issue", 1, None), [0]);
        assert_eq!(slots("put a file into S3", 3, None), [3]);
        assert_eq!(slots("repository", 9, None), [1, 0]);
    }

    #[test]
    fn other_languages_are_found_by_their_stems() {
        let german = "Sucht die Rechnungen eines Kunden nach Zeitraum oder Betrag";
        let index = of_texts([german, "search notes by their title"]);
        let slots = |query, allowed| -> Vec<u32> {
            index.search(query, 9, allowed, Reach::Words).iter().map(|hit| hit.slot).collect()
        };
        assert_eq!(slots("welche Rechnung war das?", None), [0]);
        assert_eq!(slots("note titles", None), [1]);
        assert!(slots("nach der und die", None).is_empty(), "stop words of German");
        // Words of hidden texts are not looked up either.
        let english: FixedBitSet = (1..2).collect();
        assert_eq!(
            index.search("notiere die title", 9, Some(&english), Reach::Words),
            of_texts(["", "search notes by their title"]).search(
                "notiere die title",
                9,
                Some(&english),
                Reach::Words
            )
        );
    }

    #[test]
    fn scripts_without_spaces_are_found_by_their_characters() {
        assert_eq!(slots("明日の天気は?", 3, None), [4]);
    }

    #[test]
    fn the_score_is_bm25() {
        let index = of_texts(["apple apple pear", "pear", "plum"]);
        let hits = index.search("apple", 9, None, Reach::Words);
        let rarity = (1.0_f32 + (3.0 - 1.0 + 0.5) / (1.0 + 0.5)).ln();
        let mean = 5.0 / 3.0;
        let expected = rarity * 2.0 * 2.2 / (2.0 + 1.2 * (0.25 + 0.75 * 3.0 / mean));
        assert_eq!(hits.len(), 1);
        assert!((hits[0].score - expected).abs() < 1e-5, "{} for {expected}", hits[0].score);
    }

    #[test]
    fn a_share_counts_terms_that_no_text_has() {
        let index = of_texts(["apple pear", "pear", "plum"]);
        let shares = |query| -> Vec<(u32, f32)> {
            index
                .search(query, 9, None, Reach::Words)
                .iter()
                .map(|hit| (hit.slot, hit.share))
                .collect()
        };
        assert_eq!(shares("apple apple pear"), [(0, 1.0), (1, shares("pear apple")[1].1)]);
        let of_one = shares("plum");
        let of_two = shares("plum airport");
        assert_eq!((of_one.len(), of_two.len()), (1, 1));
        assert!((of_one[0].1 - 1.0).abs() < 1e-6 && of_two[0].1 < 0.5, "{of_one:?} {of_two:?}");
    }

    #[test]
    fn equals_come_by_slot_and_k_is_kept() {
        let index = of_texts(["same words"; 6]);
        let hits = index.search("words", 4, None, Reach::Words);
        assert_eq!(hits.iter().map(|hit| hit.slot).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert!(index.search("words", 0, None, Reach::Words).is_empty());
        assert_eq!(index.search("words", usize::MAX, None, Reach::Words).len(), 6);
    }

    #[test]
    fn synonyms_find_texts_without_a_shared_word_behind_those_with_one() {
        let index = of_texts([
            "list_messages: returns the newest of an account",
            "delete_file: deletes a file for good",
            "inbox_rules: rules for an inbox",
        ]);
        let slots = |query, reach| -> Vec<u32> {
            index.search(query, 9, None, reach).iter().map(|hit| hit.slot).collect()
        };
        assert_eq!(slots("check my inbox", Reach::Words), [2]);
        assert_eq!(slots("check my inbox", Reach::Synonyms), [2, 0]);
        assert!(slots("throw it away", Reach::Words).is_empty());
        assert_eq!(slots("throw it away", Reach::Synonyms), [1]);
        assert!(slots("hum a tune", Reach::Synonyms).is_empty(), "nothing arbitrary");
    }

    #[test]
    fn synonyms_add_nothing_where_a_text_has_every_word() {
        let index = of_texts(["erase remove", "erase", "delete"]);
        let score = |query, reach| index.search(query, 1, None, reach)[0].score;
        for query in ["erase", "erase remove"] {
            let gained = score(query, Reach::Synonyms) - score(query, Reach::Words);
            assert!(gained.abs() < 1e-6, "{query}: {gained}");
        }
    }

    #[test]
    fn synonyms_are_of_english_queries() {
        let index = of_texts(["get_weather: gets the weather", "delete_file: deletes a file"]);
        let german = "wird der Kollege die Kosten trotz allem wissen und was ist mit dem Rest?";
        assert!(index.search(german, 9, None, Reach::Synonyms).is_empty());
    }

    #[test]
    fn hidden_texts_do_not_move_the_scores_of_synonyms() {
        let both = of_texts(["delete_file", "delete_folder", "remove_file erase"]);
        let alone = of_texts(["delete_file"]);
        let allowed: FixedBitSet = (0..1).collect();
        assert_eq!(
            both.search("erase it", 9, Some(&allowed), Reach::Synonyms),
            alone.search("erase it", 9, None, Reach::Synonyms)
        );
    }

    #[test]
    fn only_allowed_slots_are_found() {
        let mut allowed = FixedBitSet::with_capacity(64);
        allowed.insert(0);
        allowed.insert(63);
        assert_eq!(slots("repository", 9, Some(&allowed)), [0]);
        assert!(slots("repository", 9, Some(&FixedBitSet::new())).is_empty());
    }

    #[test]
    fn the_beginning_of_a_long_query_counts() {
        let index = of_texts(["zebra"]);
        let after = |words: usize| format!("{} zebra", "plum ".repeat(words));
        assert_eq!(index.search(&after(QUERY_TERMS - 1), 9, None, Reach::Words).len(), 1);
        assert!(index.search(&after(QUERY_TERMS), 9, None, Reach::Words).is_empty());
    }

    #[test]
    fn scores_do_not_tell_of_texts_that_are_not_allowed() {
        let seen = ["zebra card", "plum"];
        let hidden = ["zebra zebra", "a long zebra text of many words"];
        let alone = of_texts(seen);
        let both = of_texts(seen.into_iter().chain(hidden));
        let allowed: FixedBitSet = (0..2).collect();
        assert_eq!(
            both.search("zebra", 9, Some(&allowed), Reach::Words),
            alone.search("zebra", 9, None, Reach::Words)
        );
    }

    #[test]
    fn nothing_in_common_is_no_hit() {
        assert!(slots("", 9, None).is_empty());
        assert!(slots("the of a", 9, None).is_empty());
        assert!(slots("🦀 !?", 9, None).is_empty());
        let empty = of_texts([]);
        assert!(empty.is_empty() && empty.search("issue", 9, None, Reach::Words).is_empty());
        assert_eq!(of_texts([""]).search("issue", 9, None, Reach::Words), []);
        assert!(index().memory_bytes() > TEXTS.iter().map(|text| text.len()).sum());
    }
}
