//! Results of `toolgate summarize`, as text and as JSON.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::cli::output;
use crate::cli::table::{Column, render};
use crate::cli::text::{counted, one_line};
use toolgate_lab::eval::measured::Measured;

/// Number of tools that are named one by one. --json has all.
const NAMED: usize = 10;

/// Counts and problems of the run.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Number of tools of the catalog.
    pub(super) tools: usize,
    /// Number of summaries that existed before.
    pub(super) kept: usize,
    /// Number of summaries that were written in this run.
    pub(super) written: usize,
    /// Tools without an acceptable answer, with the reason.
    pub(super) refused: Vec<(String, String)>,
    /// Tools whose new summaries were dropped, because they would be harder to find.
    pub(super) left_out: BTreeSet<String>,
    /// Measures with the derived summaries of a registration, and with those of the files.
    pub(super) measured: Option<(Measured, Measured)>,
    /// True if the same queries chose the summaries and measured them.
    pub(super) chose: bool,
    /// Files with the tools.
    pub(super) paths: Vec<PathBuf>,
    /// Paths of the settings files.
    pub(super) out: Vec<PathBuf>,
}

impl Report {
    /// Prints the tools that keep their derived summaries to stderr, with the reason.
    pub(super) fn warn(&self) {
        for (tool, why) in self.refused.iter().take(NAMED) {
            let tool = one_line(tool, 200);
            let why = one_line(why, 400);
            output::warn(format_args!("{tool} keeps the extractive rule's summary: {why}"));
        }
        if self.refused.len() > NAMED {
            let more = counted(self.refused.len() - NAMED, "more tool");
            output::warn(format_args!("{more} the same; --json lists all"));
        }
    }

    pub(super) fn text(&self) -> String {
        let left_out = match self.left_out.len() {
            0 => String::new(),
            count => format!(", {count} left out because they find worse"),
        };
        let mut text = format!(
            "{}: {} written, {} kept, {} not to be had{left_out}\n",
            counted(self.tools, "tool"),
            self.written,
            self.kept,
            self.refused.len()
        );
        if let Some((before, after)) = &self.measured {
            text.push_str(&format!("\n{}", measures(before, after)));
            if self.chose {
                text.push_str("The same queries chose what was kept: others will gain less.\n");
            }
        }
        text.push_str(&format!("\nRegister with: {}\n", self.command()));
        text
    }

    /// Returns the command that registers the files.
    fn command(&self) -> String {
        match (self.paths.as_slice(), self.out.as_slice()) {
            ([path], [out]) if path.is_file() => register(&path.to_string_lossy(), out),
            (_, [out]) => register("FILE", out),
            (_, out) => {
                let folder = out.first().and_then(|path| path.parent()).unwrap_or(Path::new("."));
                register("SERVER.json", &folder.join("SERVER.json"))
            }
        }
    }

    pub(super) fn as_json(&self) -> Value {
        let refused =
            self.refused.iter().map(|(tool, why)| json!({ "tool": tool, "problem": why }));
        json!({
            "tools": self.tools,
            "written": self.written,
            "kept": self.kept,
            "refused": refused.collect::<Vec<_>>(),
            "left_out": self.left_out,
            "before": self.measured.as_ref().map(|(before, _)| metrics(before)),
            "after": self.measured.as_ref().map(|(_, after)| metrics(after)),
            "settings": self.out.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        })
    }
}

fn register(path: &str, settings: &Path) -> String {
    format!("toolgate register {path} --settings {}", settings.display())
}

fn measures(before: &Measured, after: &Measured) -> String {
    let columns = [
        Column::Left("SUMMARIES"),
        Column::Right("RECALL@1"),
        Column::Right("@3"),
        Column::Right("@5"),
        Column::Right("@10"),
        Column::Right("@20"),
        Column::Right("NDCG@10"),
    ];
    let row = |name: &str, measured: &Measured| {
        let values = measured.means.iter().map(|(_, mean)| format!("{:.3}", mean.value));
        std::iter::once(name.to_owned()).chain(values).collect()
    };
    render(&columns, [row("before", before), row("after", after)])
}

fn metrics(measured: &Measured) -> Value {
    let named = measured.means.iter().map(|(measure, mean)| (measure.name(), json!(mean.value)));
    named.collect::<Map<_, _>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_lab::eval::bootstrap::Estimate;
    use toolgate_lab::summarize::measure::MEASURES;

    fn example() -> Report {
        let metrics = |value| Measured {
            queries: 3,
            means: MEASURES.map(|measure| (measure, Estimate { value, interval: None })).into(),
        };
        Report {
            tools: 4,
            kept: 1,
            written: 2,
            refused: vec![("s/t".into(), "it is empty".into())],
            left_out: ["s/u".to_owned()].into(),
            measured: Some((metrics(0.5), metrics(0.75))),
            chose: true,
            paths: vec!["servers".into()],
            out: vec!["out/a.json".into(), "out/b.json".into()],
        }
    }

    #[test]
    fn the_measures_stand_before_and_after() {
        let wanted = "\
4 tools: 2 written, 1 kept, 1 not to be had, 1 left out because they find worse

SUMMARIES  RECALL@1     @3     @5    @10    @20  NDCG@10
before        0.500  0.500  0.500  0.500  0.500    0.500
after         0.750  0.750  0.750  0.750  0.750    0.750
The same queries chose what was kept: others will gain less.

Register with: toolgate register SERVER.json --settings out/SERVER.json
";
        assert_eq!(example().text(), wanted);
    }

    #[test]
    fn machines_get_everything() {
        let json = example().as_json();
        assert_eq!(json["refused"][0]["problem"], "it is empty");
        assert_eq!(
            (&json["before"]["recall@1"], &json["after"]["ndcg@10"]),
            (&json!(0.5), &json!(0.75))
        );
        assert_eq!(json["left_out"], json!(["s/u"]));
    }
}
