//! The search as a tool for a model: its definition, and the answers to its calls.

use std::sync::LazyLock;

use serde_json::{Value, json};
use toolgate_proto::v1;

use crate::answers::tool_result;
use crate::client::Client;
use crate::error::{CallError, Error, FieldViolation};

use toolgate_llm as definition;
/// Name of [`SEARCH_TOOL`]. Pass calls with this name to [`Client::answer_search`].
pub use toolgate_llm::SEARCH_TOOL_NAME;

const QUERY_LIMIT: &str = "limits.max_intent_size";

/// The search as a tool to define for the model, next to the active set in [`layout`](crate::layout). A request with
/// `render` and its `search_tool` has the service define it. Put it first and keep it there, so that the cached prefix remains valid. Pass its calls
/// to [`Client::answer_search`]; [`Client::gate`] does not know it.
pub static SEARCH_TOOL: LazyLock<v1::ActiveTool> = LazyLock::new(|| v1::ActiveTool {
    name: definition::SEARCH_TOOL.name.into(),
    model_name: definition::SEARCH_TOOL.name.into(),
    description: definition::SEARCH_TOOL.description.into(),
    input_schema_json: definition::SEARCH_TOOL.input_schema_json.into(),
    annotations_json: definition::SEARCH_TOOL.annotations_json.into(),
    signature: definition::SEARCH_TOOL.signature.into(),
    schema_tokens: 145,
    signature_lossy: true,
    ..Default::default()
});

/// Answer to a model's call of [`SEARCH_TOOL`].
#[derive(Debug, Clone, PartialEq)]
pub struct SearchAnswer {
    /// Content of the tool result, a JSON object.
    pub text: String,
    /// True if the call had a mistake, which the text describes.
    pub failed: bool,
    /// Active-set handle for the next calls. The found tools may be called with it, and the next `route` keeps them.
    pub handle: String,
    /// Result of the search; `None` if the call had a mistake.
    pub found: Option<v1::SearchToolsResponse>,
}

impl SearchAnswer {
    /// Builds the answer from the result of a search. [`history::scan`](crate::history::scan) can read it later.
    #[must_use]
    pub fn from_found(found: v1::SearchToolsResponse) -> Self {
        let text = tool_result(&found).to_string();
        Self { text, failed: false, handle: found.active_set_handle.clone(), found: Some(found) }
    }

    /// Returns the found tools.
    #[must_use]
    pub fn tools(&self) -> &[v1::ActiveTool] {
        self.found.as_ref().map_or(&[], |found| &found.tools)
    }

    fn mistaken(message: &str, handle: String) -> Self {
        let text = json!({ "error": "arguments_invalid", "message": message }).to_string();
        Self { text, failed: true, handle, found: None }
    }
}

impl Client {
    /// Runs a model's call of [`SEARCH_TOOL`]. A mistake of the model gives an answer too, not an error.
    ///
    /// `arguments` are those of the call, as a JSON object or a text that holds one. `request` holds everything else:
    /// the handle of this turn, which the tools are added to, and the agent's state. Its query and count are replaced
    /// with the model's. Its `detail` sets the details of each tool in the text. The default is the name only, because
    /// the next `route` with the answer's handle returns the definition.
    ///
    /// ```no_run
    /// use serde_json::Value;
    /// use toolgate_client::{Client, SEARCH_TOOL_NAME, rendered_tools, v1};
    ///
    /// # async fn example(
    /// #     client: Client, mut turn: v1::RouteResponse, state: v1::AgentState, call: (&str, Value),
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// // What the model is shown, the search first: `render` of the request had `search_tool: true`.
    /// let shown = rendered_tools(turn.rendered.as_ref())?;
    ///
    /// // What it called.
    /// let (name, arguments) = call;
    /// if name == SEARCH_TOOL_NAME {
    ///     let request = v1::SearchToolsRequest {
    ///         active_set_handle: turn.active_set_handle.clone(),
    ///         state: Some(state),
    ///         ..Default::default()
    ///     };
    ///     let answer = client.answer_search(&arguments, request).await?;
    ///     turn.active_set_handle = answer.handle;
    ///     println!("for the model: {}", answer.text);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The call failed for another reason than the model's arguments; see [`Error`].
    pub async fn answer_search(
        &self,
        arguments: &Value,
        mut request: v1::SearchToolsRequest,
    ) -> Result<SearchAnswer, Error> {
        let handle = request.active_set_handle.clone();
        match read(arguments) {
            Ok(asked) => (request.query, request.max_results) = asked,
            Err(mistake) => return Ok(SearchAnswer::mistaken(mistake, handle)),
        }
        if request.detail == i32::from(v1::Detail::Unspecified) {
            request.detail = v1::Detail::References.into();
        }
        match self.search_tools(request).await {
            Ok(found) => Ok(SearchAnswer::from_found(found)),
            Err(Error::Call(call)) if is_the_models(&call) => {
                Ok(SearchAnswer::mistaken(&call.message, handle))
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns the query and the count of a model's call. The error is a message for the model.
fn read(arguments: &Value) -> Result<(String, Option<u32>), &'static str> {
    let parsed;
    let asked = match arguments {
        Value::String(written) => {
            parsed = serde_json::from_str(written).unwrap_or_default();
            &parsed
        }
        given => given,
    };
    let asked = asked.as_object().ok_or("the arguments must be a JSON object")?;
    let query = asked.get("query").and_then(Value::as_str).ok_or("query: must be a text")?;
    let most = match asked.get("max_results").filter(|most| !most.is_null()) {
        None => None,
        Some(most) => Some(count(most).ok_or("max_results: must be a whole number from 1 to 100")?),
    };
    Ok((query.to_owned(), most))
}

fn count(most: &Value) -> Option<u32> {
    let most = u32::try_from(most.as_u64()?).ok()?;
    (1..=100).contains(&most).then_some(most)
}

/// Returns true if the service refused the model's arguments, and not the caller's request.
fn is_the_models(call: &CallError) -> bool {
    let too_long = call.metadata.get("limit").is_some_and(|limit| limit == QUERY_LIMIT);
    let written =
        |violation: &FieldViolation| matches!(violation.field.as_str(), "query" | "max_results");
    too_long || (!call.violations.is_empty() && call.violations.iter().all(written))
}
