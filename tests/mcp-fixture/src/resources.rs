//! Resources: a text, a picture, and a template.

use rmcp::ErrorData;
use rmcp::model::{ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult};
use serde_json::{Value, json};

use crate::contents::{PNG, complete};

pub(crate) fn list() -> Result<ListResourcesResult, ErrorData> {
    complete(json!({"resources": [
        resource("test://static-text", "text", "text/plain"),
        resource("test://static-binary", "binary", "image/png"),
        resource("test://watched-resource", "watched", "text/plain"),
    ]}))
}

pub(crate) fn templates() -> Result<ListResourceTemplatesResult, ErrorData> {
    complete(json!({"resourceTemplates": [{
        "uriTemplate": "test://template/{id}/data",
        "name": "template",
        "description": "Data by its id",
        "mimeType": "application/json",
    }]}))
}

pub(crate) fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let content = match uri {
        "test://static-text" => {
            json!({"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."})
        }
        "test://static-binary" => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
        "test://watched-resource" => {
            json!({"uri": uri, "mimeType": "text/plain", "text": "Watched."})
        }
        _ => match template_id(uri) {
            Some(id) => template_content(uri, id),
            None => {
                return Err(ErrorData::resource_not_found(
                    "Resource not found",
                    Some(json!({"uri": uri})),
                ));
            }
        },
    };
    complete(json!({"contents": [content]}))
}

fn template_id(uri: &str) -> Option<&str> {
    uri.strip_prefix("test://template/")?.strip_suffix("/data").filter(|id| !id.contains('/'))
}

fn template_content(uri: &str, id: &str) -> Value {
    let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
    json!({"uri": uri, "mimeType": "application/json", "text": data.to_string()})
}

fn resource(uri: &str, name: &str, mime_type: &str) -> Value {
    json!({"uri": uri, "name": name, "description": format!("The {name} resource of the fixture"), "mimeType": mime_type})
}
