//! Intents of the calls. They are read from a file of real ones, or made up of about a dozen words.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use fastrand::Rng;
use serde::Deserialize;

const OPENINGS: [&str; 8] = [
    "can you find out",
    "please check",
    "I need to know",
    "show me",
    "remind me",
    "before lunch, look up",
    "my boss asks",
    "when you have a minute, see",
];
const WISHES: [(&str, &str); 8] = [
    ("who still has to review the change called", ""),
    ("why the", "service keeps restarting"),
    ("what we wrote down about", "last spring"),
    ("how far it is from the office to", ""),
    ("whether anyone replied to", "in the channel"),
    ("which customers asked for", ""),
    ("what the page of", "looks like on a phone"),
    ("how many rows", "has in the shop's database"),
];

/// Seed that shuffles the intents of a file. It is fixed, so every run has the same order.
const ORDER: u64 = 1;

/// Source of intents: a file of real ones, or made-up ones.
#[derive(Clone)]
pub(crate) struct Source {
    /// Intents of the file. Empty if intents are made up.
    people: Arc<[String]>,
    /// Number of different intents that repeat. 0 means all intents of a file, or made-up ones that never repeat.
    repeated: usize,
}

/// One line of a file of labelled intents.
#[derive(Deserialize)]
struct Labelled {
    query: String,
}

impl Source {
    /// Reads the file, which holds one JSON object with a `query` per line.
    ///
    /// # Errors
    /// The file can't be read or holds no intent, or a line is no such object.
    pub(crate) fn read(file: Option<&Path>, repeated: usize) -> Result<Self, String> {
        let Some(file) = file else {
            return Ok(Self { people: Arc::default(), repeated });
        };
        let place = file.display();
        let text = fs::read_to_string(file).map_err(|error| format!("{place}: {error}"))?;
        let mut people: Vec<String> = text
            .lines()
            .enumerate()
            .map(|(index, line)| match serde_json::from_str::<Labelled>(line) {
                Ok(labelled) => Ok(labelled.query),
                Err(error) => Err(format!("{place}, line {}: {error}", index + 1)),
            })
            .collect::<Result<_, _>>()?;
        if people.is_empty() {
            return Err(format!("{place} holds no intent"));
        }
        // Shuffled, so that the first intents are not all for one MCP server.
        Rng::with_seed(ORDER).shuffle(&mut people);
        Ok(Self { people: people.into(), repeated })
    }
}

/// Endless sequence of intents.
pub(crate) struct Intents {
    rng: Rng,
    taken: u64,
    /// Intents to choose from. If empty, each intent is made up.
    repeated: Vec<String>,
}

impl Intents {
    /// Takes intents from `source`, in an order that `rng` decides.
    pub(crate) fn new(mut rng: Rng, source: &Source) -> Self {
        let mut repeated = source.people.to_vec();
        if repeated.is_empty() {
            repeated = (0..source.repeated as u64).map(|number| intent(&mut rng, number)).collect();
        } else if source.repeated > 0 {
            repeated.truncate(source.repeated);
        }
        Self { rng, taken: 0, repeated }
    }

    pub(crate) fn next(&mut self) -> String {
        if let Some(text) = self.rng.choice(&self.repeated) {
            return text.clone();
        }
        self.taken += 1;
        let number = self.taken << 16 | u64::from(self.rng.u16(..));
        intent(&mut self.rng, number)
    }
}

fn intent(rng: &mut Rng, number: u64) -> String {
    let opening = rng.choice(OPENINGS).unwrap_or_default();
    let (before, after) = rng.choice(WISHES).unwrap_or_default();
    format!("{opening} {before} {} {after}", name(number))
}

/// Returns a made-up name that differs for each number. It has no digits, because a name with digits would count as an
/// ID, which is not embedded.
fn name(mut number: u64) -> String {
    const FIRST: &[u8] = b"bdfgklmnprstvz";
    const SECOND: &[u8] = b"aeiou";
    let mut name = String::new();
    loop {
        for letters in [FIRST, SECOND] {
            let count = letters.len() as u64;
            name.push(char::from(letters[(number % count) as usize]));
            number /= count;
        }
        if number == 0 {
            return name;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn made_up(repeated: usize) -> Source {
        Source::read(None, repeated).expect("needs no file")
    }

    fn distinct(source: &Source) -> HashSet<String> {
        let mut intents = Intents::new(Rng::with_seed(1), source);
        (0..5_000).map(|_| intents.next()).collect()
    }

    #[test]
    fn they_repeat_only_where_they_are_to() {
        assert_eq!(distinct(&made_up(0)).len(), 5_000);
        assert_eq!(distinct(&made_up(10)).len(), 10);
    }

    #[test]
    fn intents_of_people_come_from_the_file() {
        let file = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/intents/people.jsonl"));
        let people = Source::read(Some(file), 0).expect("is shipped");
        assert_eq!(distinct(&people).len(), people.people.len());
        let few = Source::read(Some(file), 8).expect("is shipped");
        assert_eq!(distinct(&few).len(), 8);
        assert!(distinct(&few).is_subset(&distinct(&people)));
        let wrong = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        let problem = Source::read(Some(wrong), 0).err().expect("is no such file");
        assert!(problem.contains("line 1"), "{problem}");
    }

    #[test]
    fn names_are_letters_and_differ() {
        let names: HashSet<String> = (0..5_000).chain([1 << 40, u64::MAX]).map(name).collect();
        assert_eq!(names.len(), 5_002);
        assert!(names.iter().all(|name| name.chars().all(|c| c.is_ascii_lowercase())));
    }
}
