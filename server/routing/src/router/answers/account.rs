//! Token cost of a turn, and the cost of sending all definitions.

use crate::gate::visibility::VisibleTokens;
use crate::router::answers::conversation::Surroundings;
use crate::router::query::Detail;
use crate::router::route::{Active, Answer};
use crate::router::selection::choose::Chosen;
use crate::shard::snapshot::Snapshot;
use crate::usage::Amounts;
use toolgate_core::tokens;

/// Token counts of one turn, by cl100k_base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Account {
    /// Definitions of all tools that the caller may see.
    pub full_catalog: u64,
    /// Part of the catalog that the prompt lists: the summary pool, its names, or nothing. In a request that Route put
    /// together, the definitions of the search and of the envelope.
    pub phase1: u64,
    /// Active set at the requested detail. In a request that Route put together, all definitions of the catalog's tools.
    pub phase2: u64,
    /// Share of a full context window that is left to the task; 0 to 1. `None` if the window is unknown.
    pub rho: Option<f64>,
    /// Same share if all definitions were sent.
    pub rho_full: Option<f64>,
}

impl Account {
    /// Computes the token counts of a turn.
    #[must_use]
    pub fn new(visible: VisibleTokens, phase2: u64, beside: Surroundings) -> Self {
        let rho = |tools: u64| {
            let window = f64::from(beside.context_window?);
            #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
            let spent = (tools + beside.own_tools_tokens) as f64 + f64::from(beside.system_tokens);
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

    /// Returns the counts of a request that Route put together: `search` for the definitions that deferral needs, `tools` for
    /// those of the catalog, wherever they stand.
    #[must_use]
    pub fn of_request(&self, search: u64, tools: u64, beside: Surroundings) -> Self {
        Self::new(VisibleTokens { schemas: self.full_catalog, pool: search }, tools, beside)
    }

    /// Returns the tokens that deferral saves compared with sending everything; negative when it does not pay.
    #[must_use]
    pub fn saved(&self) -> i64 {
        let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        signed(self.full_catalog) - signed(self.phase1) - signed(self.phase2)
    }
}

/// Returns the ledger amounts of tools that were requested by name or found by a search.
#[must_use]
pub fn looked_up(tools: &[Active]) -> Amounts {
    let on_demand_tokens = tools.iter().map(|tool| u64::from(tool.tokens)).sum();
    Amounts { lookup_calls: 1, on_demand_tokens, ..Amounts::default() }
}

/// Returns the ledger amounts of a turn.
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

/// Renders a tool for an answer: its text at the requested detail, and its tokens.
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
