//! Complete runs with TF-IDF as the encoder, whose figures are the same on every CPU.

use std::path::Path;
use std::sync::LazyLock;

use super::report::{Cell, Figure, Kind, Origin};
use super::*;
use crate::eval::{catalog_file, query_file};

static REPORT: LazyLock<Report> = LazyLock::new(|| run(paper::SEED, 1, Some(shipped())));

/// Report of another seed and the two after it.
static OF_SEEDS: LazyLock<Report> = LazyLock::new(|| run(7, 3, None));

/// Row whose figures are those of the first one.
const UNCHECKED: &str = "no check of calls";

fn run(seed: u64, seeds: usize, catalog: Option<Labelled>) -> Report {
    let bed = Testbed::new(42, 240).expect("a testbed");
    let encoder = TfIdf::of(summaries(&bed.catalog));
    let bench = Bench { seed, tasks: TASKS_MIN, seeds, catalog, packs: None };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let sides = Sides { passages: &encoder, queries: &encoder };
    runtime.block_on(bench.run(sides, &|_, _| {})).expect("a report")
}

fn shipped() -> Labelled {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    Labelled {
        servers: catalog_file::read(&folder.join("servers")).expect("the shipped catalogs"),
        queries: query_file::read(&folder.join("intents/tax.jsonl")).expect("their intents"),
    }
}

fn table(id: &str) -> &'static Table {
    REPORT.tables.iter().find(|table| table.id == id).expect("a table")
}

fn row(id: &str, name: &str) -> &'static [Cell] {
    let row = table(id).rows.iter().find(|row| row[0] == Cell::name(name));
    row.expect("a row")
}

