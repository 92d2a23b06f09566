//! Parser of the body of an MCP `tools/list`: the result, the whole JSON-RPC response, or the bare array. It checks
//! only the outer shape; each tool is checked separately in `check`.

use serde::Deserialize;
use serde_json::value::RawValue;

use toolgate_core::error::Error;

/// Tools of a `tools/list` body.
#[derive(Debug)]
pub struct ToolsList<'a> {
    /// JSON text of each tool, as it stands in the body.
    pub tools: Vec<&'a str>,
    /// True if the body is one page of several, with more to follow.
    pub more_pages: bool,
}

/// Object shapes of a body: a `ListToolsResult` (MCP 2025-11-25, "Tools") or the JSON-RPC response around it.
#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    tools: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    result: Option<Box<Body<'a>>>,
    #[serde(rename = "nextCursor")]
    next_cursor: Option<String>,
}

impl<'a> ToolsList<'a> {
    /// Parses a body.
    ///
    /// # Errors
    /// [`Error::MalformedCatalog`] with the line and column of the mistake.
    pub fn parse(body: &'a [u8]) -> Result<Self, Error> {
        let text = utf8(body)?;
        if text.trim_start().starts_with('[') {
            let tools: Vec<&RawValue> = serde_json::from_str(text).map_err(|e| at(&e))?;
            return Ok(Self { tools: raw(tools), more_pages: false });
        }
        let body: Body<'a> = serde_json::from_str(text).map_err(|e| at(&e))?;
        let body = body.result.map_or(
            Body { tools: body.tools, result: None, next_cursor: body.next_cursor },
            |inner| *inner,
        );
        let tools = body.tools.ok_or_else(no_tools)?;
        Ok(Self { tools: raw(tools), more_pages: body.next_cursor.is_some() })
    }
}

fn raw(tools: Vec<&RawValue>) -> Vec<&str> {
    tools.into_iter().map(RawValue::get).collect()
}

fn utf8(body: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(body).map_err(|e| {
        let before = &body[..e.valid_up_to()];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|&&byte| byte != b'\n').count() + 1;
        Error::MalformedCatalog { line, column, problem: "not UTF-8, as JSON must be".to_owned() }
    })
}

fn at(error: &serde_json::Error) -> Error {
    // The parser's text ends with the position, which the error holds in its own fields.
    let text = error.to_string();
    let problem = text.split(" at line ").next().unwrap_or(&text).to_owned();
    Error::MalformedCatalog { line: error.line(), column: error.column(), problem }
}

fn no_tools() -> Error {
    let problem = "there is no \"tools\": send the answer of tools/list as it came".to_owned();
    Error::MalformedCatalog { line: 0, column: 0, problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, tools: &[&str], more_pages: bool) {
        let list = ToolsList::parse(body.as_bytes()).expect("a body");
        assert_eq!((list.tools.as_slice(), list.more_pages), (tools, more_pages));
    }

    #[test]
    fn shapes() {
        check(r#"{"tools": [{"a": 1}, 2]}"#, &["{\"a\": 1}", "2"], false);
        check(r#" [{"a":1}]"#, &["{\"a\":1}"], false);
        let response = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{}],"nextCursor":"x"}}"#;
        check(response, &["{}"], true);
        check(r#"{"name":"git","tools":[]}"#, &[], false);
    }

    #[test]
    fn mistakes_have_a_place() {
        let place = |body: &[u8]| match ToolsList::parse(body).expect_err("must fail") {
            Error::MalformedCatalog { line, column, .. } => (line, column),
            other => panic!("{other}"),
        };
        assert_eq!(place(b"{\n \"tools\": [}"), (2, 12));
        assert_eq!(place(b"{\"tools\":\n[\"\xff\"]}"), (2, 3));
        assert_eq!(place(b"{\"tool\": []}"), (0, 0));
        assert_eq!(place(b""), (1, 0));
        assert_eq!(place(b"{\"tools\": 3}").0, 1);
    }
}
