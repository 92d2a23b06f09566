//! Reads files of tools, and the rules that the tools are checked against.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cli::documents::{read_catalogs, read_text};
use crate::cli::failure::Failure;
use toolgate_config::LimitsConfig;
use toolgate_core::safety::survey::Surveyed;
use toolgate_core::safety::{Rules, Scanner};
use toolgate_lab::eval::CatalogServer;
use toolgate_routing::catalog::json_text::check_shape;

/// Returns a scanner with the shipped rules, overridden by those of `file`.
pub(in crate::cli) fn scanner(file: Option<&Path>) -> Result<Scanner, Failure> {
    let Some(path) = file else { return Ok(Scanner::new(Rules::shipped())) };
    let rules = Rules::with(&read_text(path)?).map_err(|mistakes| {
        let lines: Vec<String> =
            mistakes.iter().map(|mistake| format!("{}: {mistake}", path.display())).collect();
        Failure::new(lines.join("\n"))
    })?;
    Ok(Scanner::new(rules))
}

/// Reads the MCP servers of files and directories.
pub(in crate::cli) fn servers(paths: &[PathBuf]) -> Result<Vec<Surveyed>, Failure> {
    read_catalogs(paths)?.into_iter().map(surveyed).collect()
}

fn surveyed(server: CatalogServer) -> Result<Surveyed, Failure> {
    let depth = LimitsConfig::default().max_schema_nesting;
    let parse = |(place, text): (usize, &str)| {
        let parsed = check_shape(text, depth).and_then(|()| serde_json::from_str::<Value>(text));
        parsed.map_err(|error| Failure::new(format!("{}: tools[{place}]: {error}", server.name)))
    };
    let tools =
        server.tools.iter().map(|text| &**text).enumerate().map(parse).collect::<Result<_, _>>()?;
    Ok(Surveyed { name: server.name, description: server.description, tools })
}
