//! Language detection for tools' texts, and stemming. Most catalogs are English. A tool in another language is indexed
//! by the stems of its own language. Intents are too short for detection, so an intent that is not clearly English is
//! looked up by the stems of every language in the catalog.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::BitOr;
use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};
use whatlang::{Detector, Lang};

use super::stop_words;

/// Maximum bytes of a text that are read to detect its language.
const READ_MAX: usize = 300;

/// Minimum share of function words at which a text counts as English without detection.
const ENGLISH_SHARE: f32 = 0.2;

/// Minimum share and number of function words at which a language is accepted that the detector is not certain of.
const OTHER_SHARE: f32 = 0.25;
const OTHER_MIN: usize = 3;

/// Language with stems and stop words, as an index into the known languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Language(u8);

/// Properties of a known language.
struct LanguageProperties {
    lang: Lang,
    /// ISO 639-1 code.
    code: &'static str,
    algorithm: Algorithm,
}

const fn known(lang: Lang, code: &'static str, algorithm: Algorithm) -> LanguageProperties {
    LanguageProperties { lang, code, algorithm }
}

/// Languages that have a Snowball stemmer, English first.
const KNOWN: [LanguageProperties; 18] = [
    known(Lang::Eng, "en", Algorithm::English),
    known(Lang::Ara, "ar", Algorithm::Arabic),
    known(Lang::Dan, "da", Algorithm::Danish),
    known(Lang::Nld, "nl", Algorithm::Dutch),
    known(Lang::Fin, "fi", Algorithm::Finnish),
    known(Lang::Fra, "fr", Algorithm::French),
    known(Lang::Deu, "de", Algorithm::German),
    known(Lang::Ell, "el", Algorithm::Greek),
    known(Lang::Hun, "hu", Algorithm::Hungarian),
    known(Lang::Ita, "it", Algorithm::Italian),
    known(Lang::Nob, "no", Algorithm::Norwegian),
    known(Lang::Por, "pt", Algorithm::Portuguese),
    known(Lang::Ron, "ro", Algorithm::Romanian),
    known(Lang::Rus, "ru", Algorithm::Russian),
    known(Lang::Spa, "es", Algorithm::Spanish),
    known(Lang::Swe, "sv", Algorithm::Swedish),
    known(Lang::Tam, "ta", Algorithm::Tamil),
    known(Lang::Tur, "tr", Algorithm::Turkish),
];

static DETECTOR: LazyLock<Detector> =
    LazyLock::new(|| Detector::with_allowlist(KNOWN.map(|one| one.lang).to_vec()));

static STOP_WORDS: LazyLock<[HashSet<&str>; KNOWN.len()]> = LazyLock::new(|| {
    KNOWN.map(|one| match one.lang {
        Lang::Eng => stop_words::ENGLISH.into(),
        _ => ::stop_words::lookup(one.code).into_iter().flatten().copied().collect(),
    })
});

impl Language {
    /// English, the language of most catalogs.
    pub const ENGLISH: Self = Self(0);

    /// Returns the most likely language of a text, or English if in doubt. Of the 7,997 tools of the labelled and the
    /// shipped catalogs, 18 are detected as another language, 16 of them correctly.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let text = &text[..text.floor_char_boundary(READ_MAX)];
        // Detection takes a hundred times as long as this check.
        if is_english(text, Languages::ALL) {
            return Self::ENGLISH;
        }
        let Some(found) = DETECTOR.detect(text) else { return Self::ENGLISH };
        let place = KNOWN.iter().position(|one| one.lang == found.lang());
        let language = Self(place.and_then(|place| u8::try_from(place).ok()).unwrap_or(0));
        if found.is_reliable() || language.is_likely(text) { language } else { Self::ENGLISH }
    }

    /// Returns true if a text has enough stop words of this language, and more of them than of English.
    fn is_likely(self, text: &str) -> bool {
        let words = lower_words(text);
        let own = self.stops(&words);
        let english = Self::ENGLISH.stops(&words);
        own >= OTHER_MIN && own > english && own as f32 >= OTHER_SHARE * words.len() as f32
    }

    /// Returns the stem of a word, or `None` for a stop word.
    pub(super) fn stem(self, word: &str) -> Option<Cow<'_, str>> {
        if self.stop_words().contains(word) {
            return None;
        }
        // Words with non-ASCII letters are not English.
        if self == Self::ENGLISH && !word.is_ascii() {
            return Some(Cow::Borrowed(word));
        }
        Some(Stemmer::create(KNOWN[usize::from(self.0)].algorithm).stem(word))
    }

    /// Returns the number of words that are stop words of this language.
    fn stops(self, words: &[String]) -> usize {
        words.iter().filter(|word| self.stop_words().contains(word.as_str())).count()
    }

    fn stop_words(self) -> &'static HashSet<&'static str> {
        &STOP_WORDS[usize::from(self.0)]
    }
}

