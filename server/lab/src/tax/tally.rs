//! What the turns of a benchmark add up to: tokens a turn, rho, and whether the tools that a turn takes were
//! in its prompt.

use super::paper::{self, RHO_TURN};

/// What one turn's prompt has of the tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sent {
    /// Tokens that every prompt of the conversation has.
    pub(super) standing: u64,
    /// Tokens that are there for what was said.
    pub(super) on_demand: u64,
    /// Tools whose definitions are there.
    pub(super) tools: usize,
    /// Of the tools that the turn takes, those that are there, and all of them.
    pub(super) found: (usize, usize),
}

/// Adds turns up.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    turns: u64,
    standing: u64,
    on_demand: u64,
    tools: usize,
    /// Shares of the tools that turns take, and turns that take any.
    found: (f64, u64),
    /// Tokens of prompts at [`RHO_TURN`], phase 2 alone, and how many there were.
    late: (u64, u64, u64),
}

/// The means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Measured {
    /// Turns measured.
    pub turns: u64,
    /// Tokens in every prompt.
    pub standing: f64,
    /// Tokens for what was said.
    pub on_demand: f64,
    /// Both.
    pub tokens: f64,
    /// Definitions in a prompt.
    pub tools: f64,
    /// The share of the tools that turns take which were in the prompt; 1 when no turn takes any.
    pub found: f64,
    /// Effective context utilisation at turn 30; of the mean turn where no conversation is so long.
    pub rho: f64,
    /// The same with the standing part not counted, as the paper does for phase 1.
    pub rho_on_demand: f64,
}

impl Tally {
    /// Adds the turn with this number, from 0.
    pub(super) fn add(&mut self, number: usize, sent: Sent) {
        self.turns += 1;
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

    /// The means.
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
        Sent { standing, on_demand, tools: 2, found }
    }

    #[test]
    fn means_are_over_turns_and_found_over_those_that_take_tools() {
        let mut tally = Tally::default();
        tally.add(0, sent(100, 300, (1, 1)));
        tally.add(1, sent(100, 100, (1, 2)));
        tally.add(2, sent(100, 200, (0, 0)));
        let measured = tally.measured();
        assert_eq!((measured.turns, measured.tools), (3, 2.0));
        assert_eq!((measured.standing, measured.on_demand, measured.tokens), (100.0, 200.0, 300.0));
        assert!((measured.found - 0.75).abs() < 1e-12);
        // 15,500 of task, 300 of tools, 50 of system.
        assert!((measured.rho - 15_500.0 / 15_850.0).abs() < 1e-12);
    }

    #[test]
    fn rho_is_that_of_the_thirtieth_turn_where_there_is_one() {
        let mut tally = Tally::default();
        tally.add(28, sent(0, 0, (0, 0)));
        tally.add(29, sent(4_000, 450, (0, 0)));
        tally.add(30, sent(0, 0, (0, 0)));
        let measured = tally.measured();
        assert!((measured.rho - 15_500.0 / 20_000.0).abs() < 1e-12);
        assert!((measured.rho_on_demand - 15_500.0 / 16_000.0).abs() < 1e-12);
        assert_eq!(Tally::default().measured().found, 1.0);
    }
}
