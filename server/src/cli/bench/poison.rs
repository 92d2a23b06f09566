//! `toolgate bench poison`: what the scan of registrations finds in attacks and in honest tools, as a table.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::tax::table;
use crate::cli::catalog::read;
use crate::cli::documents::read_text;
use crate::cli::failure::{Exit, Failure};
use crate::cli::files::{check_writable, write};
use crate::cli::output;
use crate::tax::poison::{Attack, Honest, scanned};
use crate::tax::report::Table;

const EXAMPLES: &str = "\
Examples:
  toolgate bench poison
  toolgate bench poison --catalog tests/data/servers --attacks tests/data/attacks/held-out.jsonl
  toolgate bench poison --rules our-rules.yaml --catalog our-servers/ --markdown poison.md

The 60 poisoned tools of `toolgate bench tax` are scanned beside its testbed; attacks of others, one JSON object a line with
\"source\", \"family\" and \"text\", each in a tool of its own; catalogs, as `toolgate catalog scan` takes them, each
as a whole. Neither a server nor an encoder is needed.";

/// Measure which attacks a registration's scan finds, and which honest tools it takes for one.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Poison {
    /// Honest tools: a file, or a directory of files.
    #[arg(long = "catalog", value_name = "PATH")]
    catalogs: Vec<PathBuf>,
    /// Attacks of others, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    attacks: Vec<PathBuf>,
    /// A file of rules (safety.rules_file) over the shipped ones.
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Write the table as Markdown.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Poison) -> Result<Exit, Failure> {
    arguments.markdown.iter().try_for_each(|path| check_writable(path))?;
    let scanner = read::scanner(arguments.rules.as_deref())?;
    let attacks =
        arguments.attacks.iter().map(|path| attacks(path)).collect::<Result<Vec<_>, _>>()?;
    let honest = arguments.catalogs.iter().map(honest).collect::<Result<Vec<_>, _>>()?;
    let measured = scanned(&scanner, &attacks.concat(), &honest);
    let measured = measured.map_err(|error| Failure::new(error.to_string()))?;
    if let Some(path) = &arguments.markdown {
        write(path, &markdown(&measured))?;
    }
    if arguments.json {
        output::print_json(&json!({"columns": measured.columns, "rows": measured.rows}))?;
    } else {
        output::print(&table(&measured))?;
    }
    Ok(Exit::Done)
}

fn attacks(path: &Path) -> Result<Vec<Attack>, Failure> {
    let text = read_text(path)?;
    let parse = |(number, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| {
            Failure::new(format!("{}: line {}: {error}", path.display(), number + 1))
        })
    };
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(parse).collect()
}

fn honest(path: &PathBuf) -> Result<Honest, Failure> {
    let name =
        path.file_name().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy());
    let name = name.into_owned();
    Ok(Honest { name, servers: read::servers(std::slice::from_ref(path))? })
}

fn markdown(table: &Table) -> String {
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let heads = table.columns.iter().map(ToString::to_string).collect();
    let rule = format!("|---|{}\n", "---:|".repeat(table.columns.len() - 1));
    let rows = table.rows.iter().map(|cells| row(cells.iter().map(ToString::to_string).collect()));
    format!("{}{rule}{}", row(heads), rows.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attacks_are_read_line_by_line() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.jsonl");
        let good = r#"{"source": "s", "family": "f", "half": "held", "text": "t"}"#;
        std::fs::write(&path, format!("{good}\n\n{good}\n")).expect("written");
        assert_eq!(attacks(&path).expect("attacks").len(), 2);
        std::fs::write(&path, format!("{good}\n{{}}\n")).expect("written");
        let failure = attacks(&path).expect_err("must fail");
        assert!(failure.message().contains("line 2"), "{}", failure.message());
    }
}
