//! Figures that the paper only projects, in tables labelled as such. They are not measured, and no figures of ours are
//! next to them, because measuring them needs live agents.

use super::paper::MAIN;
use super::report::{Figure, Kind, Table};

/// Returns the projected columns of the main results.
pub(super) fn table() -> Table {
    let columns =
        ["method", "success, %", "P50, s", "P95, s", "US$ a task", "judged quality, 1 to 5"];
    let mut table =
        Table::new("projections", "what the paper derives from its token counts", &columns)
            .saying(SAYS);
    table.kind = Kind::Projection;
    for row in MAIN {
        let [success, p50, p95, cost, quality] = row.projected;
        let cells = [
            Figure::Mean(success),
            Figure::Mean(p50),
            Figure::Mean(p95),
            Figure::Share(cost),
            Figure::Share(quality),
        ];
        table.push(row.name, cells.map(Figure::projected));
    }
    table
}

const SAYS: &str = "\
The paper computes these from its token counts, published prices and published curves; it ran no agents, and neither does this \
benchmark. They are here so that nobody takes them for results. The same holds for its ablations' success rates, \
for its claim that attacks succeed in 6% instead of 38% of cases, and for its cache-hit rate of 84%, which \
`toolgate eval --conversation` measures for Toolgate ([figures](conversations.md)).";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projections_are_labelled_and_have_no_figure_of_ours() {
        let table = table();
        assert_eq!((table.kind, table.rows.len()), (Kind::Projection, MAIN.len()));
        assert!(table.heading().starts_with("Projection: "), "{}", table.heading());
        assert!(table.says.contains("ran no agents"));
    }
}
