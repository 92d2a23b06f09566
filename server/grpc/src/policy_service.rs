//! `PolicyService`.

use prost_types::Timestamp;
use tonic::{Request, Response, Status};
use toolgate_proto::v1;
use toolgate_proto::v1::policy_service_server::PolicyService;
use toolgate_proto::v1::{
    CheckPolicyRequest, CheckPolicyResponse, GetPolicyRequest, GetPolicyResponse, SetPolicyRequest,
    SetPolicyResponse,
};

use super::edge::{Edge, withdrawal};
use super::listing::{self, PageCursor};
use super::{bounded, render, state};
use toolgate_access::audit::Effect;
use toolgate_access::auth::Caller;
use toolgate_app::plane::policies::{Coverage, PolicyCheck, ToolVerdict};
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_core::method::Method;
use toolgate_store::{StoredPolicy, ToolCursor};

/// Name of the listing in page tokens of verdicts. No MCP server has this name.
const LISTING: &str = "policy check";

/// Implementation of `PolicyService`.
pub(super) struct Policies {
    pub(super) edge: Edge,
}

#[tonic::async_trait]
impl PolicyService for Policies {
    async fn set_policy(
        &self,
        call: Request<SetPolicyRequest>,
    ) -> Result<Response<SetPolicyResponse>, Status> {
        let edge = &self.edge;
        let plane = &self.edge.pipeline.plane;
        let work = |caller: Caller, tenant: TenantId, message: SetPolicyRequest, _| async move {
            let change = withdrawal(Method::SetPolicy, &caller, &tenant, "");
            let set = plane.set_policy(&tenant, message.document, &message.etag);
            let effect = |(stored, _): &(StoredPolicy, Vec<Coverage>)| Effect {
                revision: Some(stored.revision),
                ..Effect::default()
            };
            let (stored, rules) = edge.pipeline.change(change, set, effect).await?;
            let answer =
                SetPolicyResponse { policy: Some(policy(stored)), rules: coverage(&rules) };
            Ok(bounded::policy_set(answer, edge.pipeline.limits.now().max_message_bytes))
        };
        self.edge.call(Method::SetPolicy, call, work).await
    }

    async fn get_policy(
        &self,
        call: Request<GetPolicyRequest>,
    ) -> Result<Response<GetPolicyResponse>, Status> {
        let plane = &self.edge.pipeline.plane;
        let work = |_: Caller, tenant: TenantId, _: GetPolicyRequest, _| async move {
            let stored = plane.catalog.policy(&tenant).await?;
            let policy = stored.map_or_else(v1::Policy::default, policy);
            Ok(GetPolicyResponse { policy: Some(policy) })
        };
        self.edge.call(Method::GetPolicy, call, work).await
    }

    async fn check_policy(
        &self,
        call: Request<CheckPolicyRequest>,
    ) -> Result<Response<CheckPolicyResponse>, Status> {
        let edge = &self.edge;
        let work = |caller: Caller, tenant: TenantId, message: CheckPolicyRequest, _| async move {
            let size = listing::page_size(message.page_size)?;
            let after = listing::after_tool(&message.page_token, LISTING)?;
            let state = state::parse(message.state, &edge.pipeline.limits.now(), &caller)?;
            let document = Some(message.document).filter(|document| !document.is_empty());
            let check = edge.pipeline.plane.check_policy(&tenant, document, state).await?;
            let most = edge.pipeline.limits.now().max_message_bytes;
            page(&check, after.as_ref(), size as usize, most)
        };
        self.edge.call(Method::CheckPolicy, call, work).await
    }
}

fn policy(stored: StoredPolicy) -> v1::Policy {
    let seconds = stored.updated_ms.div_euclid(1_000);
    let millis = stored.updated_ms.rem_euclid(1_000);
    let nanos = i32::try_from(millis * 1_000_000).unwrap_or(0);
    v1::Policy {
        etag: stored.etag(),
        document: stored.document,
        revision: stored.revision,
        update_time: Some(Timestamp { seconds, nanos }),
    }
}

/// Returns a page of at most `size` verdicts that fits an answer of `message_max` bytes.
fn page(
    check: &PolicyCheck,
    after: Option<&ToolCursor>,
    size: usize,
    message_max: usize,
) -> Result<CheckPolicyResponse, Error> {
    let is_before = |verdict: &ToolVerdict| {
        let server = verdict.id.server.as_str();
        let name = verdict.id.name.as_str();
        after.is_some_and(|cursor| (server, name) <= (&cursor.server, &cursor.name))
    };
    let verdicts = &check.verdicts;
    let rest = &verdicts[verdicts.partition_point(is_before)..];
    let mut page: Vec<_> = rest.iter().take(size).map(verdict).collect();
    page.truncate(listing::within_bytes(&page, message_max));
    let last = page.last().filter(|_| page.len() < rest.len()).map(|last| PageCursor::Tool {
        of: LISTING.to_owned(),
        server: last.server.clone(),
        name: last.name.clone(),
    });
    let next_page_token = last.map_or_else(|| Ok(String::new()), |place| place.token())?;
    let rules = if after.is_none() { coverage(&check.coverage) } else { Vec::new() };
    // The verdicts take the other half, and the token takes a part of this half.
    let rules = bounded::rules(rules, listing::page_bytes(message_max) / 2);
    Ok(CheckPolicyResponse { verdicts: page, next_page_token, rules })
}

fn coverage(rules: &[Coverage]) -> Vec<v1::RuleCoverage> {
    let rule = |of: &Coverage| v1::RuleCoverage {
        rule: of.rule.to_string(),
        tools: of.tools,
        hint: of.hint.clone(),
    };
    rules.iter().map(rule).collect()
}

fn verdict(verdict: &ToolVerdict) -> v1::PolicyVerdict {
    v1::PolicyVerdict {
        server: verdict.id.server.as_str().to_owned(),
        name: verdict.id.name.as_str().to_owned(),
        allowed: verdict.refused.is_none(),
        code: verdict.refused.map_or(0, |code| render::code(code) as i32),
        rule: verdict.rule.as_deref().unwrap_or_default().to_owned(),
        unlock: verdict.unlock.clone(),
    }
}
