//! `toolgate bench poison`: two tables. One shows the findings of the registration scan in attacks and in honest tools.
//! The other shows the places in active sets that tools written for given requests capture.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::tax::table;
use crate::cli::arguments::ConfigArguments;
use crate::cli::catalog::read;
use crate::cli::documents::read_text;
use crate::cli::embedding::{packs, with_encoders};
use crate::cli::failure::{Exit, Failure};
use crate::cli::files::{check_writable, write};
use crate::cli::output;
use toolgate_lab::eval::{Progress, Sides, catalog_file, query_file};
use toolgate_lab::tax::poison::{Attack, Capture, Honest, scanned};
use toolgate_lab::tax::report::Table;

const EXAMPLES: &str = "\
Examples:
  toolgate bench poison
  toolgate bench poison --catalog tests/data/servers --attacks tests/data/attacks/held-out.jsonl
  toolgate bench poison --catalog tests/data/servers --queries tests/data/intents/people.jsonl
  toolgate bench poison --rules our-rules.yaml --catalog our-servers/ --markdown poison.md

The 60 poisoned tools of `toolgate bench tax` are scanned beside its testbed; attacks of others, one JSON object a line with
\"source\", \"family\" and \"text\", each in a tool of its own; catalogs, as `toolgate catalog scan` takes them, each
as a whole. Neither a server nor an encoder is needed.

With --queries, a second table: MCP servers whose tools are written for 40 of these very requests, each beside the honest
catalogs, and what they take of the sets as a standard and as an untrusted one. This takes the encoder.";

/// Measure which attacks a registration's scan finds, which honest tools it takes for one, and what written-for tools take.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Poison {
    /// Honest tools: a file, or a directory of files.
    #[arg(long = "catalog", value_name = "PATH")]
    catalogs: Vec<PathBuf>,
    /// Attacks of others, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    attacks: Vec<PathBuf>,
    /// Requests of the honest tools, as `toolgate eval` takes them: also measure what tools written for them take.
    #[arg(long, value_name = "FILE", requires = "catalogs")]
    queries: Option<PathBuf>,
    /// A file of rules (safety.rules_file) over the shipped ones.
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Write the table as Markdown.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// The encoder's model directory (encoder.model_dir).
    #[arg(long, value_name = "DIR", requires = "queries")]
    model_dir: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigArguments,
}

pub(super) async fn run(arguments: Poison) -> Result<Exit, Failure> {
    arguments.markdown.iter().try_for_each(|path| check_writable(path))?;
    let scanner = read::scanner(arguments.rules.as_deref())?;
    let attacks =
        arguments.attacks.iter().map(|path| attacks(path)).collect::<Result<Vec<_>, _>>()?;
    let honest = arguments.catalogs.iter().map(honest).collect::<Result<Vec<_>, _>>()?;
    let measured = scanned(&scanner, &attacks.concat(), &honest);
    let measured = measured.map_err(|error| Failure::new(error.to_string()))?;
    let captured = match &arguments.queries {
        Some(queries) => Some(captured(&arguments, queries).await?),
        None => None,
    };
    let tables: Vec<&Table> = [&measured].into_iter().chain(&captured).collect();
    if let Some(path) = &arguments.markdown {
        write(path, &tables.iter().map(|one| markdown(one)).collect::<Vec<_>>().join("\n"))?;
    }
    if arguments.json {
        output::print_json(&as_json(&measured, captured.as_ref()))?;
    } else {
        let texts: Vec<String> = tables.iter().map(|one| table(one)).collect();
        output::print(&texts.join("\n"))?;
        captured.iter().for_each(|one| output::note(&one.says));
    }
    Ok(Exit::Done)
}

/// Measures the share of active sets that tools written for these requests capture.
async fn captured(arguments: &Poison, queries: &Path) -> Result<Table, Failure> {
    let config = arguments.config.load_for_model(arguments.model_dir.as_deref())?;
    let mut honest = Vec::new();
    for path in &arguments.catalogs {
        honest.extend(catalog_file::read(path)?);
    }
    let queries = query_file::read(queries)?;
    let capture = Capture { honest, queries, packs: packs(&config, &[])? };
    let measure =
        async move |sides: Sides<'_>, progress: &Progress| capture.run(sides, progress).await;
    with_encoders(&config, "the benchmark", measure).await
}

fn as_json(scanned: &Table, captured: Option<&Table>) -> Value {
    let mut all = json!({"columns": scanned.columns, "rows": scanned.rows});
    if let Some(Table { says, columns, rows, .. }) = captured {
        all["captured"] = json!({"says": says, "columns": columns, "rows": rows});
    }
    all
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
