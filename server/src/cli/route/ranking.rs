//! The ranking of tools, as text.

use toolgate_client::v1;

use super::report::found_by;
use crate::cli::output::{GOOD, STRONG};
use crate::cli::table::{Column, render};

/// Formats each candidate with the parts of its score.
pub(super) fn table(ranking: &v1::Ranking) -> String {
    let columns = [
        Column::Left("RANKED"),
        Column::Right("SCORE"),
        Column::Right("OVERLAP"),
        Column::Right("WORDS"),
        Column::Right("WHOLE"),
        Column::Right("CLAUSE"),
        Column::Right("MEMORY"),
        Column::Right("LAST CALL"),
        Column::Left("FOUND BY"),
        Column::Left(""),
    ];
    let rows = ranking.candidates.iter().map(|one| {
        let number = |value: f32| format!("{value:.3}");
        let reserved = if one.reserved { " (reserved)" } else { "" };
        let chosen =
            if one.chosen { format!("{GOOD}chosen{GOOD:#}{reserved}") } else { String::new() };
        vec![
            one.model_name.clone(),
            number(one.score),
            number(one.overlap),
            number(one.words),
            number(one.whole),
            number(one.clause),
            number(one.memory),
            number(one.last_called),
            found_by(one.found_by()).to_owned(),
            chosen,
        ]
    });
    let level = if ranking.abstain_below <= -1.0 {
        "nothing is asked of the best overlap".to_owned()
    } else {
        format!("no tool fits below an overlap of {:.3}", ranking.abstain_below)
    };
    format!("\n{STRONG}Ranked{STRONG:#} ({level}):\n{}", render(&columns, rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_a_score_is_shown() {
        let candidate = v1::RankedTool {
            model_name: "mcp__git__git_log".into(),
            score: 0.75,
            overlap: 0.5,
            words: 1.0,
            whole: 0.7,
            clause: 0.8,
            memory: 0.9,
            last_called: 0.1,
            found_by: v1::FoundBy::Overlap.into(),
            chosen: true,
            reserved: true,
        };
        let ranking = v1::Ranking { abstain_below: 0.31, candidates: vec![candidate] };
        let text = anstream::adapter::strip_str(&table(&ranking)).to_string();
        assert!(text.contains("no tool fits below an overlap of 0.310"), "{text}");
        let row = text.lines().last().expect("a row");
        let cells: Vec<_> = row.split_whitespace().collect();
        let numbers = ["0.750", "0.500", "1.000", "0.700", "0.800", "0.900", "0.100"];
        let wanted: Vec<_> = ["mcp__git__git_log"]
            .into_iter()
            .chain(numbers)
            .chain(["overlap", "chosen", "(reserved)"])
            .collect();
        assert_eq!(cells, wanted);
        let open = v1::Ranking { abstain_below: -1.0, ..ranking };
        assert!(table(&open).contains("nothing is asked"));
    }
}
