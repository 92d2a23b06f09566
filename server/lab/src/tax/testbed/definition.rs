//! MCP definition of a testbed tool with exactly the required number of prompt tokens.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::domains::Domain;
use super::verbs::Verb;
use crate::random::Random;
use toolgate_core::error::Error;
use toolgate_core::tokens;
use toolgate_routing::catalog::definition::Definition;

/// Optional parameters as name, JSON type and description. As many are added as fit.
const OPTIONAL: [(&str, &str, &str); 17] = [
    ("fields", "array", "Names of the fields to return; all of them when this is left out."),
    ("limit", "integer", "The most results on one page, from 1 to 100; 20 unless it is given."),
    ("cursor", "string", "Where the page before ended, as its answer said; empty for the first."),
    ("sort_by", "string", "The field to sort by; descending when a minus stands before it."),
    ("created_after", "string", "Only what was created after this time, in ISO 8601."),
    ("updated_after", "string", "Only what was changed after this time, in ISO 8601."),
    ("labels", "array", "Labels that all have to be there, spelt as the service has them."),
    ("assignee", "string", "Only what belongs to this person, by login or email address."),
    (
        "include_archived",
        "boolean",
        "Whether archived entries take part as well; false by default.",
    ),
    (
        "timeout_seconds",
        "integer",
        "How long to wait for the service before giving up, at most 60.",
    ),
    ("idempotency_key", "string", "Any text of yours: a repeated call with it is done only once."),
    ("dry_run", "boolean", "Only say what would be done, and do nothing."),
    ("locale", "string", "Language of texts in the answer, such as en-GB or de."),
    ("time_zone", "string", "Time zone of times in the answer, such as Europe/Berlin."),
    ("expand", "array", "Related entries to return whole instead of as links, two levels at most."),
    ("reason", "string", "Why this is done, for the audit log of the service."),
    ("notify", "boolean", "Whether people who follow the entry hear of this; true by default."),
];

/// Tokens of each optional parameter, counted alone: slightly more than it takes among others.
static COSTS: LazyLock<[u32; 17]> = LazyLock::new(|| {
    OPTIONAL.map(|(field, kind, says)| {
        tokens::count(&format!(",\"{field}\":{}", property(kind, says))) + SEAM
    })
});

/// Tokens by which separate counting may be too low at a boundary.
const SEAM: u32 = 1;

/// Filler words of one token each, so that each adds exactly one.
const NOTE: [&str; 40] = [
    "calls", "count", "against", "the", "rate", "limit", "of", "the", "service", "and", "may",
    "be", "slow", "when", "many", "people", "use", "it", "at", "the", "same", "time", "so", "that",
    "an", "answer", "can", "take", "some", "seconds", "while", "errors", "say", "what", "was",
    "wrong", "with", "a", "call", "and",
];

/// Returns the definition of one tool. Its prompt form under `model_name` has exactly `domain.tokens` tokens.
///
/// # Errors
/// Returns [`Error::Internal`] if the tool needs more tokens than that.
pub(super) fn write(
    domain: &Domain,
    verb: &Verb,
    object: &str,
    name: &str,
    model_name: &str,
    random: &mut Random,
) -> Result<String, Error> {
    let draft = Draft { name, description: super::fill(verb.says, domain, object), model_name };
    let mut properties: Map<String, Value> = Map::new();
    for (field, kind, says) in verb.fields {
        let says = super::fill(says, domain, object);
        properties.insert((*field).to_owned(), property(kind, &says));
    }
    let required: Vec<_> = verb.fields.iter().map(|(field, ..)| *field).collect();
    let taken = draft.tokens(&draft.text(&properties, &required, 1))?;
    let mut room = domain.tokens.saturating_sub(taken);
    let mut optional: Vec<_> = OPTIONAL.iter().zip(*COSTS).collect();
    random.shuffle(&mut optional);
    for ((field, kind, says), cost) in optional {
        if cost <= room {
            properties.insert((*field).to_owned(), property(kind, says));
            room -= cost;
        }
    }
    let shortest = draft.tokens(&draft.text(&properties, &required, 1))?;
    let Some(missing) = domain.tokens.checked_sub(shortest) else {
        let problem = format!("{model_name} needs {shortest} tokens, more than {}", domain.tokens);
        return Err(Error::internal(problem));
    };
    Ok(draft.text(&properties, &required, missing as usize + 1).to_string())
}

/// Definition before its length is set.
struct Draft<'a> {
    name: &'a str,
    description: String,
    model_name: &'a str,
}

impl Draft<'_> {
    /// Returns the definition with a note of this many words.
    fn text(&self, properties: &Map<String, Value>, required: &[&str], words: usize) -> Value {
        let note: Vec<_> = NOTE.iter().cycle().take(words).copied().collect();
        json!({
            "name": self.name,
            "description": self.description,
            "inputSchema": {
                "type": "object",
                "description": format!("Note: {}", note.join(" ")),
                "properties": properties,
                "required": required,
            },
        })
    }

    fn tokens(&self, text: &Value) -> Result<u32, Error> {
        let definition = Definition::parse(&text.to_string())
            .map_err(|wrong| Error::internal(format!("{}: {}", wrong.part, wrong.problem)))?;
        Ok(tokens::count(&definition.prompt_form(self.model_name)))
    }
}

fn property(kind: &str, says: &str) -> Value {
    match kind {
        "array" => json!({"type": kind, "items": {}, "description": says}),
        _ => json!({"type": kind, "description": says}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_of_the_note_is_one_token() {
        for word in NOTE {
            assert_eq!(tokens::count(&format!(" {word}")), 1, "{word}");
        }
    }
}
