//! Policies: set, and checked against a state before they are.

use std::sync::Arc;

use super::Plane;
use crate::catalog::policies::parse;
use crate::error::Error;
use crate::gate::standing::{Standing, Standings};
use crate::gate::verdict::RefusalCode;
use crate::identity::{TenantId, ToolId};
use crate::policy::Policy;
use crate::shard::requirements::Demand;
use crate::shard::ruled::RuledCatalog;
use crate::shard::snapshot::policy_of;
use crate::state::AgentState;
use crate::store::{StoredCatalog, StoredPolicy};

/// What a policy and a state make of one tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolVerdict {
    /// Which tool.
    pub id: ToolId,
    /// Why it may not run; `None` when it may.
    pub refused: Option<RefusalCode>,
    /// The rule that decided; `None` when the registration refuses, or nothing does.
    pub rule: Option<Arc<str>>,
    /// What would unlock it: each of them is needed.
    pub unlock: Vec<String>,
}

impl Plane {
    /// Replaces the tenant's policy; when it returns, every answer goes by it.
    ///
    /// # Errors
    /// As [`crate::catalog::Catalog::set_policy`].
    pub async fn set_policy(
        &self,
        tenant: &TenantId,
        document: String,
        etag: &str,
    ) -> Result<StoredPolicy, Error> {
        let stored = self.catalog.set_policy(tenant, document, etag).await?;
        self.follow(tenant, stored.revision).await;
        Ok(stored)
    }

    /// What a document, or the stored policy for `None`, makes of each tool, by MCP server and name.
    ///
    /// # Errors
    /// A document that is wrong, no such tenant, a store that can't be reached.
    pub async fn check_policy(
        &self,
        tenant: &TenantId,
        document: Option<String>,
        state: AgentState,
    ) -> Result<Vec<ToolVerdict>, Error> {
        let catalog = self.catalog.whole(tenant).await?;
        let check = move || {
            let policy = match document {
                Some(document) => Arc::new(parse(&document)?),
                None => policy_of(catalog.policy.as_ref())?,
            };
            Ok(verdicts(catalog, &policy, &state))
        };
        tokio::task::spawn_blocking(check).await.map_err(Error::internal)?
    }
}

fn verdicts(catalog: StoredCatalog, policy: &Arc<Policy>, state: &AgentState) -> Vec<ToolVerdict> {
    let ruled = RuledCatalog::new(catalog.servers, catalog.tools, policy);
    let standings = Standings::under(&ruled.requirements, state);
    let verdict = |tool: &crate::shard::tool::Tool| {
        let group = &ruled.requirements.groups[tool.group as usize];
        let decider = standings.decider(group);
        let rule = decider.and_then(|need| need.rule);
        ToolVerdict {
            id: tool.id.clone(),
            refused: match (standings.group(tool.group), decider.map(|need| need.demand)) {
                (Standing::Open, _) => None,
                (Standing::Hidden, Some(Demand::Denied)) => Some(RefusalCode::UnknownTool),
                (Standing::Hidden, _) => Some(RefusalCode::ScopeMissing),
                (Standing::Locked, _) => Some(RefusalCode::PreconditionUnmet),
            },
            rule: rule.map(|rule| Arc::clone(&policy.rules[rule as usize].name)),
            unlock: standings.unlock_of(&ruled.requirements, tool.group),
        }
    };
    let mut verdicts: Vec<_> = ruled.tools.iter().map(verdict).collect();
    verdicts.sort_by(|a, b| key(&a.id).cmp(&key(&b.id)));
    verdicts
}

fn key(id: &ToolId) -> (&str, &str) {
    (id.server.as_str(), id.name.as_str())
}
