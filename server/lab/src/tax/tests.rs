//! Complete runs with TF-IDF as the encoder, whose figures are the same on every CPU.

use std::path::Path;
use std::sync::LazyLock;

use super::report::{Cell, Kind, Origin};
use super::*;
use crate::eval::{catalog_file, query_file};

static REPORT: LazyLock<Report> = LazyLock::new(run);

fn run() -> Report {
    run_with(1)
}

fn run_with(seeds: usize) -> Report {
    let bed = Testbed::new(42, 240).expect("a testbed");
    let encoder = TfIdf::of(summaries(&bed.catalog));
    let catalog = (seeds == 1).then(shipped);
    let bench = Bench { seed: paper::SEED, tasks: TASKS_MIN, seeds, catalog, packs: None };
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
    let row = table(id).rows.iter().find(|row| row[0] == Cell::Text(name.to_owned()));
    row.expect("a row")
}

fn count(cell: &Cell) -> f64 {
    match cell {
        Cell::Count(number) | Cell::Mean(number) | Cell::Share(number) => *number,
        other => panic!("{other:?} is no count"),
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let again = run();
    assert_eq!(again.to_markdown(), REPORT.to_markdown());
    assert_eq!(again.to_json(), REPORT.to_json());
}

#[test]
fn the_papers_five_methods_stand_beside_its_figures() {
    let full = row("methods", "full schemas");
    assert_eq!((&full[3], &full[4]), (&Cell::Count(48_600.0), &Cell::Count(47_312.0)));
    let retrieved = row("methods", "simple retrieval, top 10");
    assert!((count(&retrieved[10]) - 10.0).abs() < 1e-9, "{retrieved:?}");
    let pruned = row("methods", "static pruning to 30");
    assert!((count(&pruned[10]) - 30.0).abs() < 1e-9, "{pruned:?}");
    let published = [47_312, 11_865, 4_082, 480, 2_368];
    for (measured, paper) in table("methods").rows.iter().zip(published) {
        assert_eq!(measured[4], Cell::count(paper));
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
    assert_eq!(row("ablations", "no check of calls")[2], Cell::Copied(Box::new(whole[2].clone())));
    let eager = row("ablations", "no lazy loading: summaries and all definitions");
    let all = [Cell::Count(48_600.0), Cell::None, Cell::Mean(120.0), Cell::Share(1.0)];
    assert_eq!((&eager[1], &eager[2..]), (&whole[1], &all[..]));
}

#[test]
fn each_cell_says_whether_it_is_measured_fitted_copied_or_published() {
    let json = REPORT.to_json();
    for (place, table) in REPORT.tables.iter().enumerate() {
        let origins = &json["tables"][place]["origins"];
        for (row, cells) in table.rows.iter().enumerate() {
            assert_eq!(origins[row].as_array().map(Vec::len), Some(cells.len()), "{}", table.id);
            for (column, cell) in cells.iter().enumerate() {
                let origin = table.origin(row, column);
                let heading = table.columns[column];
                let has_none = column == 0 || *cell == Cell::None;
                assert_eq!(origin == Origin::None, has_none, "{}: {cell:?}", table.id);
                let is_papers = matches!(origin, Origin::Published | Origin::Projected);
                let is_headed = heading == "paper" || table.kind == Kind::Projection;
                assert!(has_none || is_papers == is_headed, "{}: {heading}: {origin:?}", table.id);
                let is_fitted = origin == Origin::Fitted;
                assert!(
                    has_none || is_fitted == heading.contains("rho"),
                    "{}: {heading}",
                    table.id
                );
            }
        }
    }
    let mut copied = Vec::new();
    for table in &REPORT.tables {
        for (row, cells) in table.rows.iter().enumerate() {
            if (0..cells.len()).any(|column| table.origin(row, column) == Origin::Copied) {
                copied.push(cells[0].to_string());
            }
        }
    }
    assert_eq!(copied, ["no check of calls"]);
    let mpnet = row("ablations", "MPNet instead of MiniLM");
    assert_eq!((&mpnet[2], &mpnet[3], &mpnet[5]), (&Cell::None, &Cell::count(2_371), &Cell::None));
    let reasons = &table("ablations").why;
    assert!(
        reasons.iter().any(|(row, why)| row.starts_with("MPNet") && why.contains("not loaded"))
    );
}

#[test]
fn what_was_not_sent_is_refused_and_what_was_sent_runs() {
    for name in ["to any tool that was not sent", "to the right tool, where it was not sent"] {
        let calls = row("call_check", name);
        assert_eq!(calls[1], calls[3], "{calls:?}");
    }
    let sent = row("call_check", "to the best tool that was sent");
    assert!(count(&sent[1]) > 10.0 && count(&sent[3]) < 0.5, "{sent:?}");
}

#[test]
fn poisoned_tools_are_counted_by_family_and_a_policy_keeps_all_out() {
    let Cell::Of(kept_out, 60) = row("poisoned", "all")[3] else { panic!("sixty of them") };
    assert!(kept_out < 60, "crafted descriptions get in, or the test is none");
    assert_eq!(row("poisoned", "all")[4], Cell::Of(60, 60));
    assert_eq!(row("poisoned", "all")[7], Cell::Of(60, 60));
    assert_eq!(row("poisoned", "all but the crafted")[2], Cell::Of(46, 50));
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
    let report = run_with(3);
    let seeds = report.tables.iter().find(|table| table.id == "seeds").expect("a table");
    assert_eq!((seeds.rows.len(), seeds.title.as_str()), (16, "3 seeds, with 95% intervals"));
    let row = |name: &str| {
        let row = seeds.rows.iter().find(|row| row[0] == Cell::Text(name.to_owned()));
        row.expect("a row")
    };
    let full = row("one tool a turn: full schemas");
    assert_eq!(full[1..3], [Cell::Count(48_600.0), Cell::Count(0.0)]);
    for kind in ["one tool a turn", "several tools in a prompt"] {
        let routed = row(&format!("{kind}: Tool Attention"));
        assert!(count(&routed[1]) < count(&full[1]) && count(&routed[2]) > 0.0, "{routed:?}");
    }
    let several = row(&format!("several tools in a prompt: {}", comparison::AS_SENT));
    assert!(matches!(several[7], Cell::Percent(found) if found > 0.5), "{several:?}");
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