fn count(cell: &Cell) -> f64 {
    match cell.figure() {
        Some(Figure::Count(number) | Figure::Mean(number) | Figure::Share(number)) => *number,
        other => panic!("{other:?} is no count"),
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    // The real catalog's table is left out: it takes as long as all others, which are made by the same code.
    let mut again = run(paper::SEED, 1, None);
    let mut first = REPORT.clone();
    first.tables.retain(|table| table.id != "catalog");
    again.warnings.clone_from(&first.warnings);
    assert_eq!(again.to_markdown(), first.to_markdown());
    assert_eq!(again.to_json(), first.to_json());
}

#[test]
fn the_papers_five_methods_stand_beside_its_figures() {
    let full = row("methods", "full schemas");
    let published = Figure::count(47_312).published();
    assert_eq!((&full[3], &full[4]), (&Figure::count(48_600).measured(), &published));
    let retrieved = row("methods", "simple retrieval, top 10");
    assert!((count(&retrieved[10]) - 10.0).abs() < 1e-9, "{retrieved:?}");
    let pruned = row("methods", "static pruning to 30");
    assert!((count(&pruned[10]) - 30.0).abs() < 1e-9, "{pruned:?}");
    let published = [47_312, 11_865, 4_082, 480, 2_368];
    for (measured, paper) in table("methods").rows.iter().zip(published) {
        assert_eq!(measured[4], Figure::count(paper).published());
        let parts = count(&measured[1]) + count(&measured[2]);
        assert!((parts - count(&measured[3])).abs() < 1e-6, "{measured:?}");
    }
    let named: Vec<_> = table("methods").why.iter().map(|(row, _)| row.as_str()).collect();
    assert!(paper::MAIN.iter().all(|row| named.contains(&row.name)), "{named:?}");
}

#[test]
fn what_is_sent_by_default_lists_names_within_its_tokens_and_is_cheaper_than_the_pool() {
    for id in ["methods", "catalog"] {
        let table = table(id);
        let column =
            |name: &str| table.columns.iter().position(|column| *column == name).expect("a column");
        let figure = |method: &str, name: &str| count(&row(id, method)[column(name)]);
        let as_sent = |name: &str| figure(comparison::AS_SENT, name);
        let with_pool = |name: &str| figure("Toolgate with the summary pool", name);
        assert!(as_sent("price") < with_pool("price"), "{id}: {}", as_sent("price"));
        assert!(as_sent("price") < figure("full schemas", "price"), "{id}");
        assert!(as_sent("standing") > 100.0 && as_sent("on demand") > 100.0, "{id}");
        assert!(as_sent("tools") >= 1.0, "{id}");
    }
    // The search with 400 tokens of names, and at most the first turn's definitions.
    let rows = &table("scaling").rows;
    let tokens = rows.iter().map(|row| count(&row[8]));
    assert!(tokens.clone().all(|tokens| tokens < 20_000.0), "{:?}", tokens.collect::<Vec<_>>());
}

#[test]
fn ablations_change_what_they_say() {
    let phase_2 = |name: &str| count(&row("ablations", name)[2]);
    let tools = |name: &str| count(&row("ablations", name)[4]);
    assert!(tools("k = 5") <= 5.0 && tools("k = 20") <= 20.0);
    assert!(phase_2("k = 5") < phase_2("Tool Attention"));
    assert!(phase_2("threshold .40") < phase_2("threshold .20"));
    assert!(phase_2("threshold .20") <= phase_2("threshold .15"));
    assert!(phase_2("phase 1 only, k = 0 (the paper's is phase 1)") < 0.5);
    let whole = row("ablations", "Tool Attention");
    let eager = row("ablations", "no lazy loading: summaries and all definitions");
    let all = [
        Figure::count(48_600).measured(),
        Cell::NONE,
        Figure::Mean(120.0).measured(),
        Figure::Share(1.0).measured(),
    ];
    assert_eq!((&eager[1], &eager[2..]), (&whole[1], &all[..]));
}

/// Origins of the figures, by table and column. A row may lack a figure.
fn origins(table: &str) -> Vec<Origin> {
    use Origin::{Fitted, Measured, Priced, Projected, Published};
    let [m, f] = [Measured, Fitted];
    match table {
        "methods" => vec![m, m, m, Published, m, Published, f, Published, Priced, m, m],
        "ablations" => vec![m, m, Published, m, m],
        "call_check" => vec![m; 3],
        "scaling" => vec![m, f, m, f, f, Published, m, m, f, m],
        "poisoned" => vec![m, Published, m, m, m, m, m, m],
        "exposure" => vec![m; 4],
        "catalog" => vec![m, m, m, m, f, Priced, m, m],
        "seeds" => vec![m, m, Priced, Priced, f, f, m, m],
        "projections" => vec![Projected; 5],
        other => panic!("{other}: say where its figures come from"),
    }
}

#[test]
fn each_cell_says_whether_it_is_measured_fitted_copied_or_published() {
    for report in [&*REPORT, &*OF_SEEDS] {
        let json = report.to_json();
        for (place, table) in report.tables.iter().enumerate() {
            let wanted = origins(table.id);
            for (row, cells) in table.rows.iter().enumerate() {
                let is_copy = table.id == "ablations" && cells[0] == Cell::name(UNCHECKED);
                assert_eq!(cells.len(), wanted.len() + 1, "{}", table.id);
                assert_eq!(cells[0].origin(), Origin::None);
                for (column, (cell, wanted)) in (1..).zip(cells[1..].iter().zip(&wanted)) {
                    let wanted = match wanted {
                        _ if *cell == Cell::NONE => Origin::None,
                        Origin::Measured if is_copy => Origin::Copied,
                        wanted => *wanted,
                    };
                    let heading = table.columns[column];
                    assert_eq!(cell.origin(), wanted, "{}: {}: {heading}", table.id, cells[0]);
                    let told = &json["tables"][place]["origins"][row][column];
                    assert_eq!(*told, serde_json::to_value(wanted).expect("a word"));
                }
            }
        }
    }
    let whole = row("ablations", "Tool Attention");
    let unchecked = row("ablations", UNCHECKED);
    for (copy, own) in unchecked[1..].iter().zip(&whole[1..]) {
        assert_eq!(copy.figure(), own.figure(), "a copy is that of the first row");
    }
    let mpnet = row("ablations", "MPNet instead of MiniLM");
    let published = Figure::count(2_371).published();
    assert_eq!((&mpnet[2], &mpnet[3], &mpnet[5]), (&Cell::NONE, &published, &Cell::NONE));
    let reasons = &table("ablations").why;
    assert!(
        reasons.iter().any(|(row, why)| row.starts_with("MPNet") && why.contains("not loaded"))
    );
}

/// Compares the reports of two seeds: a figure that is written down instead of measured is the same in both.
#[test]
fn measured_figures_move_with_the_seed_and_published_ones_stay() {
    let is_measured = |cell: &Cell| {
        matches!(cell.origin(), Origin::Measured | Origin::Priced | Origin::Fitted | Origin::Copied)
    };
    for id in ["methods", "ablations", "call_check"] {
        let other = OF_SEEDS.tables.iter().find(|table| table.id == id).expect("a table");
        let rows: Vec<_> = table(id).rows.iter().zip(&other.rows).collect();
        for column in 1..table(id).columns.len() {
            let heading = table(id).columns[column];
            let cells = rows.iter().map(|(one, other)| (&one[column], &other[column]));
            let cells: Vec<_> = cells.filter(|(one, _)| **one != Cell::NONE).collect();
            let moves = cells.iter().any(|(one, other)| one != other);
            // The pool has a summary of each tool, and the testbed's tools are the same for every seed.
            if is_measured(cells[0].0) && (id, heading) != ("ablations", "phase 1") {
                assert!(moves, "{id}: {heading} is the same for both seeds");
            } else {
                assert!(!moves, "{id}: {heading}: {cells:?}");
            }
        }
    }
}

#[test]
fn what_was_not_sent_is_refused_and_what_was_sent_runs() {
    for name in ["to any tool that was not sent", "to the right tool, where it was not sent"] {
        let calls = row("call_check", name);
        assert_eq!(calls[1], calls[2], "{calls:?}");
    }
    let sent = row("call_check", "to the best tool that was sent");
    assert!(count(&sent[1]) > 10.0 && count(&sent[2]) < 0.5, "{sent:?}");
}

#[test]
fn poisoned_tools_are_counted_by_family_and_a_policy_keeps_all_out() {
    let Some(Figure::Of(kept_out, 60)) = row("poisoned", "all")[3].figure() else {
        panic!("sixty of them")
    };
    assert!(*kept_out < 60, "crafted descriptions get in, or the test is none");
    assert_eq!(row("poisoned", "all")[4], Figure::Of(60, 60).measured());
    assert_eq!(row("poisoned", "all")[7], Figure::Of(60, 60).measured());
    assert_eq!(row("poisoned", "all but the crafted")[2], Figure::Of(46, 50).published());
    let locked = row("exposure", "Toolgate's defaults, under the policy");
    assert!(count(&locked[2]) < 0.5, "{locked:?}");
}

#[test]
fn larger_catalogs_cost_more_and_phase_2_does_not() {
    let rows = &table("scaling").rows;
    assert_eq!(rows.len(), scaling::SIZES.len());
    for pair in rows.windows(2) {
        assert!(count(&pair[0][1]) < count(&pair[1][1]), "{pair:?}");
        assert!(count(&pair[0][4]) > count(&pair[1][4]), "{pair:?}");
    }
    assert!(rows.iter().all(|row| count(&row[5]) > 0.7), "{rows:?}");
}

#[test]
fn only_what_the_paper_projects_is_a_projection() {
    let of = |kind| REPORT.tables.iter().filter(move |table| table.kind == kind);
    assert_eq!(of(Kind::Projection).map(|table| table.id).collect::<Vec<_>>(), ["projections"]);
    assert!(REPORT.to_markdown().contains("\n## Projection: "));
    for table in of(Kind::Measured) {
        let is_projected = |cell: &Cell| cell.origin() == Origin::Projected;
        assert!(!table.rows.iter().flatten().any(is_projected), "{}", table.id);
        assert!(!table.columns.iter().any(|name| name.contains("US$")), "{}", table.id);
    }
}

/// Compares only the columns, the rows and the projected figures, because measured figures differ between CPUs.
#[test]
fn the_page_in_the_docs_is_this_benchmarks() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tax.md");
    let page = std::fs::read_to_string(path).expect("docs/tax.md");
    let shape = |text: &str| -> Vec<String> {
        let first = |line: &str| line.split(" | ").next().unwrap_or_default().to_owned();
        // The page has three seeds, and this report one.
        let of_seeds = ["| prompts, method", "| one tool a turn:", "| several tools in a prompt:"];
        let rows = text.lines().filter(|line| line.starts_with("| "));
        let rows = rows.filter(|line| !of_seeds.iter().any(|start| line.starts_with(start)));
        rows.map(first).collect()
    };
    assert_eq!(shape(&page), shape(&REPORT.to_markdown()), "run `make docs-tax`");
    for table in &REPORT.tables {
        let columns = format!("| {} |", table.columns.join(" | "));
        assert!(page.contains(&columns), "{}: run `make docs-tax`", table.id);
    }
    let projections = REPORT.to_markdown();
    let projections = projections.split("\n## ").last().expect("the last table");
    assert!(page.ends_with(projections), "run `make docs-tax`");
}

