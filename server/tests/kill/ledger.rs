//! What was registered and what of it was acknowledged. A registration is a generation of one MCP server:
//! its description, its tools' number and every definition say which.

use toolgate_client::{Client, v1};

/// MCP servers that take turns.
const SERVERS: usize = 4;

#[derive(Debug, Default)]
pub struct Ledger {
    servers: [Entry; SERVERS],
    acknowledged: u64,
    unheard: u64,
}

#[derive(Debug, Default, Clone, Copy)]
struct Entry {
    /// The newest generation that was acknowledged; 0 when none was.
    acknowledged: u64,
    /// The newest that was sent.
    sent: u64,
    revision: u64,
}

impl Ledger {
    /// Registers one generation after the other, in turn, until the server is gone.
    pub async fn register_until_refused(&mut self, client: &Client) {
        for turn in 0.. {
            let index = turn % SERVERS;
            let entry = &mut self.servers[index];
            entry.sent += 1;
            match client.register_server(request(index, entry.sent)).await {
                Ok(answer) => {
                    assert!(answer.catalog_revision > entry.revision);
                    (entry.acknowledged, entry.revision) = (entry.sent, answer.catalog_revision);
                    self.acknowledged += 1;
                }
                Err(error) => {
                    assert!(error.is_unavailable(), "{error}");
                    return;
                }
            }
        }
    }

    /// Every acknowledged generation is there, or one that was sent after it; each is whole.
    pub async fn check(&mut self, client: &Client) {
        let mut newest = 0;
        for (index, entry) in self.servers.iter_mut().enumerate() {
            let server = name(index);
            let get = v1::GetServerRequest { server: server.clone(), ..Default::default() };
            let stored = match client.get_server(get).await {
                Ok(answer) => answer.server.expect("a server"),
                Err(error) => {
                    assert_eq!(entry.acknowledged, 0, "{server} is lost: {error}");
                    continue;
                }
            };
            let found: u64 = stored.description.parse().expect("a generation");
            let known = entry.acknowledged..=entry.sent;
            assert!(known.contains(&found), "{server}: {found} is not within {known:?}");
            assert!(stored.revision >= entry.revision, "{server}: {stored:?}");
            let tools = client.all_tools(Some(&server), None).await.expect("its tools");
            let mut definitions: Vec<_> = tools.into_iter().map(|t| t.definition_json).collect();
            definitions.sort();
            assert_eq!(definitions, tools_of(index, found), "{server} is not whole");
            self.unheard += u64::from(found > entry.acknowledged);
            entry.acknowledged = found;
            newest = newest.max(entry.revision);
            // What was cut off may have been committed or not; the next one is a new generation.
            entry.revision = stored.revision;
        }
        if newest > 0 {
            let pool = client.get_summary_pool(v1::GetSummaryPoolRequest::default()).await;
            assert!(pool.expect("a pool").pool.expect("a pool").revision >= newest);
        }
    }

    /// Registrations that were acknowledged, and those that were committed while the kill cut off the answer.
    pub fn counts(&self) -> (u64, u64) {
        (self.acknowledged, self.unheard)
    }
}

fn request(index: usize, generation: u64) -> v1::RegisterServerRequest {
    let body = format!("[{}]", tools_of(index, generation).join(","));
    v1::RegisterServerRequest {
        server: name(index),
        description: generation.to_string(),
        tools_list_json: body.into_bytes().into(),
        request_id: format!("{index}-{generation}"),
        ..Default::default()
    }
}

/// The definitions of a generation, sorted: their number changes, and now and then their summaries too.
fn tools_of(index: usize, generation: u64) -> Vec<String> {
    let text = format!("tool of {index}, {}", generation / 16);
    let tool = |n: u64| {
        format!(
            "{{\"name\":\"t{n}\",\"description\":\"{text}\",\"inputSchema\":{{\"const\":{generation}}}}}"
        )
    };
    (0..3 + generation % 5).map(tool).collect()
}

fn name(index: usize) -> String {
    format!("server-{index}")
}
