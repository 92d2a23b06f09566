//! `toolgate tokens`: counts the tokens of a catalog in a prompt, in each form. No server is needed.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::failure::{Exit, Failure};
use super::output;
use super::table::{Column, render};
use super::text::grouped;
use toolgate_config::LimitsConfig;
use toolgate_lab::eval::catalog_file;
use toolgate_lab::eval::forms::Forms;

const EXAMPLES: &str = "\
Examples:
  toolgate tokens tests/data/servers
  toolgate tokens catalog.json --json

Catalogs are files as `toolgate eval` takes them, or directories of such files. Counted with cl100k_base;
a lossy signature leaves out something that decides which arguments are valid.";

/// Count the tokens of a catalog's names, summaries, signatures and full schemas.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Tokens {
    /// Catalog files, or directories of them.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Tokens) -> Result<Exit, Failure> {
    let limits = LimitsConfig::default();
    let mut rows: Vec<(String, Forms)> = Vec::new();
    let mut sum = Forms::default();
    for path in &arguments.paths {
        for server in catalog_file::read(path)? {
            let forms = Forms::of(&server, &limits)
                .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
            sum.add(&forms);
            rows.push((server.name, forms));
        }
    }
    if arguments.json {
        let servers: Vec<Value> = rows.iter().map(|(name, forms)| as_json(name, forms)).collect();
        output::print_json(&json!({ "servers": servers, "all": as_json("all", &sum) }))?;
    } else {
        rows.push(("all".to_owned(), sum));
        output::print(&report(&rows))?;
    }
    Ok(Exit::Done)
}

fn report(rows: &[(String, Forms)]) -> String {
    let columns = [
        Column::Left("MCP SERVER"),
        Column::Right("TOOLS"),
        Column::Right("NAMES"),
        Column::Right("SUMMARIES"),
        Column::Right("SIGNATURES"),
        Column::Right("LOSSY"),
        Column::Right("SCHEMAS"),
    ];
    let rows = rows.iter().map(|(name, forms)| {
        let counts = [
            forms.tools,
            forms.names,
            forms.summaries,
            forms.signatures,
            forms.lossy,
            forms.schemas,
        ];
        std::iter::once(name.clone()).chain(counts.map(grouped)).collect()
    });
    render(&columns, rows)
}

fn as_json(name: &str, forms: &Forms) -> Value {
    json!({
        "server": name,
        "tools": forms.tools,
        "rejected": forms.rejected,
        "names": forms.names,
        "summaries": forms.summaries,
        "signatures": forms.signatures,
        "lossy_signatures": forms.lossy,
        "schemas": forms.schemas,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_stand_in_columns() {
        let forms = Forms { tools: 2, names: 10, schemas: 1_234, ..Forms::default() };
        let text = report(&[("git".to_owned(), forms)]);
        assert!(
            text.contains("git             2     10          0           0      0    1,234"),
            "{text}"
        );
    }
}
