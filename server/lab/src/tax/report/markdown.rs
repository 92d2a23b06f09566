//! The report as a Markdown document. It contains no times, so the same figures give the same bytes.

use std::fmt::Write as _;

use super::{Report, Table};

const TITLE: &str = "# The tools tax, measured\n";

/// Maximum number of characters in a line.
const WIDTH: usize = 120;

/// Returns the whole document.
pub(super) fn render(report: &Report) -> String {
    let mut text = String::from(TITLE);
    let intro = format!(
        "What tools cost in prompts, by `toolgate bench tax` ({} tasks, seed {}); `make docs-tax` writes this page \
         anew. The testbed and the methods are those of A. Sadani, \"Tool Attention Is All You Need\" (2026); its \
         figures stand beside ours in the columns headed `paper`, and each difference has its reason. All else is measured, but for \
         *rho*, whose task is fitted to the paper's figures, for prices, which are measured tokens at a provider's rates, and \
         for what is marked as copied; `--json` has the unrounded figures, each with its origin. Tokens are \
         cl100k_base and counted on the text that is sent. The encoder's last digits depend on the instructions \
         of the CPU, so that another machine may differ in a few choices.",
        report.tasks, report.seed
    );
    let _ = write!(text, "\n{}\n", wrapped(&intro, ""));
    for one in &report.tables {
        let _ = write!(text, "\n{}", of_table(one));
    }
    text
}

/// Returns one table, with its heading and its paragraph.
pub(super) fn of_table(table: &Table) -> String {
    let mut text = format!("## {}\n", table.heading());
    if !table.says.is_empty() {
        let _ = write!(text, "\n{}\n", wrapped(&table.says, ""));
    }
    let _ = write!(text, "\n| {} |\n|---|", table.columns.join(" | "));
    text.push_str(&"---:|".repeat(table.columns.len().saturating_sub(1)));
    text.push('\n');
    for row in &table.rows {
        let cells: Vec<_> = row.iter().map(|cell| escaped(&cell.to_string())).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    if !table.why.is_empty() {
        text.push_str("\nWhy it differs:\n\n");
        for (row, reason) in &table.why {
            let item = format!("- **{}**: {reason}", escaped(row));
            let _ = writeln!(text, "{}", wrapped(&item, "  "));
        }
    }
    text
}

/// Wraps the text at [`WIDTH`] characters, and starts all lines but the first with `indent`.
fn wrapped(text: &str, indent: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(format!("{indent}{word}"));
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.join("\n")
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::{WIDTH, wrapped};
    use crate::tax::report::{Figure, Kind, Report, Table};

    #[test]
    fn tables_become_markdown_and_projections_are_called_so() {
        let mut table = Table::new("x", "Success", &["method", "per cent"]).saying("A guess.");
        table.kind = Kind::Projection;
        table.push("a|b", [Figure::Mean(72.0).projected()]);
        table.because("a|b", "nobody ran it");
        let report = Report {
            seed: 42,
            tasks: 3,
            encoder: "e".into(),
            tables: vec![table],
            warnings: vec![],
        };
        let text = report.to_markdown();
        let wanted = "\n## Projection: Success\n\nA guess.\n\n| method | per cent |\n|---|---:|\n\
                      | a\\|b | 72.0 |\n\nWhy it differs:\n\n- **a\\|b**: nobody ran it\n";
        assert!(text.ends_with(wanted), "{text}");
        assert_eq!(report.to_json()["tables"][0]["kind"], "projection");
    }

    #[test]
    fn long_paragraphs_are_wrapped() {
        let text = wrapped(&"word ".repeat(60), "  ");
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert_eq!(text.split_whitespace().count(), 60);
        assert!(text.lines().skip(1).all(|line| line.starts_with("  word")), "{text}");
    }
}
