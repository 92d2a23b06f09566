//! Approval of quarantined tools. A tool is accepted only with the definition that was reviewed.

use super::Catalog;
use super::verify::is_as_registered;
use toolgate_core::error::Error;
use toolgate_core::identity::{ServerName, TenantId};
use toolgate_store::{
    ContentHash, Revision, ServerChange, StoreError, StoredTool, ToolRecord, ToolStatus,
};

/// Maximum attempts at a commit while other callers change the same server.
const TRIES: usize = 8;

/// Approval of one reviewed definition of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// MCP name of the tool.
    pub name: String,
    /// Hash of the reviewed definition. `None` if the caller sent something that is not a hash, which matches no tool.
    pub hash: Option<ContentHash>,
}

/// Reason why an approval had no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotApproved {
    /// Name that no tool of the MCP server has.
    Unknown,
    /// Tool that has another definition now.
    Changed,
}

/// Result of a request to approve tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approved {
    /// Catalog revision that holds the change, or the MCP server's revision if there was nothing to change.
    pub revision: Revision,
    /// Tools that this call approved.
    pub approved: Vec<String>,
    /// Names of tools whose approval had no effect, each with the reason.
    pub refused: Vec<(String, NotApproved)>,
}

impl Catalog {
    /// Approves tools of one MCP server with the definitions that were reviewed. Approving an approved tool changes
    /// nothing.
    ///
    /// # Errors
    /// No such tenant or server, or a store that can't be reached.
    pub async fn approve(
        &self,
        tenant: &TenantId,
        server: &ServerName,
        approvals: &[Approval],
    ) -> Result<Approved, Error> {
        self.must_exist(tenant).await?;
        for _ in 0..TRIES {
            let stored = self.store.read_server(tenant, server).await?;
            let (stored, tools) =
                stored.ok_or_else(|| Error::ServerNotFound(server.as_str().to_owned()))?;
            let (upserts, refused) = judged(&tools, approvals);
            let approved = upserts.iter().map(|tool| tool.name.as_str().to_owned()).collect();
            if upserts.is_empty() {
                return Ok(Approved { revision: stored.revision, approved, refused });
            }
            let change = ServerChange {
                base: Some(stored.revision),
                server: stored.record,
                upserts,
                removals: Vec::new(),
                // The next build of the shard embeds the summaries that are missing.
                embeddings: Vec::new(),
                fingerprint: self.encoder.fingerprint().to_owned(),
                comparison: None,
                max_tools: u64::MAX,
                max_servers: u64::MAX,
                request: None,
            };
            match self.store.commit(tenant, change).await {
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(error.into()),
                Ok(committed) => {
                    let counted = |vetting: &super::vetting::Vetting| {
                        vetting.metrics.approved(approved.len());
                    };
                    self.vetting.as_ref().inspect(|vetting| counted(vetting));
                    return Ok(Approved { revision: committed.revision, approved, refused });
                }
            }
        }
        let what = "approval conflicted with other changes of this MCP server";
        Err(Error::Contended { what, tries: TRIES })
    }
}

/// Returns the records to store, and the approvals that match no tool.
fn judged(
    tools: &[StoredTool],
    approvals: &[Approval],
) -> (Vec<ToolRecord>, Vec<(String, NotApproved)>) {
    let mut upserts: Vec<ToolRecord> = Vec::new();
    let mut refused = Vec::new();
    for approval in approvals {
        let found = tools.iter().find(|tool| tool.record.name.as_str() == approval.name);
        match found.map(|tool| &tool.record) {
            None => refused.push((approval.name.clone(), NotApproved::Unknown)),
            // A damaged definition keeps its old hash, but no one reviewed the damaged text.
            Some(tool) if approval.hash != Some(tool.hash) || !is_as_registered(tool) => {
                refused.push((approval.name.clone(), NotApproved::Changed));
            }
            Some(tool) if tool.status == ToolStatus::Approved => {}
            Some(tool) if upserts.iter().any(|known| known.name == tool.name) => {}
            Some(tool) => upserts.push(ToolRecord { status: ToolStatus::Approved, ..tool.clone() }),
        }
    }
    (upserts, refused)
}
