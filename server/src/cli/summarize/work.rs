//! The work of `toolgate summarize`: it asks for summaries, saves them as they come, and measures them.

use std::ops::ControlFlow;

use super::Summarize;
use super::out::SettingsFiles;
use super::report::Report;
use crate::cli::embedding::with_encoders;
use crate::cli::failure::Failure;
use crate::cli::output;
use toolgate_config::Config;
use toolgate_core::identity::ToolId;
use toolgate_lab::eval::stock::Stock;
use toolgate_lab::eval::{LabelledQuery, Progress, Sides};
use toolgate_lab::language_model::{CallError, Endpoint, RetryPolicy, WorkerPool};
use toolgate_lab::lint::suggest::suggestion;
use toolgate_lab::lint::tool::Tool;
use toolgate_lab::lint::trial::Written;
use toolgate_lab::lint::{self, boilerplate::Boilerplate};
use toolgate_lab::summarize::{Rewritten, Tried, measure, rewrite};

/// State of the work: the tools, their settings files, and the results so far.
pub(super) struct Work {
    stock: Stock,
    files: SettingsFiles,
    report: Report,
}

/// Writes the missing summaries.
pub(super) async fn write(
    summarize: &Summarize,
    stock: Stock,
    files: SettingsFiles,
    endpoint: Option<Endpoint>,
) -> Result<Work, Failure> {
    let report = Report {
        tools: stock.catalog.tools.len(),
        paths: summarize.paths.clone(),
        out: files.paths().map(ToOwned::to_owned).collect(),
        ..Report::default()
    };
    let mut work = Work { stock, files, report };
    let again = summarize.again;
    let workers = summarize.language_model.workers();
    let Some(endpoint) = endpoint else {
        output::note(
            "no --endpoint: where a text is found wanting, a summary is made of the tool's own words by rule",
        );
        work.extract(again)?;
        return Ok(work);
    };
    // Calls block, so they have threads of their own, and Ctrl-C still works.
    let asked = tokio::task::spawn_blocking(move || work.ask(&endpoint, workers, again));
    asked.await.map_err(|error| Failure::new(format!("the work broke off: {error}")))?
}

/// Measures the new summaries if requested, and saves the files.
pub(super) async fn finish(
    summarize: &Summarize,
    config: &Config,
    mut work: Work,
    queries: &[LabelledQuery],
) -> Result<Report, Failure> {
    if summarize.keep_better || !queries.is_empty() {
        let measured = work.measure(config, queries, summarize.keep_better).await?;
        for stored in &work.stock.catalog.tools {
            let record = &stored.record;
            let named =
                format!("{}/{}", work.stock.names.in_file(&record.server), record.name.as_str());
            if measured.left_out.contains(&named) {
                let id = ToolId { server: record.server.clone(), name: record.name.clone() };
                work.files.set(&id, None);
            }
        }
        work.report.chose = summarize.keep_better && !queries.is_empty();
        work.report.left_out = measured.left_out;
        work.report.measured = measured.before.zip(measured.after);
    }
    work.files.save()?;
    Ok(work.report)
}

impl Work {
    /// Returns the indexes of tools without a summary; of all tools if `again` is true.
    fn wanting(&mut self, again: bool) -> Vec<usize> {
        let all = 0..self.stock.catalog.tools.len();
        let (kept, wanting): (Vec<_>, Vec<_>) =
            all.partition(|place| !again && self.files.summary(&self.id(*place)).is_some());
        self.report.kept = kept.len();
        wanting
    }

    fn id(&self, place: usize) -> ToolId {
        let record = &self.stock.catalog.tools[place].record;
        ToolId { server: record.server.clone(), name: record.name.clone() }
    }

    /// Writes summaries by rule, but only for tools with poor texts. Other tools are easier to find by the summary that
    /// a registration derives.
    fn extract(&mut self, again: bool) -> Result<(), Failure> {
        let mut wanting = self.wanting(again);
        let findings = lint::texts(&self.stock);
        let mendable = lint::wanting(&findings);
        let tools = Tool::all(&self.stock);
        wanting.retain(|place| mendable.contains(&(tools[*place].server, tools[*place].name)));
        let boilerplate = Boilerplate::of(&tools);
        let summary = |place: &usize| {
            let tool = &tools[*place];
            suggestion(tool, &boilerplate.own(tool))
        };
        let summaries: Vec<String> = wanting.iter().map(summary).collect();
        self.report.written = summaries.len();
        for (place, summary) in wanting.iter().zip(&summaries) {
            let id = self.id(*place);
            self.files.set(&id, Some(summary));
        }
        self.files.save()
    }

    /// Lets the language model write the summaries.
    fn ask(mut self, endpoint: &Endpoint, workers: usize, again: bool) -> Result<Self, Failure> {
        let wanting = self.wanting(again);
        let ids: Vec<ToolId> = wanting.iter().map(|place| self.id(*place)).collect();
        let tools = Tool::all(&self.stock);
        let asked: Vec<&Tool<'_>> = wanting.iter().map(|place| &tools[*place]).collect();
        let bar = output::progress_over(asked.len(), "summaries");
        let files = &mut self.files;
        let report = &mut self.report;
        let mut unsaved = None;
        let pool = WorkerPool { endpoint, retry: RetryPolicy::default(), workers };
        let outcome = rewrite(&pool, &asked, |place, rewritten| {
            bar.inc(1);
            match rewritten {
                Rewritten::Written(summary) => {
                    report.written += 1;
                    files.set(&ids[place], Some(&summary));
                }
                Rewritten::Unfit(why) => {
                    report
                        .refused
                        .push((asked[place].id(), format!("the answer is not taken: {why}")));
                }
                Rewritten::Unanswered(why) => report.refused.push((asked[place].id(), why)),
            }
            match files.save_now_and_then() {
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
        files.save()?;
        outcome.map_err(|error| given_up(endpoint, &error, report))?;
        Ok(self)
    }

    async fn measure(
        &self,
        config: &Config,
        queries: &[LabelledQuery],
        keep_better: bool,
    ) -> Result<Tried, Failure> {
        let places = 0..self.stock.catalog.tools.len();
        let summary = |place| Some((place, self.files.summary(&self.id(place))?.trim().to_owned()));
        let written: Written = places.filter_map(summary).collect();
        let stock = self.stock.clone();
        let queries = queries.to_vec();
        let work = async move |sides: Sides<'_>, progress: &Progress| {
            measure(&stock, &written, &queries, keep_better, sides, progress).await
        };
        with_encoders(config, "the measuring", work).await
    }
}

/// Returns the failure for an endpoint that can't be used. The results so far are saved.
fn given_up(endpoint: &Endpoint, error: &CallError, report: &Report) -> Failure {
    Failure::new(format!(
        "{}: {error}\n  {} of {} summaries are saved; the same command goes on from there",
        endpoint.address(),
        report.written + report.kept,
        report.tools
    ))
}
