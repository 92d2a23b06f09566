//! Requests with the tools of a chat that are no chats themselves: they count its tokens, keep a part of it, make it shorter, or
//! have many of them answered later. Their quarantined tools are taken out as those of chats are.

use std::ops::Range;

use toolgate_llm::strategy::Api;

use crate::chat::Unsendable;
use crate::definitions::place;
use crate::provider::Provider;
use crate::raw;
use crate::turn::Thinned;

/// Names of a field, of which a request has one.
type Names = &'static [&'static str];

/// Request that holds chats of an API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Enclosing {
    pub(crate) api: Api,
    chats: Chats,
}

/// Places of the chats in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chats {
    /// The request has the fields of one.
    Itself,
    /// It has those of one itself, or in a field.
    Field(Names),
    /// It has a list, behind these fields, each of whose items has a chat in a field.
    Listed { list: &'static [Names], chat: Names },
}

impl Enclosing {
    /// Returns a chat of an API, which holds itself.
    pub(crate) fn chat(api: Api) -> Self {
        Self { api, chats: Chats::Itself }
    }

    /// Finds what a request to the provider's path, which is no chat, holds. `None` if it holds no chats.
    pub(crate) fn find(provider: Provider, path: &str) -> Option<Self> {
        let ends = |ends: &[&str]| ends.iter().any(|end| path.ends_with(end));
        Some(match provider {
            Provider::Anthropic if path == "/v1/messages/count_tokens" => {
                Self::chat(Api::Anthropic)
            }
            Provider::Anthropic if path == "/v1/messages/batches" => {
                let chats = Chats::Listed { list: &[&["requests"]], chat: &["params"] };
                Self { api: Api::Anthropic, chats }
            }
            Provider::OpenAi if ends(&["/responses/compact", "/responses/input_tokens"]) => {
                Self::chat(Api::OpenAiResponses)
            }
            // Its answer without `alt=sse`, a list that grows, is not read.
            Provider::Gemini if ends(&[":streamGenerateContent", "/cachedContents"]) => {
                Self::chat(Api::Gemini)
            }
            Provider::Gemini if ends(&[":countTokens"]) => {
                let field = &["generateContentRequest", "generate_content_request"];
                Self { api: Api::Gemini, chats: Chats::Field(field) }
            }
            Provider::Gemini if ends(&[":batchGenerateContent"]) => {
                let list: &[Names] =
                    &[&["batch"], &["inputConfig", "input_config"], &["requests"], &["requests"]];
                Self { api: Api::Gemini, chats: Chats::Listed { list, chat: &["request"] } }
            }
            Provider::Anthropic | Provider::OpenAi | Provider::Gemini => return None,
        })
    }

    /// Returns true if the request may go on from an answer that the provider keeps, and hold thoughts.
    pub(crate) fn goes_on(self) -> bool {
        self.api == Api::OpenAiResponses
    }

    /// Returns the text of a request with its chats as `thin` gives them. `None` if each stays as it is, or if the request can't be
    /// read.
    ///
    /// # Errors
    /// The first one of `thin`.
    pub(crate) fn thinned(
        self,
        text: &str,
        mut thin: impl FnMut(&str) -> Result<Option<Thinned>, Unsendable>,
    ) -> Result<Option<Thinned>, Unsendable> {
        let mut edits: Vec<(Range<usize>, String)> = Vec::new();
        let mut withheld = 0;
        for chat in self.chats.of(text) {
            if let Some(thinned) = thin(chat)? {
                edits.push((place(text, chat), thinned.text));
                withheld = withheld.max(thinned.withheld);
            }
        }
        if edits.is_empty() {
            return Ok(None);
        }
        Ok(Some(Thinned { text: raw::edited(text, &edits), withheld }))
    }
}

