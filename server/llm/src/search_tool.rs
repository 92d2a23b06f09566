//! Toolgate's own search as a tool for a model.

use crate::render::Tool;

/// Name under which the model sees Toolgate's own search.
pub const SEARCH_TOOL_NAME: &str = "toolgate_search_tools";

/// Definition of Toolgate's own search. It stands before the active set and stays there, so that the cached prefix
/// holds.
pub const SEARCH_TOOL: Tool<'static> = Tool {
    name: SEARCH_TOOL_NAME,
    description: "Finds tools that are not defined here and makes them callable: once it has answered, call what it \
                  found. Search before you say that something can't be done.",
    input_schema_json: concat!(
        r#"{"type":"object","properties":{"query":{"type":"string","description":""#,
        "`select:name,name` for tools by their names, a server's name for all of its tools, keywords, of which ",
        "`+word` must match, or a sentence that says what you want to do.",
        r#""},"max_results":{"type":"integer","minimum":1,"maximum":100,"#,
        r#""description":"The most tools to find. Default: 5."}},"required":["query"]}"#,
    ),
    output_schema_json: "",
    annotations_json: r#"{"title":"Find tools","readOnlyHint":true}"#,
    signature: "toolgate_search_tools(query: string, max_results?: integer) - Finds tools that are not defined here \
                and makes them callable: once it has answered, call what it found.",
};
