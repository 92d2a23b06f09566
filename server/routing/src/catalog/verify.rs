//! Verification of stored content: hashes, counts and names are computed again and compared with the stored ones. It
//! uses neither store nor encoder.

use std::collections::{BTreeMap, HashMap, HashSet};

use tracing::error;

use super::check::pool_line;
use super::definition::Definition;
use super::plan::text_hash;
use super::policies;
use toolgate_core::identity::{TenantId, ToolId};
use toolgate_core::tokens;
use toolgate_store::{StoredTool, TenantContent, ToolRecord};

/// Returns the problems of a tenant's content, each as a sentence that names its place. Empty if there are none.
#[must_use]
pub fn problems(content: &TenantContent) -> Vec<String> {
    let mut found = content.damage.clone();
    let revision = content.catalog.revision;
    servers(content, &mut found);
    let mut names = HashSet::new();
    for stored in content.catalog.all_tools() {
        let tool = &stored.record;
        let place = format!("tool {}/{}", tool.server.as_str(), tool.name.as_str());
        found.extend(of_tool(stored).into_iter().map(|problem| format!("{place}: {problem}")));
        if stored.summary_revision > revision {
            found.push(format!("{place}: its line is of a revision after the catalog's"));
        }
        if !names.insert(&tool.model_name) {
            found.push(format!("{place}: another tool has the model-facing name too"));
        }
    }
    if let Some(policy) = &content.catalog.policy
        && let Err(error) = policies::parse(&policy.document)
    {
        found.push(format!("policy: {error}"));
    }
    embeddings(content, &mut found);
    remembered(content, &mut found);
    found
}

/// Returns the number of embeddings that belong to no tool's summary. They take up space but do no harm.
#[must_use]
pub fn orphans(content: &TenantContent) -> usize {
    let summaries = content.catalog.all_tools().map(|tool| text_hash(&tool.record.summary));
    let summaries: HashSet<_> = summaries.collect();
    let embeddings = content.embeddings.iter();
    embeddings.filter(|(_, embedding)| !summaries.contains(&embedding.text_hash)).count()
}

/// Returns true if the definition is the registered one, that is, if it still has the stored hash.
#[must_use]
pub fn is_as_registered(tool: &ToolRecord) -> bool {
    let definition = Definition::parse(&tool.definition);
    definition.is_ok_and(|definition| definition.hash().ok() == Some(tool.hash))
}

/// Returns true if the definition is the registered one, and logs an error if it is not. A damaged definition must not
/// be served as the one that was approved.
#[must_use]
pub fn is_served(tenant: &TenantId, tool: &ToolRecord) -> bool {
    let is_good = is_as_registered(tool);
    if !is_good {
        let tenant = tenant.as_str();
        let server = tool.server.as_str();
        let tool = tool.name.as_str();
        error!(
            tenant,
            server,
            tool,
            "the stored definition is damaged, so the tool is left out: register its MCP server again"
        );
    }
    is_good
}

fn servers(content: &TenantContent, found: &mut Vec<String>) {
    let mut counts: BTreeMap<_, u32> = BTreeMap::new();
    for tool in content.catalog.all_tools() {
        *counts.entry(tool.record.server.as_str()).or_default() += 1;
    }
    for server in &content.catalog.servers {
        let name = server.record.name.as_str();
        let said = server.tool_count;
        let counted = counts.remove(name).unwrap_or_default();
        if said != counted {
            found.push(format!("server {name}: {said} tools are said to be there, {counted} are"));
        }
        if server.revision > content.catalog.revision {
            found.push(format!("server {name}: its revision is after the catalog's"));
        }
        if let Some(precondition) = &server.record.precondition
            && let Err(mistake) = precondition.conditions()
        {
            found.push(format!("server {name}: its precondition: {mistake}"));
        }
    }
    for (name, tools) in counts {
        found.push(format!("server {name}: not there, but {tools} of its tools are"));
    }
}

fn of_tool(stored: &StoredTool) -> Vec<String> {
    let tool = &stored.record;
    let mut found = Vec::new();
    let id = ToolId { server: tool.server.clone(), name: tool.name.clone() };
    if id.model_name() != tool.model_name {
        found.push(format!("its model-facing name is {}", tool.model_name));
    }
    match Definition::parse(&tool.definition) {
        Err(error) => found.push(format!("its definition: {} {}", error.part, error.problem)),
        Ok(definition) => {
            if definition.hash().ok() != Some(tool.hash) {
                found.push("its hash is not the definition's".to_owned());
            }
            let counted = tokens::count(&definition.prompt_form(&tool.model_name));
            // For a schema of an older dialect, earlier releases counted the registered form.
            let registered =
                || tokens::count(&definition.prompt_form_as_registered(&tool.model_name));
            if counted != tool.schema_tokens && registered() != tool.schema_tokens {
                let said = tool.schema_tokens;
                found.push(format!("its definition has {counted} tokens, not {said}"));
            }
        }
    }
    let counted = tokens::count(&pool_line(&tool.model_name, &tool.summary));
    if counted != tool.summary_tokens {
        found.push(format!("its summary has {counted} tokens, not {}", tool.summary_tokens));
    }
    if let Some(precondition) = &tool.precondition
        && let Err(mistake) = precondition.conditions()
    {
        found.push(format!("its precondition: {mistake}"));
    }
    found
}

