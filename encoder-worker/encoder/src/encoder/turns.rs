//! Fair order of texts: start-time fair queueing (Goyal, Vin and Cheng, "Start-time Fair Queuing", SIGCOMM 1996). Every
//! text has a turn, in tokens of virtual time, and texts run in the order of their turns. The texts of a flow have
//! consecutive turns, so a flow that asks for ten times as much as others waits for itself, and they do not wait for
//! it. A flow that asked for less than its share has a credit, so its next few texts run before all those of a busy
//! one.

use std::collections::HashMap;

/// Number of flows that are kept without a check that they still wait for anything.
const REMEMBERED: usize = 1_024;

/// Tokens of its share that a flow may save up: some twenty requests of people, most of which are two or three texts. A
/// flow that sends them at once gets them embedded at once. A flow that always has texts waits for at most these of
/// each other flow.
const CREDIT: u64 = 1_024;

/// Least and greatest cost of a text in tokens. The true cost is known only when a text is tokenized, and the rest of a
/// long one is not read.
const COST_MIN: u64 = 2;
const COST_MAX: u64 = 512;
const BYTES_OF_A_TOKEN: u64 = 4;

/// Bit of a flow's number that marks it as yielding.
const YIELDS: u64 = 1 << 63;

/// Factor on the cost of a text of a yielding flow. Such a flow gets an eighth of the share of a flow that asks for as
/// much as it can get, and everything that the others leave.
const OF_YIELDING: u64 = 8;

/// Group of texts that share turns with other groups, such as the intents of one tenant. Any number may identify it
/// that is the same each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flow(u64);

impl Flow {
    /// Flow of a single request.
    pub const ALONE: Self = Self(0);

    /// Returns the flow with this number; 0 is [`Flow::ALONE`].
    #[must_use]
    pub fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns a flow like [`Flow::new`], for texts that no caller waits for, such as those of a registration. Others
    /// get more of the encoder.
    #[must_use]
    pub fn yielding(number: u64) -> Self {
        Self(number | YIELDS)
    }

    /// Returns true if no caller waits for the texts of this flow.
    #[must_use]
    pub fn is_yielding(self) -> bool {
        self.0 & YIELDS != 0
    }

    /// Returns the number of the flow.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }

    /// Returns the assumed cost of a text, in tokens of an ordinary flow.
    pub(super) fn cost(self, text: &str) -> u64 {
        let tokens = (text.len() as u64 / BYTES_OF_A_TOKEN).clamp(COST_MIN, COST_MAX);
        if self.is_yielding() { tokens * OF_YIELDING } else { tokens }
    }
}

/// Extra tokens of every text.
const TOKENS_OF_A_TEXT: u64 = 2;

/// Returns the tokens of texts by their bytes, which is enough for balancing. Servers and workers estimate alike.
#[must_use]
pub fn estimated_tokens(texts: &[String]) -> u64 {
    texts.iter().map(|text| text.len() as u64 / BYTES_OF_A_TOKEN + TOKENS_OF_A_TEXT).sum()
}

/// Point in virtual time, in tokens.
pub(super) type Turn = u64;

/// Turns of all flows.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Turn of the last text that was taken.
    now: Turn,
    /// End of the turns assigned to each flow.
    ends: HashMap<Flow, Turn>,
}

impl Turns {
    /// Returns the turn of the first text of a request whose texts cost `cost` together.
    pub(super) fn join(&mut self, flow: Flow, cost: u64) -> Turn {
        if flow == Flow::ALONE {
            return self.now;
        }
        let end = self.ends.entry(flow).or_default();
        let turn = self.now.saturating_sub(CREDIT).max(*end);
        *end = turn.saturating_add(cost);
        turn
    }

    /// Gives back the cost that a flow did not use.
    pub(super) fn give_back(&mut self, flow: Flow, cost: u64) {
        if let Some(end) = self.ends.get_mut(&flow) {
            *end = end.saturating_sub(cost);
        }
    }

