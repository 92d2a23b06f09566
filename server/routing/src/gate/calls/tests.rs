//! Tests of when schemas are compiled for calls.

use super::*;
use toolgate_core::identity::{ServerName, ToolId, ToolName};
use toolgate_store::{
    ServerRecord, StoredCatalog, StoredServer, StoredTool, ToolRecord, ToolStatus,
};

/// Creates a tool whose schema takes some units to compile.
fn stored(number: u8) -> StoredTool {
    let patterns: Vec<_> = (0..9).map(|i| format!(r#"{{"pattern": "^[a-z]{{9}}{i}$"}}"#)).collect();
    let definition = format!(r#"{{"inputSchema": {{"allOf": [{}]}}}}"#, patterns.join(","));
    let server = ServerName::parse("s").expect("a name");
    let name = ToolName::parse(&format!("t{number}")).expect("a name");
    let id = ToolId { server, name };
    let record = ToolRecord {
        model_name: id.model_name(),
        server: id.server,
        name: id.name,
        summary: "does it".to_owned(),
        search_hint: String::new(),
        definition,
        hash: [number; 32],
        precondition: None,
        required_scopes: Vec::new(),
        always_load: false,
        critical: false,
        schema_tokens: 5,
        summary_tokens: 3,
        status: ToolStatus::Active,
    };
    StoredTool { record, summary_revision: 1 }
}

/// Creates a shard with this number of tools.
fn shard(tools: u8) -> Snapshot {
    let record = ServerRecord::new(ServerName::parse("s").expect("a name"));
    let server = StoredServer { record, revision: 1, updated_ms: 0, tool_count: tools.into() };
    let tools = (0..tools).map(stored).collect();
    let catalog = StoredCatalog { servers: vec![server], tools, ..StoredCatalog::default() };
    Snapshot::build(catalog, &HashMap::new(), 2).expect("a shard")
}

/// Calls all tools of a shard. Returns the verdicts and the number of schemas that were compiled.
fn judge(
    deadline: Option<Instant>,
    most_units: usize,
) -> (Result<Vec<Option<Verdict>>, Error>, u64) {
    let snapshot = shard(8);
    let tools = snapshot.tools.iter().map(|tool| ShownTool::new(tool.key, &tool.hash)).collect();
    let active = ActiveSet {
        revision: 1,
        expires: u64::MAX,
        tools,
        carried: Vec::new(),
        intent_embedding: None,
    };
    let schemas = Schemas::default();
    let check = CallCheck {
        tenant: &TenantId::parse("acme").expect("a name"),
        snapshot: &snapshot,
        state: &AgentState::default(),
        active: &active,
        schemas: &schemas,
        now: SystemTime::UNIX_EPOCH,
        deadline,
    };
    let call = |tool: &Tool| Call {
        tool: tool.model_name.to_string(),
        arguments: "1".to_owned(),
        ..Call::default()
    };
    let calls: Vec<_> = snapshot.tools.iter().map(call).collect();
    let mut verdicts = vec![None; calls.len()];
    let judged = check.judge(&calls, &mut verdicts, most_units);
    (judged.map(|()| verdicts), schemas.compilations())
}

#[test]
fn nothing_is_compiled_once_the_deadline_has_passed() {
    let (judged, compilations) = judge(Some(Instant::now()), usize::MAX);
    assert!(matches!(judged, Err(Error::DeadlineExceeded)), "{judged:?}");
    assert_eq!(compilations, 0);
    let (judged, compilations) = judge(None, usize::MAX);
    let verdicts = judged.expect("verdicts");
    assert!(verdicts.iter().all(Option::is_some), "{verdicts:?}");
    assert_eq!(compilations, 8);
}

#[test]
fn no_more_is_compiled_at_a_time_than_was_said() {
    for (most_units, compiled) in [(0, 0), (1, 1)] {
        let (judged, compilations) = judge(None, most_units);
        let verdicts = judged.expect("verdicts");
        assert_eq!(verdicts.iter().flatten().count(), compiled, "{verdicts:?}");
        assert_eq!(compilations, compiled as u64);
    }
}

#[test]
fn a_tool_that_the_request_still_defines_may_be_called() {
    let snapshot = shard(3);
    let entry = |slot: u32| {
        let tool = snapshot.tool(slot);
        ShownTool::new(tool.key, &tool.hash)
    };
    let changed = ShownTool::new(snapshot.tool(1).key, &[7; 32]);
    let active = ActiveSet {
        revision: 1,
        expires: u64::MAX,
        tools: Vec::new(),
        carried: vec![entry(0), changed],
        intent_embedding: None,
    };
    let check = CallCheck {
        tenant: &TenantId::parse("acme").expect("a name"),
        snapshot: &snapshot,
        state: &AgentState::default(),
        active: &active,
        schemas: &Schemas::default(),
        now: SystemTime::UNIX_EPOCH,
        deadline: None,
    };
    let call = |slot: u32| Call {
        tool: snapshot.tool(slot).model_name.to_string(),
        arguments: "{}".to_owned(),
        ..Call::default()
    };
    let verdicts = check.verdicts(&[call(0), call(1), call(2)]).expect("verdicts");
    let codes: Vec<_> =
        verdicts.into_iter().map(|one| one.err().map(|refused| refused.code)).collect();
    let refused = [RefusalCode::SchemaChanged, RefusalCode::ToolNotAvailable].map(Some);
    assert_eq!(codes, [&[None], &refused[..]].concat());
}
