//! Tools in the format of a provider's API, as the service renders them.

use serde_json::Value;
use toolgate_proto::v1::RenderedTools;

/// Error for an answer whose rendered tools can't be read.
#[derive(Debug, thiserror::Error)]
pub enum RenderedToolsError {
    /// The request had no `render`.
    #[error("the tools were not rendered: set render in the request")]
    NotRendered,
    /// The service sent no JSON list.
    #[error("the rendered tools are no JSON list")]
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

#[cfg(test)]
mod tests {
    use super::*;

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
