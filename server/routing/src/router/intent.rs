//! Intent of an agent: the texts of it that are embedded, and the clauses in which it asks for one thing after another.

mod clauses;
mod plain;
mod shape;

/// Text that says what the agent wants this turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Intent {
    /// Text of the intent; not empty.
    pub text: String,
    /// Weight relative to the other intents; above 0.
    pub weight: f32,
    /// Clauses that each ask for one thing; empty if the intent asks for one thing.
    clauses: Vec<String>,
    /// True if the text holds what was said before the message.
    is_context: bool,
    /// True if the text is embedded as it stands, with quotations, addresses and ids.
    is_verbatim: bool,
    /// True if the text asks for nothing.
    is_courtesy: bool,
}

impl Intent {
    /// Creates an intent of this weight and divides it into clauses.
    #[must_use]
    pub fn new(text: String, weight: f32) -> Self {
        let clauses = clauses::of(&text).into_iter().map(str::to_owned).collect();
        Self { clauses, ..Self::undivided(text, weight) }
    }

    /// Creates an intent of this weight that is not divided into clauses.
    #[must_use]
    pub fn undivided(text: String, weight: f32) -> Self {
        Self {
            text,
            weight,
            clauses: Vec::new(),
            is_context: false,
            is_verbatim: false,
            is_courtesy: false,
        }
    }

    /// Creates an intent of this weight that is not divided into clauses and is embedded as it stands.
    #[must_use]
    pub fn verbatim(text: String, weight: f32) -> Self {
        Self { is_verbatim: true, ..Self::undivided(text, weight) }
    }

    /// Creates an intent of what was said before the message, which is not divided into clauses.
    #[must_use]
    pub fn context(text: String, weight: f32) -> Self {
        Self { is_context: true, ..Self::undivided(text, weight) }
    }

    /// Returns this intent as one that asks for nothing ([`crate::router::courtesy`]).
    #[must_use]
    pub fn as_courtesy(self) -> Self {
        Self { is_courtesy: true, ..self }
    }

    /// Returns true if the text asks for nothing, so that no tool fits it.
    #[must_use]
    pub fn is_courtesy(&self) -> bool {
        self.is_courtesy
    }

    /// Returns true if the text holds what was said before the message. Such a text is not logged.
    #[must_use]
    pub fn is_context(&self) -> bool {
        self.is_context
    }

    /// Returns the clauses in their order; empty if the intent asks for one thing.
    #[must_use]
    pub fn clauses(&self) -> &[String] {
        &self.clauses
    }

    /// Returns the texts to embed: the whole, then its clauses.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        let texts = std::iter::once(&self.text).chain(&self.clauses);
        texts.map(|text| if self.is_verbatim { text.clone() } else { embedded(text) })
    }

    /// Returns the number of texts to embed.
    #[must_use]
    pub fn text_count(&self) -> usize {
        1 + self.clauses.len()
    }
}

/// Returns a text as it is embedded: without what only an argument would hold.
#[must_use]
pub fn embedded(text: &str) -> String {
    plain::of(text).into_owned()
}

/// Returns the texts to embed for these intents, one intent after another.
#[must_use]
pub fn texts(intents: &[Intent]) -> Vec<String> {
    intents.iter().flat_map(Intent::texts).collect()
}

/// Returns the embedding of the heaviest intent as a whole, the first among equals. `None` if nothing was embedded.
#[must_use]
pub fn main<'v>(intents: &[Intent], vectors: &'v [Vec<f32>]) -> Option<&'v Vec<f32>> {
    let mut at = 0;
    let mut best: Option<(f32, usize)> = None;
    for intent in intents {
        if best.is_none_or(|(weight, _)| intent.weight > weight) {
            best = Some((intent.weight, at));
        }
        at += intent.text_count();
    }
    vectors.get(best?.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_is_embedded_first_and_then_its_clauses() {
        let text = "open https://a.example/x in the browser, then send a note to \"#general\"";
        let intent = Intent::new(text.to_owned(), 1.0);
        let wanted = [
            "open web page in the browser, then send a note to",
            "open web page in the browser",
            "send a note to",
        ];
        assert_eq!(intent.texts().collect::<Vec<_>>(), wanted);
        assert_eq!((intent.text_count(), intent.clauses().len()), (3, 2));
        let whole = Intent::undivided(text.to_owned(), 1.0);
        assert_eq!(texts(&[whole.clone(), intent]).len(), whole.text_count() + 3);
    }

    #[test]
    fn the_heaviest_intent_is_what_is_wanted_most() {
        let two = Intent::new("list the tags, then delete the old branch".to_owned(), 1.0);
        assert_eq!(two.text_count(), 3);
        let one = |weight| Intent::undivided("push".to_owned(), weight);
        let vectors: Vec<Vec<f32>> = (0..4_u8).map(|place| vec![f32::from(place)]).collect();
        let place = |intents: &[Intent]| main(intents, &vectors).map(|vector| vector[0]);
        assert_eq!(place(&[two.clone(), one(2.0)]), Some(3.0));
        assert_eq!(place(&[two.clone(), one(1.0)]), Some(0.0), "the first of equals");
        assert_eq!(place(&[one(1.0), two]), Some(0.0));
        assert_eq!(main(&[one(1.0)], &[]), None, "nothing was embedded");
    }
}
