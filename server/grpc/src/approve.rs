//! Parsing of ApproveTools requests, and rendering of the answer.

use toolgate_proto::v1;

use super::fields::Fields;
use toolgate_core::error::Error;
use toolgate_core::identity::ServerName;
use toolgate_routing::catalog::approval::{Approval, Approved, NotApproved};
use toolgate_store::ContentHash;

const APPROVALS_MAX: usize = 2_048;

/// Parses the MCP server and the approvals.
pub(super) fn parse(wire: v1::ApproveToolsRequest) -> Result<(ServerName, Vec<Approval>), Error> {
    let mut fields = Fields::default();
    let server = fields.take("server", ServerName::parse(&wire.server));
    let fits = (1..=APPROVALS_MAX).contains(&wire.approvals.len());
    fields.require(fits, "approvals", "must be 1 to 2,048");
    for (i, approval) in wire.approvals.iter().enumerate().take(APPROVALS_MAX) {
        let named = !approval.name.is_empty();
        fields.require(named, &format!("approvals[{i}].name"), "must name a tool");
        let problem = "must be the 64 hexadecimal digits of the hash that was reviewed";
        let is_hash = hash(&approval.hash).is_some();
        fields.require(is_hash, &format!("approvals[{i}].hash"), problem);
    }
    fields.finish()?;
    let server = server.ok_or_else(|| Error::field("server", "is missing"))?;
    let approval = |one: v1::ToolApproval| Approval { hash: hash(&one.hash), name: one.name };
    Ok((server, wire.approvals.into_iter().map(approval).collect()))
}

/// Renders the answer of ApproveTools.
pub(super) fn render(approved: Approved) -> v1::ApproveToolsResponse {
    let refusal = |(name, why): (String, NotApproved)| {
        let code = match why {
            NotApproved::Unknown => v1::RefusalCode::UnknownTool,
            NotApproved::Changed => v1::RefusalCode::SchemaChanged,
        };
        v1::ApprovalRefusal { name, code: code.into() }
    };
    v1::ApproveToolsResponse {
        catalog_revision: approved.revision,
        refusals: approved.refused.into_iter().map(refusal).collect(),
    }
}

fn hash(text: &str) -> Option<ContentHash> {
    let mut hash = ContentHash::default();
    hex::decode_to_slice(text, &mut hash).ok()?;
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_sixty_four_digits() {
        assert_eq!(hash(&"0f".repeat(32)), Some([15; 32]));
        assert_eq!(hash(&"0F".repeat(32)), Some([15; 32]));
        for wrong in
            ["", "0f", &"0g".repeat(32), &"+f".repeat(32), &"0f".repeat(33), &"é".repeat(32)]
        {
            assert_eq!(hash(wrong), None, "{wrong}");
        }
    }
}