impl Chats {
    /// Returns the texts of the chats in a request, in their order; none if it is not as expected.
    fn of(self, text: &str) -> Vec<&str> {
        match self {
            Self::Itself => vec![text],
            Self::Field(names) => vec![field(text, names).unwrap_or(text)],
            Self::Listed { list, chat } => {
                let list = list.iter().try_fold(text, |text, names| field(text, names));
                let items = list.and_then(raw::items).unwrap_or_default();
                items.into_iter().filter_map(|item| field(item, chat)).collect()
            }
        }
    }
}

/// Returns the text of the first of these fields that an object has.
fn field(text: &str, names: Names) -> Option<&str> {
    names.iter().find_map(|name| raw::field(text, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(provider: Provider, path: &str) -> Enclosing {
        Enclosing::find(provider, path).expect(path)
    }

    /// Returns a request each of whose chats, which are texts here, has a tool less if it is "2" or longer.
    fn thinned(enclosing: Enclosing, text: &str) -> Option<(String, usize)> {
        let thin = |chat: &str| {
            let withheld = chat.len() - 1;
            let text = "-".repeat(withheld);
            Ok((withheld > 0).then_some(Thinned { text, withheld }))
        };
        let thinned = enclosing.thinned(text, thin).expect("it can be sent");
        thinned.map(|thinned| (thinned.text, thinned.withheld))
    }

    #[test]
    fn each_chat_of_a_batch_is_thinned_and_all_else_keeps_its_bytes() {
        let batches = find(Provider::Anthropic, "/v1/messages/batches");
        let text = r#"{"x":1.0,"requests":[ {"custom_id":"a","params":22},{"params":1 },7,{"params": 333}]}"#;
        let expected = r#"{"x":1.0,"requests":[ {"custom_id":"a","params":-},{"params":1 },7,{"params": --}]}"#;
        assert_eq!(thinned(batches, text), Some((expected.to_owned(), 2)));
        for text in [r#"{"requests":[{"params":1}]}"#, "{}", "[]", r#"{"requests":{}}"#, "x"] {
            assert_eq!(thinned(batches, text), None, "{text}");
        }
        let batches = find(Provider::Gemini, "/v1beta/models/gemini-3-pro:batchGenerateContent");
        for config in ["input_config", "inputConfig"] {
            let of = |chat: &str| {
                format!(
                    r#"{{"batch":{{"{config}":{{"requests":{{"requests":[{{"request":{chat}}}]}}}}}}}}"#
                )
            };
            assert_eq!(thinned(batches, &of("22")), Some((of("-"), 1)));
        }
    }

    #[test]
    fn tokens_of_gemini_are_counted_of_a_request_within_or_of_contents() {
        let counting = find(Provider::Gemini, "/v1beta/models/gemini-3-pro:countTokens");
        let within = r#"{"generateContentRequest":22}"#;
        let expected = r#"{"generateContentRequest":-}"#;
        assert_eq!(thinned(counting, within), Some((expected.to_owned(), 1)));
        assert_eq!(thinned(counting, "{}"), Some(("-".to_owned(), 1)));
    }

    #[test]
    fn an_error_in_one_chat_is_that_of_the_request() {
        let batches = find(Provider::Anthropic, "/v1/messages/batches");
        let failed = batches.thinned(r#"{"requests":[{"params":1}]}"#, |_| Err(Unsendable::Failed));
        assert!(matches!(failed, Err(Unsendable::Failed)));
    }

    #[test]
    fn requests_without_chats_hold_none() {
        for (provider, path) in [
            (Provider::Anthropic, "/v1/messages/batches/b1/cancel"),
            (Provider::Anthropic, "/v1/models"),
            (Provider::OpenAi, "/v1/batches"),
            (Provider::OpenAi, "/v1/files"),
            (Provider::OpenAi, "/v1/responses/r1/cancel"),
            (Provider::Gemini, "/v1beta/models/x:embedContent"),
        ] {
            assert_eq!(Enclosing::find(provider, path), None, "{path}");
        }
        assert!(find(Provider::OpenAi, "/v1/responses/input_tokens").goes_on());
        assert!(!find(Provider::Anthropic, "/v1/messages/count_tokens").goes_on());
    }
}
