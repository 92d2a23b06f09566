//! Amounts that are counted, and their names in the store.

use std::borrow::Cow;
use std::collections::BTreeMap;

use toolgate_store::AMOUNT_MAX;

/// Prefix of a refusal's code in the store.
const REFUSED: &str = "refused.";

/// Counts of calls and tokens. Sums stop at [`AMOUNT_MAX`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Route calls that were answered.
    pub route_calls: u64,
    /// Calls that Gate allowed.
    pub allowed_calls: u64,
    /// Tokens of the definitions of all tools that callers could have seen.
    pub full_tokens: u64,
    /// Tokens of summary pools.
    pub phase1_tokens: u64,
    /// Tokens of active sets at the requested detail.
    pub phase2_tokens: u64,
    /// Tokens of the tools of active sets that the previous turn did not show.
    pub new_tokens: u64,
    /// SearchTools and BatchGetToolSchemas calls that were answered.
    pub lookup_calls: u64,
    /// Tokens of the tools sent by those calls.
    pub on_demand_tokens: u64,
    /// Refused calls after which another call of their turn succeeded.
    pub mended_calls: u64,
    /// Other refused calls whose turn ended with a question to the user.
    pub asked_calls: u64,
    /// Refused calls that neither came of.
    pub given_up_calls: u64,
    /// SearchTools calls that were answered.
    pub searches: u64,
    /// Searches of which a tool was called within the five calls behind them.
    pub search_hits: u64,
    /// Searches that showed nothing, or of whose tools none was called in time.
    pub search_misses: u64,
    /// Calls that Gate refused, by the name of the refusal code.
    pub refused: BTreeMap<Cow<'static, str>, u64>,
}

impl Amounts {
    /// Adds `other` to these amounts.
    pub fn add(&mut self, other: &Self) {
        let fixed = other.named().into_iter().zip(self.fixed());
        for ((_, amount), sum) in fixed {
            add_to(sum, amount);
        }
        for (code, calls) in &other.refused {
            // The code is looked up first: most codes exist already and need no copy.
            match self.refused.get_mut(code) {
                Some(sum) => add_to(sum, *calls),
                None => drop(self.refused.insert(code.clone(), *calls)),
            }
        }
    }

    /// Returns the number of calls that Gate refused, for any reason.
    #[must_use]
    pub fn refused_calls(&self) -> u64 {
        let mut sum = 0;
        self.refused.values().for_each(|calls| add_to(&mut sum, *calls));
        sum
    }

    /// Returns the tokens saved by sending only promoted schemas instead of every schema.
    #[must_use]
    pub fn saved_gross(&self) -> i64 {
        signed(self.full_tokens).saturating_sub(signed(self.phase2_tokens))
    }

    /// Returns the gross saving less the tokens of the summary pools and of tools sent on demand. Negative if deferral
    /// did not pay.
    #[must_use]
    pub fn saved_net(&self) -> i64 {
        let beside = self.phase1_tokens.saturating_add(self.on_demand_tokens);
        self.saved_gross().saturating_sub(signed(beside))
    }

    /// Returns the amounts above 0 with their names in the store.
    #[must_use]
    pub fn items(&self) -> Vec<(String, u64)> {
        let fixed = self.named().into_iter().map(|(name, amount)| (name.to_owned(), amount));
        let refused = self.refused.iter().map(|(code, n)| (format!("{REFUSED}{code}"), *n));
        fixed.chain(refused).filter(|(_, amount)| *amount > 0).collect()
    }

    /// Adds the amount stored under `name`. Names unknown to this version are ignored.
    pub fn add_item(&mut self, name: &str, amount: u64) {
        if let Some(code) = name.strip_prefix(REFUSED) {
            add_to(self.refused.entry(Cow::Owned(code.to_owned())).or_default(), amount);
            return;
        }
        let known = self.named().into_iter().position(|(item, _)| item == name);
        if let Some(place) = known {
            add_to(self.fixed()[place], amount);
        }
    }

