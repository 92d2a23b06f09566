//! An evaluation as Markdown: the tables of the terminal report under headings, with plots.

use std::fmt::Write as _;

use super::report::{costs, headline};
use super::sections::{Section, curve, sections};
use crate::cli::table::Column;
use toolgate_lab::eval::Report;

/// Formats the report. `plots` are the names and link targets of the plots.
pub(super) fn markdown(report: &Report, plots: &[(String, String)]) -> String {
    let mut text = format!("# Evaluation\n\n{}.\n", headline(report));
    if report.metrics.is_none() {
        text.push_str("\nNo query has labels, so that nothing could be measured.\n");
    }
    for section in sections(report).into_iter().chain(curve(report)) {
        let _ = write!(text, "\n## {}\n\n", cell(&section.title));
        if !section.words.is_empty() {
            let _ = write!(text, "{}\n\n", section.words);
        }
        text.push_str(&table(&section));
    }
    for (name, place) in plots {
        let _ = write!(text, "\n![{name}](<{place}>)\n");
    }
    let _ = write!(text, "\n## Costs\n\n{}", costs(report));
    text
}

fn table(section: &Section) -> String {
    let row = |cells: &mut dyn Iterator<Item = String>| {
        format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    let header = |column: &Column| match column {
        Column::Left(name) | Column::Right(name) => name.to_lowercase(),
    };
    let rule = |column: &Column| match column {
        Column::Left(_) => "---".to_owned(),
        Column::Right(_) => "---:".to_owned(),
    };
    let mut text = row(&mut section.columns.iter().map(header));
    text.push_str(&row(&mut section.columns.iter().map(rule)));
    for cells in &section.rows {
        text.push_str(&row(&mut cells.iter().map(|words| cell(words))));
    }
    text
}

/// Escapes text for a table cell, because kinds and names come from files and may hold markup.
fn cell(words: &str) -> String {
    let mut cell = String::with_capacity(words.len());
    for letter in words.chars() {
        match letter {
            '|' | '<' | '>' | '`' | '*' | '_' | '[' | ']' | '\\' => cell.extend(['\\', letter]),
            letter if letter.is_control() => cell.push(' '),
            letter => cell.push(letter),
        }
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::super::example::example;
    use super::*;

    #[test]
    fn every_section_has_a_heading_and_a_table() {
        let mut report = example();
        report.kinds[0].name = "a|b\n<c>".to_owned();
        let plots = [("recall".to_owned(), "plots/recall.svg".to_owned())];
        let text = markdown(&report, &plots);
        let headings: Vec<_> = text.lines().filter(|line| line.starts_with('#')).collect();
        let wanted = [
            "# Evaluation",
            "## Ranking",
            "## Active set",
            "## Abstention",
            "## Fit",
            "## Failures",
            "## Compared with plain",
            "## By kind",
            "## Thresholds",
            "## Costs",
        ];
        assert_eq!(headings, wanted);
        assert!(text.contains("| summaries | recall@1 | @3 |"), "{text}");
        assert!(text.contains("| --- | ---: | ---: |"), "{text}");
        assert!(text.contains("| toolgate | 0.250 | 0.500 | 0.750 |"), "{text}");
        assert!(text.contains("| a\\|b \\<c\\> | 2 |"), "{text}");
        assert!(text.contains("![recall](<plots/recall.svg>)"), "{text}");
        let columns = |line: &str| line.matches(" |").count();
        let tables = text.lines().filter(|line| line.starts_with('|')).collect::<Vec<_>>();
        assert!(
            tables.windows(2).all(|pair| {
                !pair[1].starts_with("| ---") || columns(pair[0]) == columns(pair[1])
            })
        );
    }

    #[test]
    fn what_was_not_measured_has_no_section() {
        let report = Report { metrics: None, no_tool: None, ..example() };
        let text = markdown(&report, &[]);
        assert!(text.contains("No query has labels") && !text.contains("## Ranking"), "{text}");
    }
}
