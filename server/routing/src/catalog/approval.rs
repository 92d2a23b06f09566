//! Accepting tools that wait for approval: each as it was reviewed, or not at all.

use super::Catalog;
use super::verify::is_as_registered;
use toolgate_core::error::Error;
use toolgate_core::identity::{ServerName, TenantId};
use toolgate_store::{
    ContentHash, Revision, ServerChange, StoreError, StoredTool, ToolRecord, ToolStatus,
};

/// Tries at a commit while others change the same server.
const TRIES: usize = 8;

/// One definition of one tool that somebody has reviewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The MCP name.
    pub name: String,
    /// The hash of the definition that was reviewed; `None` for what is no hash, which no tool has.
    pub hash: Option<ContentHash>,
}

/// Why an approval had no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotApproved {
    /// The MCP server has no such tool.
    Unknown,
    /// The tool has another definition now.
    Changed,
}

/// What approvals did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approved {
    /// The catalog revision that holds the change; that of the MCP server when there was nothing to change.
    pub revision: Revision,
    /// Tools that are approved by this call.
    pub approved: Vec<String>,
    /// Approvals without an effect.
    pub refused: Vec<(String, NotApproved)>,
}

impl Catalog {
    /// Accepts tools of one MCP server as they were reviewed. One that is approved already stays so.
    ///
    /// # Errors
    /// No such tenant or server, a store that can't be reached.
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
                // The shard that is built next has the summaries embedded that it lacks.
                embeddings: Vec::new(),
                fingerprint: self.encoder.fingerprint().to_owned(),
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
        Err(Error::Contended)
    }
}

/// The tools as they are to be, and the approvals that none of them has.
fn judged(
    tools: &[StoredTool],
    approvals: &[Approval],
) -> (Vec<ToolRecord>, Vec<(String, NotApproved)>) {
    let (mut upserts, mut refused): (Vec<ToolRecord>, Vec<_>) = (Vec::new(), Vec::new());
    for approval in approvals {
        let found = tools.iter().find(|tool| tool.record.name.as_str() == approval.name);
        match found.map(|tool| &tool.record) {
            None => refused.push((approval.name.clone(), NotApproved::Unknown)),
            // A damaged definition still has the hash of the one before, and nobody has reviewed it.
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
