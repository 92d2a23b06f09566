//! Intents of about a dozen words.

use fastrand::Rng;

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

/// Intents, one after another.
pub(crate) struct Intents {
    rng: Rng,
    taken: u64,
    repeated: Vec<String>,
}

impl Intents {
    /// Ones that never come twice, so that no cache answers; or `repeated` that do.
    pub(crate) fn new(mut rng: Rng, repeated: usize) -> Self {
        let repeated = (0..repeated as u64).map(|number| intent(&mut rng, number)).collect();
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

/// A name that nobody has, another one for each number. With digits it would be taken for an id, which is left out
/// of what is embedded.
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

    #[test]
    fn they_repeat_only_where_they_are_to() {
        let mut fresh = Intents::new(Rng::with_seed(1), 0);
        assert_eq!((0..5_000).map(|_| fresh.next()).collect::<HashSet<_>>().len(), 5_000);
        let mut few = Intents::new(Rng::with_seed(1), 10);
        assert_eq!((0..5_000).map(|_| few.next()).collect::<HashSet<_>>().len(), 10);
    }

    #[test]
    fn names_are_letters_and_differ() {
        let names: HashSet<String> = (0..5_000).chain([1 << 40, u64::MAX]).map(name).collect();
        assert_eq!(names.len(), 5_002);
        assert!(names.iter().all(|name| name.chars().all(|c| c.is_ascii_lowercase())));
    }
}