/// Returns true if a text is certainly English: it has enough English stop words, and more of them than of any other of
/// the languages.
fn is_english(text: &str, languages: Languages) -> bool {
    if !text.is_ascii() {
        return false;
    }
    let words = lower_words(text);
    let english = Language::ENGLISH.stops(&words);
    let mut others = languages.iter().filter(|language| *language != Language::ENGLISH);
    english as f32 >= ENGLISH_SHARE * words.len() as f32
        && others.all(|language| language.stops(&words) < english)
}

/// Returns true unless a text has more stop words of another of the languages than of English. Texts too short for any
/// are English. Detection would take a hundred times as long.
pub(super) fn may_be_english(text: &str) -> bool {
    let words = lower_words(&text[..text.floor_char_boundary(READ_MAX)]);
    let english = Language::ENGLISH.stops(&words);
    Languages::ALL.iter().all(|language| language.stops(&words) <= english)
}

fn lower_words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Set of known languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Languages(u32);

impl Languages {
    /// Set of English alone.
    pub const ENGLISH: Self = Self(1);

    const ALL: Self = Self((1 << KNOWN.len()) - 1);

    /// Returns the languages by whose stems a query is looked up. For an English query it is English alone, because any
    /// match in another language would be by chance. For any other query it is all of them.
    pub(super) fn of_query(self, query: &str) -> Self {
        let query = &query[..query.floor_char_boundary(READ_MAX)];
        if self == Self::ENGLISH || is_english(query, self) { Self::ENGLISH } else { self }
    }

    /// Returns each language, English first.
    pub(super) fn iter(self) -> impl Iterator<Item = Language> {
        (0..KNOWN.len() as u8).filter(move |place| self.0 >> place & 1 == 1).map(Language)
    }

    pub(super) fn are_several(self) -> bool {
        self.0.count_ones() > 1
    }
}

impl From<Language> for Languages {
    fn from(language: Language) -> Self {
        Self(1 << language.0)
    }
}

impl BitOr for Languages {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_tools_are_told_apart() {
        for (text, code) in [
            ("List the pull requests of a repository.", "en"),
            ("get_user", "en"),
            ("Your AI powered ad assistant!", "en"),
            ("Get user details", "en"),
            ("", "en"),
            ("Sucht Rechnungen eines Kunden nach Zeitraum, Betrag oder Status.", "de"),
            ("Suit l'avancement d'un dossier déposé auprès des services.", "fr"),
            ("Atualiza a morada e o telefone de um paciente. Nova morada", "pt"),
            ("Продлевает срок возврата взятой книги.", "ru"),
            ("天気予報を取得する", "en"),
        ] {
            let Language(place) = Language::of(text);
            assert_eq!(KNOWN[usize::from(place)].code, code, "{text}");
        }
    }

    #[test]
    fn a_query_that_is_not_english_beyond_doubt_may_be_any() {
        let all = Languages::ALL;
        for (query, is_english) in [
            ("what is the weather in Paris", true),
            ("show me the open issues of this repo", true),
            ("was will er in Hamburg", false),
            ("Rechnung Weber", false),
            ("weather Paris", false),
            ("où est mon dossier", false),
        ] {
            let wanted = if is_english { Languages::ENGLISH } else { all };
            assert_eq!(all.of_query(query), wanted, "{query}");
            assert_eq!(Languages::ENGLISH.of_query(query), Languages::ENGLISH);
        }
    }

    #[test]
    fn short_texts_and_english_ones_may_be_english() {
        for (text, may_be) in [
            ("inbox", true),
            ("what's the weather in Paris?", true),
            ("throw it away", true),
            ("wird der Kollege die Kosten wissen", false),
            ("où est mon dossier", false),
            ("что с моим заказом", false),
        ] {
            assert_eq!(may_be_english(text), may_be, "{text}");
        }
    }

    #[test]
    fn every_language_has_stop_words() {
        assert!(STOP_WORDS.iter().all(|words| words.len() > 40));
        assert_eq!(Languages::ENGLISH, Language::ENGLISH.into());
    }
}
