//! Use of the context window by a conversation: its tokens, beside those of the tools and of the system prompt.

use std::sync::Arc;

use quick_cache::sync::Cache;
use sha2::{Digest, Sha256};

use crate::router::Router;
use crate::router::answers::account::Account;
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_core::tokens;

/// Bytes of texts above which they are counted outside the async threads.
const LARGE: usize = 16 << 10;

/// Bytes of a text from which on its count is cached. A conversation comes again with each turn, a little longer.
const CACHED_MIN: usize = 256;

/// Maximum number of cached counts, over all tenants: 3 MB.
const CACHED_MAX: usize = 65_536;

/// Utilisation below which tools and system prompt are too much of a request.
const LOW_UTILISATION: f64 = 0.3;

/// Percentage of the context window from which on it is nearly full.
const NEARLY_FULL_PERCENT: u64 = 70;

/// Half of the SHA-256 of a tenant and a text.
type Name = [u8; 16];

/// Token counts of texts.
pub(in crate::router) struct TextTokens(Cache<Name, u32>);

impl Default for TextTokens {
    fn default() -> Self {
        Self(Cache::new(CACHED_MAX))
    }
}

/// Part of a request that is not the conversation, and the window that both share.
#[derive(Debug, Clone, Copy, Default)]
pub struct Surroundings {
    /// Tokens of the system prompt.
    pub system_tokens: u32,
    /// Tokens of the agent's own tools; 0 where a request does not hold them.
    pub own_tools_tokens: u64,
    /// Tokens of the context window; `None` if it is unknown.
    pub context_window: Option<u32>,
}

/// Fault in the use of the context window. The wire's `ContextWarning` has the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextWarning {
    /// Tools and system prompt are most of the request: the conversation is less than 0.3 of it.
    LowUtilisation,
    /// The request takes 70% of the context window or more.
    WindowNearlyFull,
}

/// Use of the context window by a conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Utilisation {
    /// Tokens of the conversation; 0 without one.
    pub tokens: u64,
    /// Share of the conversation in the request, 0 to 1; `None` without a conversation.
    pub rho: Option<f64>,
    /// Faults.
    pub warnings: Vec<ContextWarning>,
}

impl Utilisation {
    /// Computes the use of the context window by a conversation of `tokens` beside the tools of a turn.
    #[must_use]
    pub fn new(tokens: u64, account: &Account, beside: Surroundings) -> Self {
        if tokens == 0 {
            return Self::default();
        }
        let tools = account.phase1.saturating_add(account.phase2);
        let tools = tools.saturating_add(beside.own_tools_tokens);
        let overhead = tools.saturating_add(beside.system_tokens.into());
        let request = tokens.saturating_add(overhead);
        #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
        let rho = tokens as f64 / request as f64;
        let is_full = |window: u32| {
            request.saturating_mul(100) >= u64::from(window).saturating_mul(NEARLY_FULL_PERCENT)
        };
        let low = (rho < LOW_UTILISATION).then_some(ContextWarning::LowUtilisation);
        let is_full = beside.context_window.is_some_and(is_full);
        let full = is_full.then_some(ContextWarning::WindowNearlyFull);
        Self { tokens, rho: Some(rho), warnings: low.into_iter().chain(full).collect() }
    }
}

impl TextTokens {
    fn count(&self, tenant: &TenantId, text: &str) -> u64 {
        if text.len() < CACHED_MIN {
            return tokens::count(text).into();
        }
        let name = name_of(tenant, text);
        if let Some(known) = self.0.get(&name) {
            return known.into();
        }
        let count = tokens::count(text);
        self.0.insert(name, count);
        count.into()
    }
}

impl Router {
    /// Counts the tokens of a conversation's texts. A text beyond 64 KiB is estimated.
    ///
    /// # Errors
    /// An internal error if the thread that counts fails.
    pub async fn conversation_tokens(
        &self,
        tenant: &TenantId,
        texts: Vec<String>,
    ) -> Result<u64, Error> {
        let is_large = texts.iter().map(String::len).sum::<usize>() > LARGE;
        let counts = Arc::clone(&self.text_tokens);
        let tenant = tenant.clone();
        let count = move || texts.iter().map(|text| counts.count(&tenant, text)).sum();
        if is_large {
            tokio::task::spawn_blocking(count).await.map_err(Error::internal)
        } else {
            Ok(count())
        }
    }
}

fn name_of(tenant: &TenantId, text: &str) -> Name {
    let mut hasher = Sha256::new();
    hasher.update(tenant.as_str());
    // No tenant's name has this byte.
    hasher.update([0]);
    hasher.update(text);
    let hash: [u8; 32] = hasher.finalize().into();
    let mut name = Name::default();
    name.copy_from_slice(&hash[..16]);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(phase1: u64, phase2: u64) -> Account {
        Account { full_catalog: 0, phase1, phase2, rho: None, rho_full: None }
    }

    fn used(tokens: u64, window: Option<u32>) -> Utilisation {
        let beside =
            Surroundings { system_tokens: 100, own_tools_tokens: 300, context_window: window };
        Utilisation::new(tokens, &account(200, 100), beside)
    }

    #[test]
    fn rho_is_the_conversations_share_of_the_request() {
        let half = used(700, None);
        assert_eq!((half.tokens, half.rho, half.warnings), (700, Some(0.5), vec![]));
        assert_eq!(used(0, Some(100)), Utilisation::default(), "no conversation, no warning");
    }

    #[test]
    fn what_crowds_the_conversation_out_is_warned_of() {
        use ContextWarning::{LowUtilisation, WindowNearlyFull};
        assert_eq!(used(300, None).warnings, [], "0.3 is enough");
        assert_eq!(used(299, None).warnings, [LowUtilisation]);
        assert_eq!(used(700, Some(2_001)).warnings, []);
        assert_eq!(used(700, Some(2_000)).warnings, [WindowNearlyFull], "70% are reached");
        assert_eq!(used(10, Some(1_000)).warnings, [LowUtilisation, WindowNearlyFull]);
    }

    #[test]
    fn a_cached_count_is_the_count() {
        let counts = TextTokens::default();
        let tenant = TenantId::parse("acme").expect("a tenant");
        let long = "refund the invoice of last month ".repeat(100);
        for text in ["", "refund", &long, &long] {
            assert_eq!(counts.count(&tenant, text), u64::from(tokens::count(text)));
        }
        assert_eq!(counts.0.len(), 1, "short texts are counted anew");
        let other = TenantId::parse("other").expect("a tenant");
        counts.count(&other, &long);
        assert_eq!(counts.0.len(), 2, "tenants share no entry");
    }
}
