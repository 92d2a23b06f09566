//! Totals over the turns of a benchmark: tokens per turn, rho, and whether the prompt contained the needed tools.

use super::paper::{self, RHO_TURN};
use crate::conversations::Places;

/// Tool part of one turn's prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sent {
    /// Tokens that every prompt of the conversation has.
    pub(super) standing: u64,
    /// Tokens that depend on the turn's text.
    pub(super) on_demand: u64,
    /// Number of tools whose definitions are in the prompt.
    pub(super) tools: usize,
    /// Number of needed tools that are in the prompt, and number of all needed tools.
    pub(super) found: (usize, usize),
    /// Places of these tokens in the turn's requests.
    pub(super) places: Places,
}

/// Sums over turns.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    turns: u64,
    standing: u64,
    on_demand: u64,
    price: f64,
    tools: usize,
    /// Sum of the found shares, and the number of turns that need any tool.
    found: (f64, u64),
    /// At [`RHO_TURN`]: sum of all tokens, sum of the phase 2 tokens, and number of prompts.
    late: (u64, u64, u64),
}

/// Means over turns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Measured {
    /// Number of turns.
    pub turns: u64,
    /// Mean tokens that every prompt has.
    pub standing: f64,
    /// Mean tokens that depend on the turn's text.
    pub on_demand: f64,
    /// Sum of the two.
    pub tokens: f64,
    /// Mean price of a turn's requests, messages included, in tokens of uncached input.
    pub price: f64,
    /// Mean number of definitions in a prompt.
    pub tools: f64,
    /// Share of the needed tools that were in the prompt, 0 to 1; 1 if no turn needs any.
    pub found: f64,
    /// Effective context utilisation at turn 30, or of the mean turn if no conversation is that long.
    pub rho: f64,
    /// Effective context utilisation without the standing tokens. The paper does not count phase 1 either.
    pub rho_on_demand: f64,
}

impl Tally {
    /// Adds the turn with this number, counted from 0, and the price of its requests.
    pub(super) fn add(&mut self, number: usize, sent: &Sent, price: f64) {
        self.turns += 1;
        self.price += price;
        self.standing += sent.standing;
        self.on_demand += sent.on_demand;
        self.tools += sent.tools;
        let (found, needed) = sent.found;
        if needed > 0 {
            self.found.0 += found as f64 / needed as f64;
            self.found.1 += 1;
        }
        if number + 1 == RHO_TURN {
            let (all, on_demand, turns) = self.late;
            let here = sent.standing + sent.on_demand;
            self.late = (all + here, on_demand + sent.on_demand, turns + 1);
        }
    }

    /// Returns the means.
    pub(super) fn measured(&self) -> Measured {
        let mean = |sum: u64, count: u64| sum as f64 / (count.max(1)) as f64;
        let standing = mean(self.standing, self.turns);
        let on_demand = mean(self.on_demand, self.turns);
        let (all, late_on_demand, late) = self.late;
        let at_30 = |sum: u64, overall: f64| if late > 0 { mean(sum, late) } else { overall };
        let rho = |tools: f64| paper::rho(paper::TASK_TOKENS, tools, paper::SYSTEM_TOKENS);
        let (found, needing) = self.found;
        Measured {
            turns: self.turns,
            standing,
            on_demand,
            tokens: standing + on_demand,
            price: self.price / self.turns.max(1) as f64,
            tools: mean(self.tools as u64, self.turns),
            found: if needing > 0 { found / needing as f64 } else { 1.0 },
            rho: rho(at_30(all, standing + on_demand)),
            rho_on_demand: rho(at_30(late_on_demand, on_demand)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(standing: u64, on_demand: u64, found: (usize, usize)) -> Sent {
        Sent { standing, on_demand, tools: 2, found, places: Places::default() }
    }

    #[test]
    fn means_are_over_turns_and_found_over_those_that_take_tools() {
        let mut tally = Tally::default();
        tally.add(0, &sent(100, 300, (1, 1)), 500.0);
        tally.add(1, &sent(100, 100, (1, 2)), 100.0);
        tally.add(2, &sent(100, 200, (0, 0)), 0.0);
        let measured = tally.measured();
        assert!((measured.price - 200.0).abs() < 1e-12);
        assert_eq!((measured.turns, measured.tools), (3, 2.0));
        assert_eq!((measured.standing, measured.on_demand, measured.tokens), (100.0, 200.0, 300.0));
        assert!((measured.found - 0.75).abs() < 1e-12);
        // The task has 15,500 tokens, the tools have 300 and the system prompt has 50.
        assert!((measured.rho - 15_500.0 / 15_850.0).abs() < 1e-12);
    }

    #[test]
    fn rho_is_that_of_the_thirtieth_turn_where_there_is_one() {
        let mut tally = Tally::default();
        tally.add(28, &sent(0, 0, (0, 0)), 0.0);
        tally.add(29, &sent(4_000, 450, (0, 0)), 0.0);
        tally.add(30, &sent(0, 0, (0, 0)), 0.0);
        let measured = tally.measured();
        assert!((measured.rho - 15_500.0 / 20_000.0).abs() < 1e-12);
        assert!((measured.rho_on_demand - 15_500.0 / 16_000.0).abs() < 1e-12);
        assert_eq!(Tally::default().measured().found, 1.0);
    }
}
