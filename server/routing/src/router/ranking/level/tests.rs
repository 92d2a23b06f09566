//! Tests of the level below which no tool fits.

use super::*;
use crate::test_catalog::{TestCatalog, tool};

fn level(text: &str, options: &Options, background: &[Vec<f32>]) -> Level {
    let tools = [tool("s", "a"), tool("s", "b")];
    let catalog = TestCatalog { tools: &tools, overlaps: &[1.0, 0.0], ..TestCatalog::default() };
    let intents = [Intent::undivided(text.to_owned(), 1.0)];
    Level::of(&catalog.snapshot(), &intents, options, background, None)
}

/// Returns requests whose nearest tool is at this overlap.
fn background(overlap: f32) -> Vec<Vec<f32>> {
    vec![vec![overlap, -(1.0 - overlap * overlap).sqrt()]; 3]
}

fn is(level: Level, wanted: f32) {
    assert!((level.0 - wanted).abs() < 0.01, "{level:?}, not {wanted}");
}

#[test]
fn a_level_is_the_threshold_moved_to_where_chance_puts_the_nearest_tool() {
    let options = Options { threshold: 0.3, ..Options::default() };
    is(level("list", &options, &[]), 0.3);
    is(level("list", &options, &background(0.5)), 0.5);
    is(level("list", &options, &background(0.2)), 0.2);
}

#[test]
fn chance_counts_only_the_allowed_tools() {
    let tools = [tool("s", "a"), tool("s", "b")];
    let catalog = TestCatalog { tools: &tools, overlaps: &[1.0, 0.4], ..TestCatalog::default() };
    let snapshot = catalog.snapshot();
    let intents = [Intent::undivided("list".to_owned(), 1.0)];
    let options = Options::default();
    let requests = vec![vec![1.0, 0.0]; 3];
    let of =
        |slots: Option<&FixedBitSet>| Level::of(&snapshot, &intents, &options, &requests, slots);
    is(of(None), 1.0);
    let only_b: FixedBitSet = [1].into_iter().collect();
    is(of(Some(&only_b)), 0.4);
}

#[test]
fn the_policys_level_is_not_moved() {
    let options = Options { abstain_below: Some(0.1), ..Options::default() };
    is(level("list", &options, &background(0.5)), 0.1);
}

#[test]
fn no_level_applies_to_a_threshold_for_each_tool_or_to_foreign_letters() {
    let each = Options { ratio: None, abstain_below: Some(0.5), ..Options::default() };
    assert_eq!(level("list", &each, &[]), Level::NONE);
    let options = Options { abstain_below: Some(0.5), ..Options::default() };
    for text in ["Öffne die Datei", "打开文件"] {
        assert_eq!(level(text, &options, &[]), Level::NONE, "{text}");
    }
    is(level("list 50€ – now", &options, &[]), 0.5);
    let intents = ["list", "Öffne"].map(|text| Intent::undivided(text.to_owned(), 1.0));
    assert!(!Level::is_asked_of(&intents), "one of the intents is enough");
}

#[test]
fn a_level_is_reached_exactly_and_no_level_by_everything() {
    assert!(Level(0.5).is_reached_by(0.5) && !Level(0.5).is_reached_by(0.49));
    assert!(Level::NONE.is_reached_by(-1.0));
}
