//! What a host is told whose principal is to connect to a server first: a link in the result, or in a question of the kind `url`
//! where it declares these.

use std::time::Duration;

use rmcp::model::ClientCapabilities;
use serde_json::{Map, Value, json};
use toolgate_upstream::RequestError;

use super::Person;
use crate::asking;
use crate::host::{self, Failure, Host};
use crate::raw::RawObject;

/// Name of the question among those of a call.
const QUESTION: &str = "toolgate_connect";

/// Methods whose results may ask.
const ASKING_METHODS: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// Time for a person to connect, once it has said that it will.
const PATIENCE: Duration = Duration::from_secs(120);

/// Time between two looks for a credential that another process may have stored.
const LOOK: Duration = Duration::from_secs(1);

/// Word of the host on the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    /// It was not asked.
    None,
    Accepted,
    Refused,
}

impl Host<'_> {
    /// Sends a request to a server whose principals log in by themselves.
    pub(crate) async fn request_with_login(
        &self,
        server: &str,
        method: &str,
        mut params: Map<String, Value>,
    ) -> Result<RawObject, Failure> {
        let word = take_word(&mut params);
        if word == Word::Accepted {
            self.wait_for_login(server).await;
        }
        let sent = self.request_at_once(server, method, params.clone()).await;
        let Err(Failure::Server(RequestError::Credential { problem, takes_login: true })) = sent
        else {
            return sent;
        };
        let Some(link) = self.connect_link(server) else {
            return Err(Failure::NotConnected(without_page(server, &problem)));
        };
        let told = Failure::NotConnected(with_page(server, &problem, &link));
        let may_ask = word == Word::None
            && ASKING_METHODS.contains(&method)
            && takes_urls(&self.capabilities());
        if !may_ask {
            return Err(told);
        }
        let message = format!("{server}: {problem}. Connect to it, so that calls are yours there.");
        if host::is_modern(self.context) {
            let mut asks = RawObject::default();
            asks.set("resultType", &Value::from("input_required"));
            asks.set("inputRequests", &json!({QUESTION: question(&message, &link, None)}));
            return Ok(asks);
        }
        let id = super::browsers::random().unwrap_or_default();
        let asked = question(&message, &link, Some(&id));
        let answer = asking::answer(self, asked).await;
        if !answer.is_ok_and(|answer| answer["action"] == "accept") {
            return Err(told);
        }
        self.wait_for_login(server).await;
        match self.request_at_once(server, method, params).await {
            Err(Failure::Server(RequestError::Credential { takes_login: true, .. })) => Err(told),
            sent => sent,
        }
    }

    fn connect_link(&self, server: &str) -> Option<String> {
        // Without a name there are no pages that would know it again.
        self.caller.requester()?;
        let pages = self.gateway.connecting()?;
        let client = self.context.client_info();
        let name = client.map_or_else(String::new, |client| client.name.clone());
        Some(pages.link(self.gateway, self.caller, server, &name))
    }

    /// Waits until the principal has a credential, or for as long as a person may need.
    async fn wait_for_login(&self, server: &str) {
        let places = self.gateway.connecting().zip(self.gateway.credentials());
        let Some(((pages, store), endpoint)) = places.zip(self.gateway.fleet().endpoint(server))
        else {
            return;
        };
        let owner = Person::of(self.caller).owner(server);
        let mut changes = pages.changes.subscribe();
        let connected = async {
            while !store.has(&owner, &endpoint.url).unwrap_or(false) {
                // Either is a reason to look again.
                let _looked = tokio::time::timeout(LOOK, changes.changed()).await;
            }
        };
        // Without one, the request says what is missing.
        let _late = tokio::time::timeout(PATIENCE, connected).await;
    }
}

/// Takes the host's answer to the question out of the parameters of its next try.
fn take_word(params: &mut Map<String, Value>) -> Word {
    let answers = params.get_mut("inputResponses").and_then(Value::as_object_mut);
    let Some(answers) = answers else { return Word::None };
    let word = match answers.remove(QUESTION) {
        None => Word::None,
        Some(answer) if answer["action"] == "accept" => Word::Accepted,
        Some(_) => Word::Refused,
    };
    if answers.is_empty() && word != Word::None {
        params.remove("inputResponses");
    }
    word
}

/// Returns whether a host takes questions that are answered at a URL.
fn takes_urls(capabilities: &ClientCapabilities) -> bool {
    capabilities.elicitation.as_ref().is_some_and(|elicitation| elicitation.url.is_some())
}

/// Returns the question. Its id is of 2025-11-25 alone.
fn question(message: &str, link: &str, id: Option<&str>) -> Value {
    let mut params = json!({"mode": "url", "message": message, "url": link});
    if let Some(id) = id {
        params["elicitationId"] = Value::from(id);
    }
    json!({"method": "elicitation/create", "params": params})
}

fn with_page(server: &str, problem: &str, link: &str) -> String {
    format!(
        "{server} can't be called for you yet: {problem}. The call did not run. Ask the person to open this link in a browser and to connect, then call again:\n{link}"
    )
}

fn without_page(server: &str, problem: &str) -> String {
    format!(
        "{server} can't be called yet: {problem}. The call did not run. Log in with: toolgate gateway login {server}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_the_gateways_and_goes_no_further() {
        let params = |answers: Value| -> Map<String, Value> {
            [("name".to_owned(), json!("a")), ("inputResponses".to_owned(), answers)]
                .into_iter()
                .collect()
        };
        let mut accepted = params(json!({QUESTION: {"action": "accept"}}));
        assert_eq!(take_word(&mut accepted), Word::Accepted);
        assert!(!accepted.contains_key("inputResponses"));
        let mut refused =
            params(json!({QUESTION: {"action": "decline"}, "q": {"action": "accept"}}));
        assert_eq!(take_word(&mut refused), Word::Refused);
        assert_eq!(refused["inputResponses"], json!({"q": {"action": "accept"}}));
        let mut others = params(json!({}));
        assert_eq!(take_word(&mut others), Word::None);
        assert!(others.contains_key("inputResponses"));
    }

    #[test]
    fn the_question_has_an_id_where_the_revision_has_one() {
        let older = question("m", "https://gw.example/x", Some("1"));
        assert_eq!(older["params"]["elicitationId"], "1");
        let newer = question("m", "https://gw.example/x", None);
        assert_eq!(newer["params"]["mode"], "url");
        assert!(newer["params"].get("elicitationId").is_none());
    }
}
