//! Number of requests that a tool needs, by voice.

use std::collections::BTreeMap;

use toolgate_routing::packs::document::NOT;

/// Voices of English requests, in the order in which requests are assigned to them. The mix is about that of the
/// shipped packs.
const DEALT: [&str; 8] =
    ["terse", "chatty", "indirect", "long", "terse", "chatty", "indirect", "multi_step"];

/// Number of requests that are not for the tool.
const NOT_WANTED: usize = 2;

/// Number of requests by voice. Voices with none are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted(BTreeMap<String, usize>);

impl Wanted {
    /// Asks for `english` requests in English, and for one in each of these languages.
    #[must_use]
    pub fn new(english: usize, languages: &[String]) -> Self {
        let mut wanted = BTreeMap::from([(NOT.to_owned(), NOT_WANTED)]);
        for voice in DEALT.iter().cycle().take(english) {
            *wanted.entry((*voice).to_owned()).or_default() += 1;
        }
        wanted.extend(languages.iter().map(|code| (code.clone(), 1)));
        Self(wanted)
    }

    /// Returns the requests that are still missing if `there` gives the number that a voice already has.
    #[must_use]
    pub fn less(&self, there: impl Fn(&str) -> usize) -> Self {
        let left = self.0.iter().map(|(voice, count)| {
            let left = count.saturating_sub(there(voice));
            (voice.clone(), left)
        });
        Self(left.filter(|(_, count)| *count > 0).collect())
    }

    /// Returns the number of requests for a voice.
    #[must_use]
    pub fn of(&self, voice: &str) -> usize {
        self.0.get(voice).copied().unwrap_or(0)
    }

    /// Returns true if no request is wanted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of requests for each voice.
    #[must_use]
    pub fn by_voice(&self) -> &BTreeMap<String, usize> {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_dealt_out_to_the_voices() {
        let wanted = Wanted::new(10, &["de".to_owned(), "no".to_owned()]);
        let counts: Vec<_> =
            wanted.0.iter().map(|(voice, count)| (voice.as_str(), *count)).collect();
        let expected = [
            ("chatty", 3),
            ("de", 1),
            ("indirect", 2),
            ("long", 1),
            ("multi_step", 1),
            ("no", 1),
            ("not", 2),
            ("terse", 3),
        ];
        assert_eq!(counts, expected);
        let left = wanted.less(|voice| if voice == "terse" { 1 } else { 3 });
        assert_eq!(left.0, BTreeMap::from([("terse".to_owned(), 2)]));
        assert!(wanted.less(|_| 9).is_empty());
    }
}
