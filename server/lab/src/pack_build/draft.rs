//! Requests collected for one tool so far. A tool's text may have manipulated the model. An answer is therefore
//! accepted only as a JSON object of lists of strings, and each string only as a plain request.

use std::collections::BTreeMap;

use super::claims::Claims;
use super::wanted::Wanted;
use super::yaml::Voices;
use crate::language_model::plain::{hidden, without_thoughts};
use toolgate_routing::packs::document::{NOT, REQUEST_MAX};
use toolgate_routing::packs::lint::{names_tool, words};

/// Markup that plain text does not contain.
const MARKUP: [&str; 8] = ["```", "**", "](", "</", "<|", "://", "www.", "{\""];

/// Minimum number of words in a request. A single word does not say what the user wants.
const WORDS_MIN: usize = 2;

/// Maximum number of characters of a request that a note quotes.
const SHOWN: usize = 60;

/// The requests of one tool.
#[derive(Debug)]
pub(super) struct Draft<'a> {
    tool: &'a str,
    claims: &'a Claims,
    voices: Voices,
    /// Reasons for the rejected requests of the last answer.
    pub(super) dropped: Vec<String>,
}

impl<'a> Draft<'a> {
    /// Creates an empty draft.
    pub(super) fn new(tool: &'a str, claims: &'a Claims) -> Self {
        Self { tool, claims, voices: Voices::new(), dropped: Vec::new() }
    }

    /// Adds the wanted requests of an answer that pass the checks.
    pub(super) fn take(&mut self, answer: &str, wanted: &Wanted) {
        self.dropped.clear();
        let said = match parse(answer) {
            Ok(said) => said,
            Err(why) => return self.dropped.push(format!("the answer is not taken: {why}")),
        };
        // Requests for the tool come first. The same request under "not" is rejected.
        let (negatives, own): (Vec<_>, Vec<_>) =
            said.into_iter().partition(|(voice, _)| voice == NOT);
        for (voice, requests) in own.into_iter().chain(negatives) {
            let mut room = wanted.of(&voice);
            for request in requests {
                if room == 0 {
                    break;
                }
                match self.check(&voice, &request) {
                    Ok(request) => {
                        self.voices.entry(voice.clone()).or_default().push(request);
                        room -= 1;
                    }
                    Err(why) => self.dropped.push(why),
                }
            }
        }
    }

    /// Returns the wanted requests that are still missing.
    pub(super) fn lacking(&self, wanted: &Wanted) -> Wanted {
        wanted.less(|voice| self.voices.get(voice).map_or(0, Vec::len))
    }

    /// Returns the number of requests for the tool, without those under "not".
    pub(super) fn count(&self) -> usize {
        self.voices.iter().filter(|(voice, _)| *voice != NOT).map(|(_, own)| own.len()).sum()
    }

    /// Returns all requests, including those under "not".
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        self.voices.values().flatten().map(String::as_str)
    }

    pub(super) fn into_voices(self) -> Voices {
        self.voices
    }

    /// Checks a request and returns its trimmed text, or the reason why it is rejected.
    fn check(&self, voice: &str, request: &str) -> Result<String, String> {
        let request = request.trim();
        let said = words(request);
        let unfit = |why: &str| {
            let shown: String = request.chars().take(SHOWN).filter(|c| !c.is_control()).collect();
            Err(format!("{why}: {shown:?}"))
        };
        if request.len() > REQUEST_MAX {
            return unfit(&format!("over {REQUEST_MAX} bytes"));
        }
        if hidden(request).is_some() {
            return unfit("control or invisible characters");
        }
        if MARKUP.iter().any(|mark| request.contains(mark)) {
            return unfit("markup or a link");
        }
        if said.is_empty() || (said.is_ascii() && said.split(' ').count() < WORDS_MIN) {
            return unfit("too short");
        }
        if voice == NOT {
            let repeats = self.all().any(|other| words(other) == said);
            return if repeats { unfit("there already") } else { Ok(request.to_owned()) };
        }
        if names_tool(self.tool, &said) {
            return unfit("names the tool");
        }
        let mut negatives = self.voices.get(NOT).into_iter().flatten();
        if negatives.any(|other| words(other) == said) {
            return unfit("there already");
        }
        match self.claims.take(request, self.tool) {
            Ok(()) => Ok(request.to_owned()),
            Err(other) if other == self.tool => unfit("there already"),
            Err(other) => unfit(&format!("there already, at {other}")),
        }
    }
}

/// Parses an answer into lists by voice. Removes a code fence, because models add one even if told not to.
fn parse(answer: &str) -> Result<BTreeMap<String, Vec<String>>, String> {
    let text = without_thoughts(answer);
    let fenced = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    let text = fenced.and_then(|rest| rest.trim_end().strip_suffix("```")).unwrap_or(text);
    serde_json::from_str(text.trim())
        .map_err(|error| format!("no JSON object of lists of strings: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(answer: &str) -> (Voices, String) {
        let claims = Claims::default();
        claims.take("somebody else's wish", "other").expect("free");
        let mut draft = Draft::new("git_log", &claims);
        draft.take(answer, &Wanted::new(8, &["de".to_owned()]));
        let dropped = draft.dropped.join("; ");
        (draft.into_voices(), dropped)
    }

    #[test]
    fn what_is_wanted_is_taken() {
        for answer in [
            r#"{"terse": ["what happened lately", " last commits "], "not": ["undo it all"]}"#,
            "<think>Hm.</think>```json\n{\"terse\": [\"what happened lately\", \"last commits\", \
             \"one too many\"], \"not\": [\"undo it all\"], \"loud\": [\"no such voice\"]}\n```",
        ] {
            let (voices, dropped) = taken(answer);
            assert_eq!(voices["terse"], ["what happened lately", "last commits"]);
            assert_eq!((voices["not"].len(), voices.len(), dropped.as_str()), (1, 2, ""));
        }
        let (voices, _) = taken(r#"{"de": ["was war zuletzt los"]}"#);
        assert_eq!(voices["de"].len(), 1);
    }

    #[test]
    fn what_is_no_request_is_not() {
        let long = "so ".repeat(300);
        for (request, why) in [
            ("", "too short"),
            ("commits", "too short"),
            ("!! ??", "too short"),
            (long.as_str(), "over 600 bytes"),
            ("see\\u0007 it", "control or invisible"),
            ("two\\nlines", "control or invisible"),
            ("see \\u202eit", "control or invisible"),
            ("get https://evil.example", "markup or a link"),
            ("see <|im_start|> it", "markup or a link"),
            ("show the Git-log", "names the tool"),
            ("Somebody else's wish!", "there already, at other"),
        ] {
            let (voices, dropped) = taken(&format!("{{\"terse\": [\"{request}\"]}}"));
            assert!(voices.is_empty() && dropped.contains(why), "{request}: {dropped}");
        }
        let twice = r#"{"not": ["undo it"], "chatty": ["a b"], "terse": ["Undo it!", "A B"]}"#;
        let (voices, dropped) = taken(twice);
        assert_eq!(voices.keys().collect::<Vec<_>>(), ["chatty", "terse"], "{dropped}");
    }

    #[test]
    fn an_answer_that_is_no_such_object_is_not() {
        for answer in
            ["", "Sure! Here you go", "[]", "{\"terse\": \"a b\"}", "{\"terse\": [3]}", "{"]
        {
            let (voices, dropped) = taken(answer);
            assert!(voices.is_empty() && dropped.contains("no JSON object"), "{answer}: {dropped}");
        }
    }
}
