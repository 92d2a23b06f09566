//! Plain tables without borders, one line per row, for reading and for pipes.

use comfy_table::{CellAlignment, Table, presets};

/// Header and alignment of a column.
#[derive(Debug, Clone, Copy)]
pub(super) enum Column {
    /// Left-aligned, for words.
    Left(&'static str),
    /// Right-aligned, for numbers.
    Right(&'static str),
}

/// Formats the rows under their headers, with a line break at the end.
pub(super) fn render(columns: &[Column], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(columns.iter().map(|column| match column {
        Column::Left(name) | Column::Right(name) => *name,
    }));
    for (index, column) in columns.iter().enumerate() {
        let Some(shown) = table.column_mut(index) else {
            continue;
        };
        shown.set_padding((0, 2));
        if matches!(column, Column::Right(_)) {
            shown.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.add_rows(rows);
    let mut text = table.trim_fmt();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let columns = [Column::Left("TOOL"), Column::Right("TOKENS")];
        let rows = [["git_status", "9"], ["x", "1,234"]];
        let text = render(&columns, rows.map(|row| row.map(str::to_owned).to_vec()));
        assert_eq!(text, "TOOL        TOKENS\ngit_status       9\nx            1,234\n");
    }
}
