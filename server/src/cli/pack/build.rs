//! `toolgate pack build`: lets a language model write typical user requests for the tools of an MCP server.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::files::PackFiles;
use crate::cli::arguments::ConfigArguments;
use crate::cli::documents;
use crate::cli::failure::{Exit, Failure};
use crate::cli::language_model::ModelArguments;
use crate::cli::output;
use crate::cli::text::{counted, one_line};
use toolgate_lab::eval::stock::Stock;
use toolgate_lab::language_model::{CallError, Endpoint, RetryPolicy, WorkerPool};
use toolgate_lab::lint::tool::Tool;
use toolgate_lab::pack_build::{Asking, Claims, Siblings, Voices, Wanted, Written, write};
use toolgate_routing::packs::document::{NOT, REQUESTS_MAX, is_language};
use toolgate_routing::packs::lint::REQUESTS_MIN;

const EXAMPLES: &str = "\
Examples:
  toolgate pack build git.json --endpoint http://127.0.0.1:11434 --model qwen3 --output packs/git.yaml
  toolgate pack build servers/ --endpoint https://api.example.com/v1 --model NAME --api-key-env KEY --output packs/
  toolgate pack build git.json --endpoint URL --model NAME --languages de,fr --output packs/git.yaml --resume
  toolgate pack lint packs/git.yaml --catalog git.json

A file holds the answer of an MCP server's tools/list, or several servers as `toolgate eval` takes them. The endpoint
is asked for each tool with POST .../v1/chat/completions, and sees its name, description and parameters, and names and
descriptions of tools like it. Of an answer, requests are taken that are one line of plain text, don't name the tool
and were not there before; what is left open is asked for once more. A tool that has fewer than 8 requests then is left
out, and asked for again by the next run with --resume.

The output is a pack for each MCP server, as YAML; with several servers, a folder of them. It is saved with each tool
that comes. --resume keeps the tools that are there and their requests, but not a file's comments. Somebody should read
what was written: whoever wrote a tool's description has a say in the requests too.";

/// Have a language model write a pack for any MCP server.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Build {
    /// Files with a tools/list, or directories of them.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The pack to write, or a folder of them for several MCP servers.
    #[arg(long, value_name = "FILE|DIR")]
    output: PathBuf,
    /// Requests in English for each tool.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = per_tool())]
    per_tool: u64,
    /// Languages to have one more request in each, such as de,fr (ISO 639-1).
    #[arg(long, value_name = "CODES", value_delimiter = ',', value_parser = parse_language)]
    languages: Vec<String>,
    /// Keep the tools that the output has already, and ask for the others.
    #[arg(long)]
    resume: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    language_model: ModelArguments,
    #[command(flatten)]
    config: ConfigArguments,
}

pub(super) async fn run(build: Build) -> Result<Exit, Failure> {
    let config = build.config.load(Vec::new())?.config;
    let wanted = build.wanted()?;
    let endpoint = build.language_model.endpoint()?.ok_or_else(|| {
        Failure::usage("--endpoint and --model are needed: a language model writes the requests")
    })?;
    let servers = documents::read_catalogs(&build.paths)?;
    let stock = Stock::check(&servers, &config.limits);
    for rejected in &stock.rejected {
        output::warn(format_args!(
            "{}/{} could not be registered: {}",
            rejected.server, rejected.rejection.name, rejected.rejection.problem
        ));
    }
    let files = PackFiles::open(&build.output, &stock, build.resume)?;
    let work = Work { report: Report::new(&stock, &files), stock, files };
    let workers = build.language_model.workers();
    // Calls block, so they have threads of their own, and Ctrl-C still works.
    let asked = tokio::task::spawn_blocking(move || work.ask(&endpoint, workers, &wanted));
    let asked =
        asked.await.map_err(|error| Failure::new(format!("the work broke off: {error}")))?;
    let report = asked?;
    report.warn();
    if build.json {
        output::print_json(&report.as_json())?;
    } else {
        output::print(&report.text())?;
    }
    Ok(Exit::Done)
}

impl Build {
    fn wanted(&self) -> Result<Wanted, Failure> {
        let all = self.per_tool as usize + self.languages.len();
        if all > REQUESTS_MAX {
            return Err(Failure::usage(format!(
                "{all} requests a tool, with those in other languages: at most {REQUESTS_MAX}"
            )));
        }
        Ok(Wanted::new(self.per_tool as usize, &self.languages))
    }
}

fn per_tool() -> clap::builder::RangedU64ValueParser<u64> {
    clap::value_parser!(u64).range(REQUESTS_MIN as u64..=REQUESTS_MAX as u64)
}

fn parse_language(text: &str) -> Result<String, String> {
    let code = text.trim();
    match code {
        "en" => Err("requests in English are there anyway".into()),
        code if is_language(code) => Ok(code.to_owned()),
        _ => Err("write codes of two letters, such as de,fr".into()),
    }
}

/// State of the work: the tools to ask for, and the results so far.
struct Work {
    stock: Stock,
    files: PackFiles,
    report: Report,
}