fn embeddings(content: &TenantContent, found: &mut Vec<String>) {
    let mut lengths: HashMap<&str, usize> = HashMap::new();
    let mut odd = 0;
    let mut broken = 0;
    for (fingerprint, embedding) in &content.embeddings {
        let length = *lengths.entry(fingerprint).or_insert(embedding.vector.len());
        odd += usize::from(embedding.vector.len() != length);
        broken += usize::from(!embedding.vector.iter().all(|value| value.is_finite()));
    }
    for (count, problem) in
        [(odd, "differ in length from others of their encoder"), (broken, "hold what is no number")]
    {
        if count > 0 {
            found.push(format!("embeddings: {count} {problem}"));
        }
    }
}

fn remembered(content: &TenantContent, found: &mut Vec<String>) {
    let tools = content.catalog.all_tools().map(|tool| (&tool.record.server, &tool.record.name));
    let tools: HashSet<_> = tools.collect();
    let (version, floor) = content.memory;
    if floor > version {
        found.push("memory: its floor is after its version".to_owned());
    }
    for (tool, exemplar, changed) in &content.exemplars {
        if !tools.contains(&(&tool.server, &tool.name)) {
            found
                .push(format!("memory: exemplar {} of {tool}, which is not there", exemplar.place));
        }
        if *changed > version {
            found.push(format!("memory: exemplar {} of {tool} is newer than all", exemplar.place));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::catalog::check::{ToolCheck, ToolSettings, Work};
    use toolgate_config::LimitsConfig;
    use toolgate_core::identity::ServerName;
    use toolgate_store::{ServerRecord, StoredCatalog, StoredEmbedding, StoredServer, ToolStatus};

    fn good() -> TenantContent {
        let server = ServerName::parse("git").expect("a name");
        let settings: HashMap<String, ToolSettings> = HashMap::new();
        let limits = LimitsConfig::default();
        let check = ToolCheck {
            server: &server,
            settings: &settings,
            limits: &limits,
            is_trusted: false,
            work: Work::default(),
        };
        let text = r#"{"name": "log", "description": "Shows.", "inputSchema": {"type": "object"}}"#;
        let record = check.check(0, text).expect("a tool");
        let text_hash = text_hash(&record.summary);
        let embedding = StoredEmbedding { text_hash, vector: vec![1.0] };
        let record = StoredTool { record, summary_revision: 1 };
        let server = ServerRecord::new(server);
        let catalog = StoredCatalog {
            revision: 1,
            servers: vec![StoredServer {
                record: server,
                revision: 1,
                updated_ms: 0,
                tool_count: 1,
            }],
            tools: vec![record],
            ..StoredCatalog::default()
        };
        let embeddings = vec![("e".to_owned(), embedding)];
        TenantContent { catalog, embeddings, ..TenantContent::default() }
    }

    fn check(change: impl FnOnce(&mut TenantContent), want: &str) {
        let mut content = good();
        change(&mut content);
        let found = problems(&content);
        assert!(found.iter().any(|problem| problem.contains(want)), "{want}: {found:?}");
    }

    #[test]
    fn what_was_registered_is_well() {
        assert_eq!(problems(&good()), [""; 0]);
    }

    #[test]
    fn what_waits_for_approval_is_looked_at_as_well() {
        let aside = |content: &mut TenantContent| {
            content.catalog.quarantined = std::mem::take(&mut content.catalog.tools);
            content.catalog.quarantined[0].record.status = ToolStatus::Quarantined;
        };
        let mut content = good();
        aside(&mut content);
        assert_eq!(problems(&content), [""; 0]);
        content.catalog.quarantined[0].record.hash[0] ^= 1;
        let found = problems(&content);
        assert!(matches!(&found[..], [one] if one.contains("tool git/log: its hash")), "{found:?}");
    }

    #[test]
    fn an_embedding_of_no_summary_is_no_damage() {
        let mut content = good();
        assert_eq!(orphans(&content), 0);
        content.embeddings[0].1.text_hash[0] ^= 1;
        assert_eq!((problems(&content), orphans(&content)), (Vec::new(), 1));
    }

    #[test]
    fn a_flipped_bit_of_a_definition_is_noticed() {
        let mut tool = good().catalog.tools.remove(0).record;
        assert!(is_as_registered(&tool));
        tool.definition = tool.definition.replace("Shows", "Shovs");
        assert!(!is_as_registered(&tool));
    }

    #[test]
    fn whatever_changed_is_named_with_its_place() {
        check(|c| c.damage.push("tool \"a\": bad".into()), "tool \"a\": bad");
        check(|c| c.catalog.servers[0].tool_count = 2, "server git: 2 tools are said");
        check(|c| c.catalog.servers[0].revision = 9, "server git: its revision");
        check(|c| c.catalog.servers.clear(), "server git: not there, but 1");
        check(|c| c.catalog.tools[0].record.hash[0] ^= 1, "tool git/log: its hash");
        check(|c| c.catalog.tools[0].record.definition.pop().map_or((), drop), "its definition");
        check(|c| c.catalog.tools[0].record.model_name.push('x'), "model-facing name is");
        check(|c| c.catalog.tools[0].record.schema_tokens += 1, "its definition has");
        check(|c| c.catalog.tools[0].record.summary.push_str(" more"), "its summary has");
        check(|c| c.catalog.tools[0].summary_revision = 9, "of a revision after");
        check(|c| c.catalog.tools.push(c.catalog.tools[0].clone()), "another tool has");
        check(|c| c.embeddings[0].1.vector[0] = f32::NAN, "1 hold what is no number");
        check(|c| c.memory = (1, 2), "memory: its floor");
    }
}
