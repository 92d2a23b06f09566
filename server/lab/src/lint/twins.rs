//! Check for tools with almost the same text, on one MCP server or two. A ranking can't tell them apart.

use std::collections::HashSet;

use serde_json::json;

use super::finding::{Code, Finding};
use super::tool::Tool;
use crate::eval::embeddings::Embeddings;
use toolgate_core::error::Error;
use toolgate_routing::catalog::plan::text_hash;
use toolgate_routing::shard::snapshot::Snapshot;

/// Minimum cosine similarity of two summaries that are near twins.
pub const LEAST_OVERLAP: f32 = 0.95;

/// Number of neighbours to search. They include the tool itself, and others with the same embedding may precede its
/// twin.
const NEIGHBOURS: usize = 4;

/// Returns one warning for each tool whose nearest neighbour is a twin, and reports each pair only once.
///
/// # Errors
/// Returns an internal error if the index is defective.
pub fn check(
    tools: &[Tool<'_>],
    snapshot: &Snapshot,
    embeddings: &Embeddings,
) -> Result<Vec<Finding>, Error> {
    let Some(index) = snapshot.vectors() else { return Ok(Vec::new()) };
    let mut findings = Vec::new();
    let mut told = HashSet::new();
    for (slot, tool) in (0_u32..).zip(tools) {
        let Some(vector) = embeddings.vectors().get(&text_hash(&tool.record.summary)) else {
            continue;
        };
        let near = index.search(vector, NEIGHBOURS, None).map_err(Error::internal)?;
        let twin = near.iter().find(|hit| hit.slot != slot && hit.overlap >= LEAST_OVERLAP);
        let Some(twin) = twin else { continue };
        if told.insert((slot.min(twin.slot), slot.max(twin.slot))) {
            findings.push(finding(tool, &tools[twin.slot as usize], twin.overlap));
        }
    }
    Ok(findings)
}

fn finding(tool: &Tool<'_>, twin: &Tool<'_>, overlap: f32) -> Finding {
    let text = |tool: &Tool<'_>| tool.definition.description().trim().to_lowercase();
    let same = !text(tool).is_empty() && text(tool) == text(twin);
    let how = if same {
        "has the same description".to_owned()
    } else {
        "reads almost the same".to_owned()
    };
    let problem = format!("{} {how} (overlap {overlap:.3})", twin.id());
    let remedy =
        "say in the first sentence of each what the other does not do, or register only one";
    let evidence = json!({
        "twin": twin.id(),
        "overlap": (f64::from(overlap) * 1e4).round() / 1e4,
        "same_description": same,
    });
    Finding::warning(Code::NearTwin, tool, problem).remedy(remedy).evidence(evidence)
}
