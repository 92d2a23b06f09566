//! Prompts, resources and templates that hosts' requests name: kept back like those that lists leave out. What is fetched is
//! audited.

use rmcp::RoleServer;
use rmcp::model::{ErrorCode, ErrorData};
use rmcp::service::RequestContext;
use serde_json::{Map, Value};

use super::Face;
use crate::audit::Outcome;
use crate::caller::Caller;
use crate::gathered::{self, Kind};
use crate::raw::RawObject;
use crate::vetting::Known;

/// Thing of a server that a request names.
struct Named<'a> {
    server: &'a str,
    kind: Kind,
    name: String,
}

/// Reason for which a request has no result.
enum NotFetched {
    KeptBack(KeptBack),
    Failed(ErrorData),
}

/// Thing that is kept back.
struct KeptBack {
    kind: Kind,
    /// Reason, as the list of the thing says it.
    known: Known,
    /// Outcome of the request: [`Outcome::KeptBack`] if its server has answered it.
    outcome: Outcome,
}

impl KeptBack {
    /// Returns the code of the reason in the audit.
    fn verdict(&self) -> &'static str {
        match self.known {
            Known::Withheld(_) => "QUARANTINED",
            Known::Missed => "NOT_LISTED",
            Known::Unseen | Known::Clear => "LIST_UNSEEN",
        }
    }

    fn error(&self) -> ErrorData {
        kept_back(self.kind, &self.known)
    }
}

impl NotFetched {
    fn error(self) -> ErrorData {
        match self {
            Self::KeptBack(kept) => kept.error(),
            Self::Failed(error) => error,
        }
    }
}

impl Face {
    /// Sends a request of the host to a server. What a list left out is neither fetched nor completed, and whatever is fetched is
    /// audited.
    pub(super) async fn fetch(
        &self,
        server: &str,
        method: &str,
        params: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<RawObject, ErrorData> {
        let caller = self.caller(context)?;
        let Some(kind) = Kind::fetched_by(method) else {
            let Some(named) = completed(server, method, &params) else {
                return self.send(server, method, params, context).await;
            };
            if named.kind == Kind::Templates {
                self.refuse_withheld(&caller, server, &named.name).await?;
            }
            let answer = self.send_named(&caller, named, method, params, context).await;
            return answer.map_err(NotFetched::error);
        };
        let mut audited = self.gateway.audit().begin_fetch(&caller, kind, &params);
        audited.is_at(server);
        let name = params.get(kind.key()).and_then(Value::as_str).unwrap_or_default().to_owned();
        let named = Named { server, kind, name };
        match self.send_named(&caller, named, method, params, context).await {
            Ok(result) => {
                audited.ends(Outcome::Done, result.size()).await;
                Ok(result)
            }
            Err(NotFetched::KeptBack(kept)) => {
                audited.is_refused(kept.verdict());
                audited.ends(kept.outcome, 0).await;
                Err(kept.error())
            }
            Err(NotFetched::Failed(error)) => {
                audited.ends(Outcome::Failed, 0).await;
                Err(error)
            }
        }
    }

    /// Sends a request that names something, unless that is kept back. Where its list can't be asked for yet, because the server
    /// starts with this request or the person is to log in first, it is asked for before the answer is handed on.
    async fn send_named(
        &self,
        caller: &Caller,
        named: Named<'_>,
        method: &str,
        params: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<RawObject, NotFetched> {
        let Named { server, kind, name } = named;
        let known = gathered::known(&self.gateway, caller, server, kind, &name).await;
        if let Known::Withheld(_) | Known::Missed = known {
            let outcome = Outcome::Refused;
            return Err(NotFetched::KeptBack(KeptBack { kind, known, outcome }));
        }
        let answer = self.send(server, method, params, context).await;
        let result = answer.map_err(NotFetched::Failed)?;
        if known == Known::Unseen {
            let known = gathered::known(&self.gateway, caller, server, kind, &name).await;
            if known != Known::Clear {
                let outcome = Outcome::KeptBack;
                return Err(NotFetched::KeptBack(KeptBack { kind, known, outcome }));
            }
        }
        Ok(result)
    }

    /// Refuses a request that names a resource, or a template of one, which a list left out.
    pub(super) async fn refuse_withheld(
        &self,
        caller: &Caller,
        server: &str,
        uri: &str,
    ) -> Result<(), ErrorData> {
        for kind in [Kind::Resources, Kind::Templates] {
            let known = gathered::known(&self.gateway, caller, server, kind, uri).await;
            if let Known::Withheld(_) = known {
                return Err(kept_back(kind, &known));
            }
        }
        Ok(())
    }
}

/// Returns what a completion is for; `None` for another request.
fn completed<'a>(server: &'a str, method: &str, params: &Map<String, Value>) -> Option<Named<'a>> {
    if method != "completion/complete" {
        return None;
    }
    let reference = params.get("ref")?;
    let is_prompt = reference["type"] == "ref/prompt";
    // A reference to a resource has the template in `uri`.
    let kind = if is_prompt { Kind::Prompts } else { Kind::Templates };
    let field = if is_prompt { "name" } else { "uri" };
    let name = reference[field].as_str().unwrap_or_default().to_owned();
    Some(Named { server, kind, name })
}

/// Returns the error for what is kept back.
fn kept_back(kind: Kind, known: &Known) -> ErrorData {
    let noun = kind.noun();
    let reason = match known {
        Known::Withheld(reason) => reason.to_string(),
        Known::Missed => format!(
            "its server gave the list of {noun}s in part alone, and it is not in that part: list them again, or ask the operator, whom the gateway's log tells why, and who can trust the server (trust = \"trusted\")"
        ),
        Known::Unseen | Known::Clear => {
            format!(
                "its server's list of {noun}s could not be looked at: try again later, or ask the operator, who can trust the server (trust = \"trusted\")"
            )
        }
    };
    let problem = format!("the gateway keeps this {noun} back: {reason}");
    ErrorData::new(ErrorCode::INVALID_PARAMS, problem, None)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_audit_says_why_something_is_kept_back() {
        let verdict =
            |known| KeptBack { kind: Kind::Prompts, known, outcome: Outcome::Refused }.verdict();
        assert_eq!(verdict(Known::Withheld("bad".into())), "QUARANTINED");
        assert_eq!(verdict(Known::Missed), "NOT_LISTED");
        assert_eq!(verdict(Known::Unseen), "LIST_UNSEEN");
    }

    #[test]
    fn a_completion_names_a_prompt_or_a_template() {
        let of = |method: &str, params: &Value| {
            let params = params.as_object().expect("an object");
            completed("sea", method, params).map(|named| format!("{:?} {}", named.kind, named.name))
        };
        let complete = |params: &Value| of("completion/complete", params);
        let prompt = json!({"ref": {"type": "ref/prompt", "name": "tides"}});
        assert_eq!(complete(&prompt).as_deref(), Some("Prompts tides"));
        let template = json!({"ref": {"type": "ref/resource", "uri": "sea:///{day}"}});
        assert_eq!(complete(&template).as_deref(), Some("Templates sea:///{day}"));
        assert_eq!(complete(&json!({})), None);
        assert_eq!(of("prompts/list", &prompt), None);
    }
}