#[test]
fn three_seeds_have_intervals_for_both_kinds_of_prompts() {
    let seeds = OF_SEEDS.tables.iter().find(|table| table.id == "seeds").expect("a table");
    assert_eq!((seeds.rows.len(), seeds.title.as_str()), (16, "3 seeds, with 95% intervals"));
    let row = |name: &str| {
        let row = seeds.rows.iter().find(|row| row[0] == Cell::name(name));
        row.expect("a row")
    };
    let full = row("one tool a turn: full schemas");
    assert_eq!(full[1..3], [48_600, 0].map(|tokens| Figure::count(tokens).measured()));
    for kind in ["one tool a turn", "several tools in a prompt"] {
        let routed = row(&format!("{kind}: Tool Attention"));
        assert!(count(&routed[1]) < count(&full[1]) && count(&routed[2]) > 0.0, "{routed:?}");
    }
    let several = row(&format!("several tools in a prompt: {}", comparison::AS_SENT));
    assert!(
        matches!(several[7].figure(), Some(Figure::Percent(found)) if *found > 0.5),
        "{several:?}"
    );
    for method in table("methods").rows.iter().map(|row| &row[0]) {
        for kind in ["one tool a turn", "several tools in a prompt"] {
            assert!(count(&row(&format!("{kind}: {method}"))[2]) >= 0.0, "each has an interval");
        }
    }
    assert!(REPORT.tables.iter().all(|table| table.id != "seeds"), "one seed has no interval");
}

#[test]
fn labels_that_name_nothing_are_told_and_count_as_missed() {
    let mut labelled = shipped();
    labelled.queries.truncate(1);
    labelled.queries[0].relevant = ["git/gone".to_owned()].into();
    let mut warnings = Vec::new();
    let (_, tasks) = labelled.check(&mut warnings);
    assert_eq!(warnings, ["git/gone: no such tool; it counts as missed"]);
    assert_eq!(tasks[0][0].needs, ["git/gone"]);
}
