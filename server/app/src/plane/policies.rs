//! Policies: setting them, and checking their effect on an agent's state beforehand.

use std::sync::Arc;

use super::Plane;
use toolgate_core::error::Error;
use toolgate_core::identity::{TenantId, ToolId};
use toolgate_core::policy::{Policy, Rule};
use toolgate_core::state::AgentState;
use toolgate_routing::catalog::policies::parse;
use toolgate_routing::gate::verdict::RefusalCode;
use toolgate_routing::gate::visibility::{Visibilities, Visibility};
use toolgate_routing::shard::requirements::Demand;
use toolgate_routing::shard::ruled::RuledCatalog;
use toolgate_routing::shard::snapshot::policy_of;
use toolgate_store::{StoredCatalog, StoredPolicy};

/// Verdict of a policy on one tool for one state.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolVerdict {
    /// Tool that the verdict is about.
    pub id: ToolId,
    /// Reason for the refusal; `None` if the tool may run.
    pub refused: Option<RefusalCode>,
    /// Rule that decided; `None` if the registration refuses the tool or no rule applies.
    pub rule: Option<Arc<str>>,
    /// Conditions that would unlock the tool; all of them are needed.
    pub unlock: Vec<String>,
}

/// Number of tools that a rule matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    /// Name of the rule.
    pub rule: Arc<str>,
    /// Number of tools in the catalog that the rule matches.
    pub tools: u32,
    /// Possible mistake in the rule; empty if none was found.
    pub hint: String,
}

/// Effect of a policy on a catalog.
#[derive(Debug, Clone)]
pub struct PolicyCheck {
    /// Verdicts on every tool, by MCP server and name.
    pub verdicts: Vec<ToolVerdict>,
    /// Coverage of every rule, in the order of the document.
    pub coverage: Vec<Coverage>,
}

impl Plane {
    /// Replaces the tenant's policy and returns the coverage of its rules. Once it returns, every answer follows the
    /// new policy.
    ///
    /// # Errors
    /// Returns the errors of [`toolgate_routing::catalog::Catalog::set_policy`], and an error if the policy is too
    /// expensive to apply to the catalog.
    pub async fn set_policy(
        &self,
        tenant: &TenantId,
        document: String,
        etag: &str,
    ) -> Result<(StoredPolicy, Vec<Coverage>), Error> {
        let catalog = self.catalog.whole(tenant).await;
        let catalog = match catalog {
            // A policy may be set before the first MCP server is registered.
            Err(Error::TenantNotFound(_)) => StoredCatalog::default(),
            other => other?,
        };
        let text = document.clone();
        let cover = move || {
            let policy = Arc::new(parse(&text)?);
            let ruled = ruled(catalog, &policy)?;
            Ok::<_, Error>(coverage(&policy, &ruled))
        };
        let coverage = tokio::task::spawn_blocking(cover).await.map_err(Error::internal)??;
        let stored = self.catalog.set_policy(tenant, document, etag).await?;
        self.follow(tenant, stored.revision).await;
        Ok((stored, coverage))
    }

    /// Returns the verdicts and the rule coverage of a document, or of the stored policy for `None`.
    ///
    /// # Errors
    /// Returns an error if the document is invalid or too expensive to apply to the catalog, if there is no such
    /// tenant, or if the store can't be reached.
    pub async fn check_policy(
        &self,
        tenant: &TenantId,
        document: Option<String>,
        state: AgentState,
    ) -> Result<PolicyCheck, Error> {
        let catalog = self.catalog.whole(tenant).await?;
        let check = move || {
            let policy = match document {
                Some(document) => Arc::new(parse(&document)?),
                None => policy_of(catalog.policy.as_ref())?,
            };
            let ruled = ruled(catalog, &policy)?;
            let coverage = coverage(&policy, &ruled);
            Ok(PolicyCheck { verdicts: verdicts(&ruled, &policy, &state), coverage })
        };
        tokio::task::spawn_blocking(check).await.map_err(Error::internal)?
    }
}

fn ruled(catalog: StoredCatalog, policy: &Arc<Policy>) -> Result<RuledCatalog, Error> {
    let ruled = RuledCatalog::new(catalog.servers, catalog.tools, policy);
    if ruled.unjudged == 0 {
        return Ok(ruled);
    }
    let problem = format!(
        "expands to more conditions than a catalog may have: {} of its tools would be left out; give it fewer rules, patterns or \
         conditions on `tool`, or let them match fewer tools",
        ruled.unjudged
    );
    Err(Error::field("document", problem))
}

fn coverage(policy: &Policy, ruled: &RuledCatalog) -> Vec<Coverage> {
    let rules = policy.rules.iter().zip(&ruled.matched);
    let cover = |(rule, tools): (&Rule, &u32)| Coverage {
        rule: Arc::clone(&rule.name),
        tools: *tools,
        hint: rule.hint(*tools),
    };
    rules.map(cover).collect()
}

fn verdicts(ruled: &RuledCatalog, policy: &Policy, state: &AgentState) -> Vec<ToolVerdict> {
    let visibilities = Visibilities::under(&ruled.requirements, state);
    let verdict = |tool: &toolgate_routing::shard::tool::Tool| {
        let group = &ruled.requirements.groups[tool.group as usize];
        let decider = visibilities.decider(group);
        let rule = decider.and_then(|need| need.rule);
        ToolVerdict {
            id: tool.id.clone(),
            refused: match (visibilities.group(tool.group), decider.map(|need| need.demand)) {
                (Visibility::Allowed, _) => None,
                (Visibility::Hidden, Some(Demand::Denied)) => Some(RefusalCode::UnknownTool),
                (Visibility::Hidden, _) => Some(RefusalCode::ScopeMissing),
                (Visibility::Locked, _) => Some(RefusalCode::PreconditionUnmet),
            },
            rule: rule.map(|rule| Arc::clone(&policy.rules[rule as usize].name)),
            unlock: visibilities.unlock_of(&ruled.requirements, tool.group),
        }
    };
    let mut verdicts: Vec<_> = ruled.tools.iter().map(verdict).collect();
    verdicts.sort_by(|a, b| key(&a.id).cmp(&key(&b.id)));
    verdicts
}

fn key(id: &ToolId) -> (&str, &str) {
    (id.server.as_str(), id.name.as_str())
}
