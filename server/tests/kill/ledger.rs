//! Registrations that were sent and acknowledged. Each registration is a numbered generation of one MCP server. Its
//! description, its number of tools and every definition depend on that number.

use toolgate_client::{Client, v1};

/// Number of MCP servers that are registered in turn.
const SERVERS: usize = 4;

#[derive(Debug, Default)]
pub struct Ledger {
    servers: [Entry; SERVERS],
    acknowledged: u64,
    unheard: u64,
}

#[derive(Debug, Default, Clone, Copy)]
struct Entry {
    /// The newest acknowledged generation, or 0 if there is none.
    acknowledged: u64,
    /// The newest generation that was sent.
    sent: u64,
    revision: u64,
}

impl Ledger {
    /// Registers generation after generation, with the MCP servers in turn, until the server is gone.
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

    /// Checks that every acknowledged generation, or a later one, is stored completely.
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
            // The registration that was cut off may or may not have been committed. The next one is a new generation.
            entry.revision = stored.revision;
        }
        if newest > 0 {
            let pool = client.get_summary_pool(v1::GetSummaryPoolRequest::default()).await;
            assert!(pool.expect("a pool").pool.expect("a pool").revision >= newest);
        }
    }

    /// Returns the number of acknowledged registrations, and of those that were committed although the kill cut off the
    /// answer.
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

/// Returns the definitions of a generation, sorted. Their number changes with each generation, their summaries with
/// every 16th.
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
