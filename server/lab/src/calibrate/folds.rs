//! Cross-validation: scores of rules on queries that they were not fitted to.

use super::cases::Case;
use super::rule::{Rule, Scores, Tally};

/// Number of parts of the queries, each held out once.
const FOLDS: usize = 5;

/// Returns the cross-validated scores of `find`. It fits a rule without a fifth of the queries, the rule is scored on
/// that fifth, and this is repeated for each fifth. Queries go to the fifths in turn. Those that need tools are dealt
/// separately from those that need none.
pub(super) fn held_out(cases: &[Case], top_k: usize, find: &dyn Fn(&[&Case]) -> Rule) -> Scores {
    let mut tally = Tally::default();
    for fold in 0..FOLDS {
        let (held, others) = parted(cases, fold);
        let rule = find(&others);
        held.into_iter().for_each(|case| tally.count(&rule, case, top_k));
    }
    tally.scores()
}

fn parted(cases: &[Case], fold: usize) -> (Vec<&Case>, Vec<&Case>) {
    let mut seen = [0_usize; 2];
    cases.iter().partition(|case| {
        let place = &mut seen[usize::from(case.needs_tools())];
        *place += 1;
        (*place - 1) % FOLDS == fold
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::samples::case;

    #[test]
    fn each_query_is_held_out_once() {
        let cases: Vec<Case> = (0..23).map(|i| case(Vec::new(), usize::from(i % 3 == 0))).collect();
        let mut held = 0;
        for fold in 0..FOLDS {
            let (out, others) = parted(&cases, fold);
            assert_eq!(out.len() + others.len(), cases.len());
            assert!(out.iter().any(|case| case.needs_tools()), "fold {fold}");
            assert!(out.iter().any(|case| !case.needs_tools()), "fold {fold}");
            held += out.len();
        }
        assert_eq!(held, cases.len());
    }

    #[test]
    fn what_is_held_out_takes_no_part_in_the_finding() {
        let cases: Vec<Case> = (0..10).map(|_| case(Vec::new(), 1)).collect();
        let find = |others: &[&Case]| {
            assert_eq!(others.len(), 8);
            Rule::Threshold(0.5)
        };
        assert_eq!(held_out(&cases, 10, &find).false_rejects, 1.0);
    }
}