impl Work {
    fn ask(
        mut self,
        endpoint: &Endpoint,
        workers: usize,
        wanted: &Wanted,
    ) -> Result<Report, Failure> {
        let tools = Tool::all(&self.stock);
        let siblings = Siblings::of(&tools);
        let claims = self.claims();
        let missing: Vec<usize> =
            (0..tools.len()).filter(|place| !self.has(&tools[*place])).collect();
        let asking = missing.iter().map(|place| Asking {
            tool: &tools[*place],
            siblings: siblings.near(*place),
            claims: &claims[tools[*place].server],
        });
        let asking: Vec<Asking<'_>> = asking.collect();
        let bar = output::progress_over(asking.len(), "tools");
        let files = &mut self.files;
        let report = &mut self.report;
        let mut unsaved = None;
        let pool = WorkerPool { endpoint, retry: RetryPolicy::default(), workers };
        let outcome = write(&pool, &asking, wanted, |place, written| {
            bar.inc(1);
            let tool = asking[place].tool;
            let Some(voices) = report.note(tool, written) else { return ControlFlow::Continue(()) };
            match files.set(tool.server, tool.name, voices) {
                Ok(()) => ControlFlow::Continue(()),
                Err(failure) => {
                    unsaved = Some(failure);
                    ControlFlow::Break(())
                }
            }
        });
        bar.finish_and_clear();
        unsaved.map_or(Ok(()), Err)?;
        // Sorted in the catalog's order, whatever the order of the answers.
        report.refused.sort();
        report.dropped.sort();
        outcome.map_err(|error| given_up(endpoint, &error, report))?;
        Ok(self.report)
    }

    fn has(&self, tool: &Tool<'_>) -> bool {
        self.files.of(tool.server).is_some_and(|file| file.tools.contains_key(tool.name))
    }

    /// Returns the existing requests, by MCP server.
    fn claims(&self) -> BTreeMap<String, Claims> {
        let server = |record: &toolgate_store::ServerRecord| {
            let name = self.stock.names.in_file(&record.name);
            let claims = Claims::default();
            for (tool, voices) in self.files.of(name).into_iter().flat_map(|file| &file.tools) {
                let own = voices.iter().filter(|(voice, _)| *voice != NOT);
                for request in own.flat_map(|(_, requests)| requests) {
                    // A request that is already claimed needs no handling here.
                    let _ = claims.take(request, tool);
                }
            }
            (name.to_owned(), claims)
        };
        self.stock.catalog.servers.iter().map(|stored| server(&stored.record)).collect()
    }
}

/// Returns the failure for an endpoint that can't be used. The results so far are saved.
fn given_up(endpoint: &Endpoint, error: &CallError, report: &Report) -> Failure {
    Failure::new(format!(
        "{}: {error}\n  {} of {} tools are saved; the same command with --resume goes on from there",
        endpoint.address(),
        report.written + report.kept,
        report.tools
    ))
}

/// Number of tools that are named one by one. --json has all.
const NAMED: usize = 10;

/// Counts and problems of the run.
#[derive(Debug)]
struct Report {
    tools: usize,
    kept: usize,
    written: usize,
    requests: usize,
    /// Tools without requests, with the reason.
    refused: Vec<(String, String)>,
    /// Requests that were dropped, by tool, with the reason.
    dropped: Vec<(String, String)>,
    packs: Vec<PathBuf>,
}

impl Report {
    fn new(stock: &Stock, files: &PackFiles) -> Self {
        let tools = Tool::all(stock);
        let has = |tool: &&Tool<'_>| {
            files.of(tool.server).is_some_and(|file| file.tools.contains_key(tool.name))
        };
        Self {
            tools: tools.len(),
            kept: tools.iter().filter(has).count(),
            written: 0,
            requests: 0,
            refused: Vec::new(),
            dropped: Vec::new(),
            packs: files.paths().map(ToOwned::to_owned).collect(),
        }
    }

    /// Counts the result for a tool. Returns the requests to save, if there are any.
    fn note(&mut self, tool: &Tool<'_>, written: Written) -> Option<Voices> {
        match written {
            Written::Requests { voices, dropped } => {
                self.written += 1;
                let own = voices.iter().filter(|(voice, _)| *voice != NOT);
                self.requests += own.map(|(_, requests)| requests.len()).sum::<usize>();
                self.dropped.extend(dropped.into_iter().map(|why| (tool.id(), why)));
                return Some(voices);
            }
            Written::Unfit(why) | Written::Unanswered(why) => self.refused.push((tool.id(), why)),
        }
        None
    }

    /// Prints the tools without requests and the dropped requests to stderr.
    fn warn(&self) {
        let refused = self.refused.iter().map(|(tool, why)| (tool, "has no requests", why));
        let dropped = self.dropped.iter().map(|(tool, why)| (tool, "does without one", why));
        for (tool, what, why) in refused.chain(dropped).take(NAMED) {
            let tool = one_line(tool, 200);
            let why = one_line(why, 400);
            output::warn(format_args!("{tool} {what}: {why}"));
        }
        let more = (self.refused.len() + self.dropped.len()).saturating_sub(NAMED);
        if more > 0 {
            output::warn(format_args!("{} more; --json lists all", counted(more, "note")));
        }
    }

    fn text(&self) -> String {
        let packs: Vec<_> = self.packs.iter().map(|path| path.display().to_string()).collect();
        format!(
            "{}: {} written with {}, {} kept, {} not to be had\n\nCheck with: toolgate pack lint {}\n",
            counted(self.tools, "tool"),
            self.written,
            counted(self.requests, "request"),
            self.kept,
            self.refused.len(),
            packs.join(" "),
        )
    }

    fn as_json(&self) -> Value {
        let told = |told: &[(String, String)]| -> Vec<Value> {
            told.iter().map(|(tool, why)| json!({ "tool": tool, "problem": why })).collect()
        };
        json!({
            "tools": self.tools,
            "written": self.written,
            "kept": self.kept,
            "requests": self.requests,
            "refused": told(&self.refused),
            "dropped": told(&self.dropped),
            "packs": self.packs.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        })
    }
}
