//! What a turn costs in tokens, and what sending everything would have cost.

use super::choose::Chosen;
use super::query::{Detail, Options};
use super::route::{Active, Answer};
use crate::gate::standing::VisibleTokens;
use crate::shard::snapshot::Snapshot;
use crate::usage::Amounts;
use toolgate_core::tokens;

/// Tokens of one turn, by cl100k_base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Account {
    /// Definitions of all tools that the caller may see.
    pub full_catalog: u64,
    /// What the prompt lists of the catalog: the summary pool, its names, or nothing.
    pub phase1: u64,
    /// The active set at the asked detail.
    pub phase2: u64,
    /// The share of a full window that is left to the task.
    pub rho: Option<f64>,
    /// The same with all definitions sent.
    pub rho_full: Option<f64>,
}

impl Account {
    /// Adds up a turn.
    #[must_use]
    pub fn new(visible: VisibleTokens, phase2: u64, options: &Options) -> Self {
        let rho = |tools: u64| {
            let window = f64::from(options.context_window?);
            #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
            let spent = tools as f64 + f64::from(options.system_tokens);
            Some((1.0 - spent / window).max(0.0))
        };
        Self {
            full_catalog: visible.schemas,
            phase1: visible.pool,
            phase2,
            rho: rho(visible.pool + phase2),
            rho_full: rho(visible.schemas),
        }
    }

    /// What deferral saves against sending everything; negative when it does not pay.
    #[must_use]
    pub fn saved(&self) -> i64 {
        let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        signed(self.full_catalog) - signed(self.phase1) - signed(self.phase2)
    }
}

/// What the ledger counts of tools that were asked for by name or by a search.
#[must_use]
pub fn looked_up(tools: &[Active]) -> Amounts {
    let on_demand_tokens = tools.iter().map(|tool| u64::from(tool.tokens)).sum();
    Amounts { lookup_calls: 1, on_demand_tokens, ..Amounts::default() }
}

/// What the ledger counts of a turn.
#[must_use]
pub fn counted(answer: &Answer) -> Amounts {
    let newly = answer.active.iter().filter(|active| active.chosen.newly_promoted);
    Amounts {
        route_calls: 1,
        full_tokens: answer.account.full_catalog,
        phase1_tokens: answer.account.phase1,
        phase2_tokens: answer.account.phase2,
        new_tokens: newly.map(|active| u64::from(active.tokens)).sum(),
        ..Amounts::default()
    }
}

/// A tool of an answer: its text at the asked detail, and its tokens.
#[must_use]
pub fn active(snapshot: &Snapshot, chosen: Chosen, detail: Detail) -> Active {
    let tool = snapshot.tool(chosen.slot);
    let detail = if chosen.is_brief && detail.has_schemas() { Detail::Signatures } else { detail };
    let (signature, tokens) = match detail {
        Detail::Schemas | Detail::References => (None, tool.schema_tokens),
        Detail::Names => (None, tokens::count(&tool.model_name)),
        Detail::Signatures => (Some(tool.signature().clone()), tool.signature_tokens()),
    };
    Active { chosen, signature, tokens }
}