    /// Advances virtual time to the turn of a text that was taken.
    pub(super) fn taken(&mut self, turn: Turn) {
        self.now = self.now.max(turn);
    }

    /// Forgets flows that wait for nothing. `waiting` is the number of requests.
    pub(super) fn forget_idle(&mut self, waiting: usize) {
        if self.ends.len() > REMEMBERED.max(2 * waiting) {
            let used_up = self.now.saturating_sub(CREDIT);
            self.ends.retain(|_, end| *end > used_up);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_waits_for_itself_and_not_others_for_it() {
        let mut turns = Turns::default();
        let busy = Flow::new(1);
        let of_busy: Vec<_> = (0..10).map(|_| turns.join(busy, 8)).collect();
        assert_eq!(of_busy, [0, 8, 16, 24, 32, 40, 48, 56, 64, 72]);
        assert_eq!(turns.join(Flow::new(2), 8), 0);
        turns.taken(16);
        assert_eq!(turns.join(busy, 8), 80);
        assert_eq!((turns.join(Flow::ALONE, 8), turns.join(Flow::ALONE, 8)), (16, 16));
    }

    #[test]
    fn a_burst_of_a_quiet_flow_goes_before_a_busy_one() {
        let mut turns = Turns::default();
        let busy = Flow::new(1);
        let quiet = Flow::new(2);
        for _ in 0..1_000 {
            turns.join(busy, 8);
        }
        turns.taken(4_000);
        let burst: Vec<_> = (0..CREDIT / 8).map(|_| turns.join(quiet, 8)).collect();
        assert!(burst.iter().all(|turn| *turn < 4_000), "{burst:?}");
        assert_eq!(burst[0], 4_000 - CREDIT);
        // Requests beyond the credit take turns.
        assert_eq!(turns.join(quiet, 8), 4_000);
        assert_eq!(turns.join(quiet, 8), 4_008);
    }

    #[test]
    fn what_was_not_used_is_not_paid_for() {
        let mut turns = Turns::default();
        let flow = Flow::new(1);
        turns.join(flow, 100);
        turns.give_back(flow, 100);
        assert_eq!(turns.join(flow, 4), 0);
        turns.give_back(Flow::new(2), 100);
        assert_eq!(turns.join(Flow::new(2), 4), 0);
    }

    #[test]
    fn only_flows_that_wait_are_remembered_for_long() {
        let mut turns = Turns::default();
        for number in 1..=3_000 {
            let turn = turns.join(Flow::new(number), 4);
            if number < 2_990 {
                turns.taken(turn + 4 + CREDIT);
            }
            turns.forget_idle(10);
        }
        assert!(turns.ends.len() <= REMEMBERED, "{}", turns.ends.len());
        assert!(turns.ends.contains_key(&Flow::new(3_000)));
    }

    #[test]
    fn costs_are_bounded() {
        let flow = Flow::new(1);
        assert_eq!((flow.cost(""), flow.cost("find the open issues of a repository")), (2, 9));
        assert_eq!(flow.cost(&"x".repeat(1 << 20)), 512);
    }

    #[test]
    fn a_flow_that_yields_gets_an_eighth_beside_one_that_does_not() {
        let mut turns = Turns::default();
        let text = "find the open issues of a repository";
        let [agents, registration] = [Flow::new(1), Flow::yielding(1)];
        assert_ne!(agents, registration);
        let turns_of = |turns: &mut Turns, flow: Flow| -> Vec<_> {
            (0..800).map(|_| turns.join(flow, flow.cost(text))).collect()
        };
        let of_agents = turns_of(&mut turns, agents);
        let of_registration = turns_of(&mut turns, registration);
        let last = of_agents[799];
        assert_eq!(of_registration.iter().filter(|turn| **turn < last).count(), 100);
        assert_eq!(
            Flow::new(registration.number()),
            registration,
            "workers are told by the number"
        );
    }
}
