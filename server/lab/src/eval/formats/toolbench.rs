//! ToolBench and StableToolBench: an array of queries, each with the APIs that it offers (`api_list`) and those that
//! serve it (`relevant APIs`, pairs of tool and API). A tool becomes an MCP server, and an API becomes one of its
//! tools. All queries choose from all of them.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use super::gathered::{Gathered, label};
use super::{Files, LabelledSet, elements, query, schema};
use crate::eval::catalog_file;
use crate::eval::input_error::{InputError, read_text};

#[derive(Deserialize)]
struct Query {
    query: String,
    #[serde(default)]
    api_list: Vec<Api>,
    #[serde(rename = "relevant APIs", default)]
    relevant: Vec<(String, String)>,
}

/// Entry of a catalog file, of which only the APIs are read.
#[derive(Deserialize)]
struct Offer {
    #[serde(default)]
    api_list: Vec<Api>,
}

#[derive(Deserialize)]
struct Api {
    tool_name: String,
    api_name: String,
    #[serde(default)]
    api_description: Value,
    #[serde(default)]
    required_parameters: Vec<Value>,
    #[serde(default)]
    optional_parameters: Vec<Value>,
}

/// Reads queries and APIs. A catalog, if given, is a file or directory of more queries. Only the APIs of the catalog
/// are used then.
pub(super) fn read(files: Files<'_>, text: &str) -> Result<LabelledSet, InputError> {
    let path = files.queries;
    let mut gathered = Gathered::default();
    let mut queries = Vec::new();
    for element in elements::read(path, text)? {
        let found: Query = elements::parse(path, element.0, element.1)?;
        if files.catalog.is_none() {
            gather(&found.api_list, &mut gathered);
        }
        let pairs = found.relevant.iter();
        let labels = pairs.map(|(tool, api)| label(tool.trim(), api.trim())).collect();
        queries.push(query(path, element.0, found.query, labels)?);
    }
    for path in files.catalog.map_or_else(|| Ok(Vec::new()), catalog_file::files)? {
        gather_file(&path, &mut gathered)?;
    }
    let servers = gathered.unless_empty(files.catalog.unwrap_or(path))?;
    Ok(LabelledSet { servers, queries })
}

fn gather_file(path: &Path, gathered: &mut Gathered) -> Result<(), InputError> {
    let text = read_text(path)?;
    for element in elements::read(path, &text)? {
        let found: Offer = elements::parse(path, element.0, element.1)?;
        gather(&found.api_list, gathered);
    }
    Ok(())
}

fn gather(apis: &[Api], gathered: &mut Gathered) {
    for api in apis {
        // Tools whose names have white space around them are refused.
        let server = api.tool_name.trim();
        let name = api.api_name.trim();
        gathered.add(server, name, || {
            let parameters = (api.required_parameters.iter(), api.optional_parameters.iter());
            json!({
                "name": name,
                "description": api.api_description.as_str().unwrap_or_default(),
                "inputSchema": schema::of_list(parameters.0, parameters.1),
            })
        });
    }
}
