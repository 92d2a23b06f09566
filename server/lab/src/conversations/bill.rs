//! Bill of a conversation: tokens, what the cache serves of them, and the price.

use toolgate_llm::price::Rates;

use super::pieces::Piece;

/// Totals of a conversation up to one of its turns.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Totals {
    /// Price in tokens of uncached input.
    pub price: f64,
    /// Tokens of all requests.
    pub tokens: u64,
    /// Tokens of the conversation's own messages in all requests: neither tools nor the system prompt.
    pub own: u64,
    /// Tokens that the cache served.
    pub cached: u64,
    /// Number of requests.
    pub requests: usize,
    /// Number of searches, or of calls that were refused to have the tool loaded.
    pub searches: usize,
    /// Number of calls of tools that a request had no place for, so that the model could neither see nor find them. They
    /// are priced as if it could.
    pub left_out: usize,
    /// Number of turns.
    pub turns: usize,
    /// Number of turns that need a tool.
    pub needing: usize,
    /// Number of those turns that had a right tool without a search.
    pub right: usize,
    /// Number of defined tools, added up over the turns.
    pub shown: usize,
    /// Tokens of the defined tools, added up over the turns.
    pub definitions: u64,
}

/// Turn that was played, apart from its requests.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Turned {
    /// Number of searches.
    pub searches: usize,
    /// Number of calls of tools that the model could neither see nor find.
    pub left_out: usize,
    /// True if it needs a tool.
    pub is_needing: bool,
    /// True if it had a right tool at its start.
    pub is_right: bool,
    /// Number of tools that its first request defined.
    pub shown: usize,
    /// Tokens of these tools.
    pub definitions: u64,
}

/// Bill of a conversation with an initial history.
#[derive(Debug)]
pub(super) struct Bill {
    rates: Rates,
    history: u32,
    last: Vec<Piece>,
    totals: Totals,
}

impl Bill {
    pub(super) fn new(rates: Rates, history: u32) -> Self {
        Self { rates, history, last: Vec::new(), totals: Totals::default() }
    }

    /// Adds a request. `own` is the tokens of the conversation's messages without its initial history.
    pub(super) fn request(&mut self, pieces: &[Piece], own: u32) {
        let shared = pieces.iter().zip(&self.last).take_while(|(a, b)| a.digest == b.digest);
        let shared = self.tokens(&pieces[..shared.count()]);
        let tokens = self.tokens(pieces);
        self.totals.price += self.rates.price_of(tokens, shared);
        self.totals.tokens += u64::from(tokens);
        self.totals.own += u64::from(own) + u64::from(self.history);
        if tokens >= self.rates.least {
            self.totals.cached += u64::from(self.rates.cached(shared));
        }
        self.totals.requests += 1;
        self.last = pieces.to_vec();
    }

    /// Ends a turn, and returns the totals so far.
    pub(super) fn end(&mut self, turned: Turned) -> Totals {
        let totals = &mut self.totals;
        totals.turns += 1;
        totals.searches += turned.searches;
        totals.left_out += turned.left_out;
        totals.needing += usize::from(turned.is_needing);
        totals.right += usize::from(turned.is_needing && turned.is_right);
        totals.shown += turned.shown;
        totals.definitions += turned.definitions;
        *totals
    }

    fn tokens(&self, pieces: &[Piece]) -> u32 {
        let tokens = |piece: &Piece| if piece.is_history { self.history } else { piece.tokens };
        pieces.iter().map(tokens).sum()
    }
}

impl Totals {
    /// Returns the price of a turn, in tokens of uncached input.
    #[must_use]
    pub fn price_a_turn(&self) -> f64 {
        self.a_turn(self.price)
    }

    /// Returns the tokens of a turn's requests.
    #[must_use]
    pub fn tokens_a_turn(&self) -> f64 {
        self.a_turn(self.tokens as f64)
    }

    /// Returns the conversation's share of the tokens of all requests (rho), 0 to 1.
    #[must_use]
    pub fn rho(&self) -> f64 {
        self.own as f64 / (self.tokens as f64).max(1.0)
    }

    /// Returns the share of the tokens that the cache served, 0 to 1.
    #[must_use]
    pub fn cached_share(&self) -> f64 {
        self.cached as f64 / (self.tokens as f64).max(1.0)
    }

    /// Returns a sum as a mean over the turns.
    #[must_use]
    pub fn a_turn(&self, sum: f64) -> f64 {
        sum / (self.turns as f64).max(1.0)
    }

    /// Adds the totals of another conversation.
    pub(super) fn add(&mut self, other: &Self) {
        self.price += other.price;
        self.tokens += other.tokens;
        self.own += other.own;
        self.cached += other.cached;
        self.requests += other.requests;
        self.searches += other.searches;
        self.left_out += other.left_out;
        self.turns += other.turns;
        self.needing += other.needing;
        self.right += other.right;
        self.shown += other.shown;
        self.definitions += other.definitions;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(digest: u64, tokens: u32) -> Piece {
        Piece { digest, tokens, is_history: false }
    }

    #[test]
    fn a_cache_serves_what_both_requests_begin_with() {
        let history = Piece { is_history: true, ..piece(9, 0) };
        let mut bill = Bill::new(Rates::OPENAI_LATER, 2_000);
        bill.request(&[piece(1, 100), history, piece(2, 50)], 50);
        bill.request(&[piece(1, 100), history, piece(3, 50), piece(2, 50)], 100);
        let totals = bill.end(Turned { searches: 1, is_needing: true, ..Turned::default() });
        assert_eq!((totals.tokens, totals.cached, totals.requests), (2_150 + 2_200, 2_048, 2));
        assert!((totals.rho() - 4_150.0 / 4_350.0).abs() < 1e-12, "{}", totals.rho());
        let price = 2_150.0 * 1.25 + 204.8 + 152.0 * 1.25;
        assert!((totals.price - price).abs() < 1e-9, "{}", totals.price);
        assert_eq!((totals.searches, totals.needing, totals.right), (1, 1, 0));
    }
}
