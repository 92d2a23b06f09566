//! Output files of an evaluation.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use super::markdown::markdown;
use super::plots::plots;
use crate::cli::failure::Failure;
use crate::cli::files::{check_writable, write};
use toolgate_lab::eval::ranking::Ranked;
use toolgate_lab::eval::{Evaluated, per_query};

/// What to write, and where.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Files to write")]
pub(super) struct Outputs {
    /// Write each query's best tools, before any cut, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    ranked: Option<PathBuf>,
    /// Write the report as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Have the JSON report hold the measures of each query, which --compare wants.
    #[arg(long, requires = "json")]
    per_query: bool,
    /// Write the report as Markdown.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Draw recall by rank, and what each threshold accepts and rejects, as SVG files in this directory.
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
}

impl Outputs {
    /// Creates the directory and opens the files, so that a path that can't be written fails before minutes of work.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if let Some(directory) = &self.plots {
            let made = fs::create_dir_all(directory);
            made.map_err(|error| {
                Failure::new(format!("{}: cannot be made: {error}", directory.display()))
            })?;
        }
        let files = self.ranked.iter().chain(&self.json).chain(&self.markdown);
        files.into_iter().try_for_each(|path| check_writable(path))
    }

    /// Writes all output files.
    pub(super) fn write(&self, evaluated: &Evaluated) -> Result<(), Failure> {
        let report = &evaluated.report;
        if let Some(path) = &self.ranked {
            write(path, &lines(&evaluated.ranked)?)?;
        }
        if let Some(path) = &self.json {
            let mut json = report.to_json();
            if self.per_query {
                json["per_query"] = per_query::to_json(&evaluated.samples);
            }
            write(path, &format!("{json:#}\n"))?;
        }
        let mut drawn = Vec::new();
        if let Some(directory) = &self.plots {
            for (name, svg) in plots(report) {
                let path = directory.join(name);
                write(&path, &svg)?;
                drawn.push(path);
            }
        }
        if let Some(path) = &self.markdown {
            write(path, &markdown(report, &links(path, &drawn)))?;
        }
        Ok(())
    }
}

/// Returns the name and the relative path of each plot that lies beside the page or below it.
fn links(page: &Path, pictures: &[PathBuf]) -> Vec<(String, String)> {
    let folder = page.parent().unwrap_or(Path::new(""));
    let link = |picture: &PathBuf| {
        let name = picture.file_stem()?.to_str()?.to_owned();
        let way = picture.strip_prefix(folder).ok().filter(|way| way.is_relative())?;
        Some((name, way.to_str()?.to_owned()))
    };
    pictures.iter().filter_map(link).collect()
}

fn lines(ranked: &[Ranked]) -> Result<String, Failure> {
    let mut text = String::new();
    for one in ranked {
        let line = serde_json::to_string(one).map_err(|error| Failure::new(error.to_string()))?;
        let _ = writeln!(text, "{line}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::example::example;
    use super::*;
    use toolgate_lab::eval::sample::Samples;

    #[test]
    fn a_page_links_the_pictures_below_it() {
        let pictures = [PathBuf::from("out/plots/recall.svg")];
        let way = |page: &str| links(Path::new(page), &pictures).pop().map(|(_, way)| way);
        assert_eq!(way("out/report.md").as_deref(), Some("plots/recall.svg"));
        assert_eq!(way("report.md").as_deref(), Some("out/plots/recall.svg"));
        assert_eq!(way("elsewhere/report.md"), None);
    }

    #[test]
    fn every_file_is_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = |name: &str| Some(directory.path().join(name));
        let outputs = Outputs {
            ranked: place("ranked.jsonl"),
            json: place("report.json"),
            per_query: true,
            markdown: place("report.md"),
            plots: place("plots"),
        };
        outputs.check().expect("writable");
        let ranked = vec![Ranked { ranked: vec!["a/b".to_owned()], scores: vec![0.75], top: 0.5 }];
        let samples = Samples::default();
        let report = example();
        outputs.write(&Evaluated { ranked, samples, report }).expect("written");
        let read = |name: &str| fs::read_to_string(directory.path().join(name)).expect(name);
        assert_eq!(read("ranked.jsonl"), "{\"ranked\":[\"a/b\"],\"scores\":[0.75],\"top\":0.5}\n");
        assert!(read("report.json").contains("\"per_query\""));
        assert!(read("report.md").contains("![recall](<plots/recall.svg>)"));
        assert!(read("plots/abstention.svg").ends_with("</svg>\n"));
    }

    #[test]
    fn what_cannot_be_written_is_known_before_the_work() {
        let directory = tempfile::tempdir().expect("a directory");
        let json = Some(directory.path().join("absent/report.json"));
        let wrong = Outputs { json, ..Outputs::default() }.check().expect_err("no directory");
        assert!(format!("{wrong:?}").contains("report.json: cannot be written"), "{wrong:?}");
    }
}