    /// Returns the fixed amounts with their names, in the order of [`Amounts::fixed`].
    fn named(&self) -> [(&'static str, u64); 14] {
        [
            ("route_calls", self.route_calls),
            ("allowed_calls", self.allowed_calls),
            ("full_tokens", self.full_tokens),
            ("phase1_tokens", self.phase1_tokens),
            ("phase2_tokens", self.phase2_tokens),
            ("new_tokens", self.new_tokens),
            ("lookup_calls", self.lookup_calls),
            ("on_demand_tokens", self.on_demand_tokens),
            ("mended_calls", self.mended_calls),
            ("asked_calls", self.asked_calls),
            ("given_up_calls", self.given_up_calls),
            ("searches", self.searches),
            ("search_hits", self.search_hits),
            ("search_misses", self.search_misses),
        ]
    }

    fn fixed(&mut self) -> [&mut u64; 14] {
        [
            &mut self.route_calls,
            &mut self.allowed_calls,
            &mut self.full_tokens,
            &mut self.phase1_tokens,
            &mut self.phase2_tokens,
            &mut self.new_tokens,
            &mut self.lookup_calls,
            &mut self.on_demand_tokens,
            &mut self.mended_calls,
            &mut self.asked_calls,
            &mut self.given_up_calls,
            &mut self.searches,
            &mut self.search_hits,
            &mut self.search_misses,
        ]
    }
}

fn add_to(sum: &mut u64, amount: u64) {
    *sum = sum.saturating_add(amount).min(AMOUNT_MAX);
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusals(of: &[(&'static str, u64)]) -> BTreeMap<Cow<'static, str>, u64> {
        of.iter().map(|(code, calls)| (Cow::Borrowed(*code), *calls)).collect()
    }

    fn each() -> Amounts {
        Amounts {
            route_calls: 1,
            allowed_calls: 2,
            full_tokens: 100,
            phase1_tokens: 30,
            phase2_tokens: 50,
            new_tokens: 40,
            lookup_calls: 5,
            on_demand_tokens: 10,
            mended_calls: 7,
            asked_calls: 8,
            given_up_calls: 9,
            searches: 11,
            search_hits: 12,
            search_misses: 13,
            refused: refusals(&[("UNKNOWN_TOOL", 3), ("SCOPE_MISSING", 4)]),
        }
    }

    #[test]
    fn every_amount_is_added() {
        let mut sum = each();
        sum.add(&each());
        sum.add(&Amounts { refused: refusals(&[("HANDLE_EXPIRED", 1)]), ..Amounts::default() });
        let doubled = Amounts {
            route_calls: 2,
            allowed_calls: 4,
            full_tokens: 200,
            phase1_tokens: 60,
            phase2_tokens: 100,
            new_tokens: 80,
            lookup_calls: 10,
            on_demand_tokens: 20,
            mended_calls: 14,
            asked_calls: 16,
            given_up_calls: 18,
            searches: 22,
            search_hits: 24,
            search_misses: 26,
            refused: refusals(&[("HANDLE_EXPIRED", 1), ("SCOPE_MISSING", 8), ("UNKNOWN_TOOL", 6)]),
        };
        assert_eq!(sum, doubled);
        assert_eq!((sum.refused_calls(), sum.saved_gross(), sum.saved_net()), (15, 100, 20));
    }

    #[test]
    fn what_is_stored_is_read_back() {
        let mut back = Amounts::default();
        for (name, amount) in each().items() {
            back.add_item(&name, amount);
        }
        assert_eq!(back, each());
        back.add_item("of_a_later_version", 7);
        assert_eq!(back, each());
        assert!(Amounts::default().items().is_empty());
    }

    #[test]
    fn sums_stop_at_their_most() {
        let mut sum = Amounts { full_tokens: u64::MAX, phase1_tokens: u64::MAX, ..each() };
        sum.refused = refusals(&[("A", u64::MAX), ("B", u64::MAX)]);
        assert_eq!(sum.refused_calls(), AMOUNT_MAX);
        sum.add(&sum.clone());
        assert_eq!((sum.full_tokens, sum.refused["A"]), (AMOUNT_MAX, AMOUNT_MAX));
        let spent = Amounts { phase1_tokens: u64::MAX, phase2_tokens: u64::MAX, ..each() };
        assert_eq!(spent.saved_net(), i64::MIN, "no overflow the other way either");
    }
}
