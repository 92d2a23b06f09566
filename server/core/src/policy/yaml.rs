//! Messages of the YAML parser, in the words of people who write policies.

use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;

use super::PolicyMistake;
use crate::nearest::nearest;

/// Number of equal letters at the beginning that make names alike, such as `deny` and `denied`.
const ALIKE: usize = 3;

/// Converts the parser's error, with its place.
pub(super) fn mistake(error: &Error) -> PolicyMistake {
    let error = error.without_snippet();
    let place = error.location();
    let (line, column) = place.map_or((0, 0), |place| (place.line(), place.column()));
    PolicyMistake { part: String::new(), line, column, problem: problem(error) }
}

fn problem(error: &Error) -> String {
    match error {
        Error::SerdeUnknownField { field, expected, .. } => unknown("key", field, expected),
        Error::SerdeUnknownVariant { variant, expected, .. } => {
            unknown("precondition", variant, expected)
        }
        Error::SerdeMissingField { field, .. } => format!("lacks the key {field:?}"),
        Error::DuplicateMappingKey { key, .. } => {
            format!("the key {:?} stands twice", key.as_deref().unwrap_or_default())
        }
        Error::Unexpected { expected: "sequence start", .. } => {
            "must be a list, such as [a, b]".to_owned()
        }
        Error::Unexpected { expected: "mapping start", .. } => {
            "must be a mapping, such as {key: value}; policies are YAML or JSON".to_owned()
        }
        Error::ExpectedMappingEndAfterEnumVariantValue { .. } => {
            "a precondition has one key; combine several with all, any and not".to_owned()
        }
        Error::MultipleDocuments { .. } => "must be one document: leave out `---`".to_owned(),
        Error::Budget { breach: BudgetBreach::Documents { .. }, .. } => {
            "must be one document: leave out `---`".to_owned()
        }
        Error::Budget {
            breach: BudgetBreach::Aliases { .. } | BudgetBreach::Anchors { .. },
            ..
        } => "anchors and aliases (& and *) are not taken: write it out".to_owned(),
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => "is nested too deep".to_owned(),
        other => without_place(&other.to_string()),
    }
}

fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let alike =
        |known: &&str| name.chars().zip(known.chars()).take_while(|(a, b)| a == b).count() >= ALIKE;
    let known = || known.iter().copied();
    let near = nearest(name, known()).or_else(|| known().find(alike));
    match near {
        Some(near) => format!("there is no {what} {name:?}; did you mean {near}?"),
        None => format!(
            "there is no {what} {name:?}; there are {}",
            known().collect::<Vec<_>>().join(", ")
        ),
    }
}

/// Returns the text without the place that the parser repeats at its end.
fn without_place(text: &str) -> String {
    text.rfind(" at line ").map_or(text, |end| &text[..end]).to_owned()
}
