//! Tools in the format of a provider's API, as the service renders them.

use serde_json::Value;
use toolgate_proto::v1::{PromptStrategy, RenderedTools, StrategyReason};

/// Error for an answer whose rendered tools can't be read.
#[derive(Debug, thiserror::Error)]
pub enum RenderedToolsError {
    /// The request had no `render`.
    #[error("the tools were not rendered: set render in the request")]
    NotRendered,
    /// The request had no `render.strategy`.
    #[error("no strategy was asked for: set render.strategy in the request")]
    NoStrategy,
    /// The service sent no JSON list.
    #[error("the rendered tools or messages are no JSON list")]
    NotJson(#[from] serde_json::Error),
}

/// Returns the definitions of a rendered answer, to send as `tools` of a provider's request. The same tools give the
/// same text, so that prompt caches hold. `rendered` is the field of that name of an answer to `route`, `search_tools`
/// or `batch_get_tool_schemas`; its `losses` say what the provider's format can't. Gate still checks calls against the
/// registered schema.
///
/// # Errors
/// [`RenderedToolsError`] if the request had no `render`.
pub fn rendered_tools(rendered: Option<&RenderedTools>) -> Result<Vec<Value>, RenderedToolsError> {
    let rendered = rendered.ok_or(RenderedToolsError::NotRendered)?;
    Ok(serde_json::from_str(&rendered.tools_json)?)
}

/// Request to the model in one turn.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// Definitions, for `tools`; the agent's own first. For Gemini they are `functionDeclarations`.
    pub tools: Vec<Value>,
    /// Messages of the agent, with what was added in its place. The agent keeps its own without the additions.
    pub messages: Vec<Value>,
    /// Names of betas that the request needs, for the header `anthropic-beta`; empty for none.
    pub betas: Vec<String>,
    /// Record of what was added, and where: `render.ledger` of the next turn. Opaque.
    pub ledger: String,
    /// Strategy that was used.
    pub strategy: PromptStrategy,
    /// Reason for it.
    pub reason: StrategyReason,
    /// The same for a reader.
    pub reason_message: String,
}

/// Returns what to send to the model in one turn. `rendered` is the field of that name of an answer to `route`.
///
/// # Errors
/// [`RenderedToolsError`] if the request had no `render.strategy`.
pub fn model_request(rendered: Option<&RenderedTools>) -> Result<ModelRequest, RenderedToolsError> {
    let asked = rendered.filter(|rendered| !rendered.messages_json.is_empty());
    let rendered = asked.ok_or(RenderedToolsError::NoStrategy)?;
    Ok(ModelRequest {
        tools: serde_json::from_str(&rendered.tools_json)?,
        messages: serde_json::from_str(&rendered.messages_json)?,
        betas: rendered.betas.clone(),
        ledger: rendered.ledger.clone(),
        strategy: rendered.strategy(),
        reason: rendered.reason(),
        reason_message: rendered.reason_message.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strategys_request_is_read() {
        let rendered = RenderedTools {
            tools_json: r#"[{"name":"own"}]"#.to_owned(),
            messages_json: r#"[{"role":"user"},{"role":"system"}]"#.to_owned(),
            betas: vec!["b".to_owned()],
            ledger: "{}".to_owned(),
            strategy: PromptStrategy::Native.into(),
            reason: StrategyReason::Cheapest.into(),
            reason_message: "native, because".to_owned(),
            losses: Vec::new(),
        };
        let request = model_request(Some(&rendered)).expect("a request");
        assert_eq!((request.tools.len(), request.messages.len()), (1, 2));
        assert_eq!(request.betas, ["b"]);
        assert_eq!(request.strategy, PromptStrategy::Native);
        assert_eq!(request.reason, StrategyReason::Cheapest);
        assert_eq!(
            (request.ledger.as_str(), request.reason_message.as_str()),
            ("{}", "native, because")
        );
    }

    #[test]
    fn a_request_without_a_strategy_says_what_to_do() {
        let definitions = RenderedTools { tools_json: "[]".to_owned(), ..Default::default() };
        for rendered in [None, Some(&definitions)] {
            let error = model_request(rendered).expect_err("no strategy");
            assert!(error.to_string().contains("set render.strategy"), "{error}");
        }
        let broken = RenderedTools { messages_json: "{}".to_owned(), ..definitions };
        assert!(matches!(model_request(Some(&broken)), Err(RenderedToolsError::NotJson(_))));
    }

    #[test]
    fn definitions_keep_the_order_of_their_keys() {
        let rendered = RenderedTools {
            tools_json: r#"[{"z":1,"a":2},{"name":"b"}]"#.to_owned(),
            ..Default::default()
        };
        let tools = rendered_tools(Some(&rendered)).expect("a list");
        assert_eq!(
            tools.iter().map(Value::to_string).collect::<Vec<_>>(),
            [r#"{"z":1,"a":2}"#, r#"{"name":"b"}"#]
        );
    }

    #[test]
    fn tools_that_were_not_rendered_say_what_to_do() {
        let error = rendered_tools(None).expect_err("nothing");
        assert_eq!(error.to_string(), "the tools were not rendered: set render in the request");
        for broken in ["", "{}"] {
            let rendered = RenderedTools { tools_json: broken.to_owned(), ..Default::default() };
            let error = rendered_tools(Some(&rendered)).expect_err("no list");
            assert!(matches!(error, RenderedToolsError::NotJson(_)), "{broken:?}");
        }
    }
}
