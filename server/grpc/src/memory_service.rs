//! `MemoryService`.

use prost_types::Timestamp;
use tonic::{Request, Response, Status};
use toolgate_proto::v1;
use toolgate_proto::v1::memory_service_server::MemoryService;
use toolgate_proto::v1::{
    ClearMemoryRequest, ClearMemoryResponse, GetMemoryStatsRequest, GetMemoryStatsResponse,
};

use super::edge::{Edge, withdrawal};
use super::fields::Fields;
use super::listing;
use toolgate_access::audit::Effect;
use toolgate_access::auth::Caller;
use toolgate_app::plane::memory::MemoryStats;
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_core::identity::{ServerName, ToolName};
use toolgate_core::method::Method;
use toolgate_routing::memory::ToolStats;

/// Maximum number of tools in an answer.
const TOOLS_SHOWN: usize = 1_000;

/// Implementation of `MemoryService`.
pub(super) struct Memories {
    pub(super) edge: Edge,
}

#[tonic::async_trait]
impl MemoryService for Memories {
    async fn get_memory_stats(
        &self,
        call: Request<GetMemoryStatsRequest>,
    ) -> Result<Response<GetMemoryStatsResponse>, Status> {
        let plane = &self.edge.pipeline.plane;
        let work = |_: Caller, tenant: TenantId, message: GetMemoryStatsRequest, _| async move {
            let server = server(&message.server)?;
            let mut answer = render(&plane.memory_stats(&tenant, server.as_ref()).await?);
            let most = self.edge.pipeline.limits.now().max_message_bytes;
            answer.tools.truncate(listing::within_bytes(&answer.tools, most));
            Ok(answer)
        };
        self.edge.call(Method::GetMemoryStats, call, work).await
    }

    async fn clear_memory(
        &self,
        call: Request<ClearMemoryRequest>,
    ) -> Result<Response<ClearMemoryResponse>, Status> {
        let edge = &self.edge;
        let plane = &self.edge.pipeline.plane;
        let work = |caller: Caller, tenant: TenantId, message: ClearMemoryRequest, _| async move {
            let (server, tool) = parse(&message)?;
            let names =
                [server.as_ref().map(ServerName::as_str), tool.as_ref().map(ToolName::as_str)];
            let of = names.into_iter().flatten().collect::<Vec<_>>().join("/");
            let change = withdrawal(Method::ClearMemory, &caller, &tenant, &of);
            let clear = plane.clear_memory(&tenant, server.as_ref(), tool.as_ref());
            let effect = |cleared: &u64| Effect {
                removed: usize::try_from(*cleared).unwrap_or(usize::MAX),
                ..Effect::default()
            };
            let cleared = edge.pipeline.change(change, clear, effect).await?;
            Ok(ClearMemoryResponse { cleared: u32::try_from(cleared).unwrap_or(u32::MAX) })
        };
        self.edge.call(Method::ClearMemory, call, work).await
    }
}

fn server(name: &str) -> Result<Option<ServerName>, Error> {
    (!name.is_empty()).then(|| ServerName::parse(name)).transpose()
}

/// Parses the server and tool to forget, and reports all problems in one error.
fn parse(message: &ClearMemoryRequest) -> Result<(Option<ServerName>, Option<ToolName>), Error> {
    let mut fields = Fields::default();
    let name = &message.name;
    let server = fields.take("server", server(&message.server)).flatten();
    let tool = (!name.is_empty()).then(|| ToolName::parse(name)).transpose();
    let tool = fields.take("name", tool).flatten();
    let is_alone = !name.is_empty() && message.server.is_empty();
    fields.require(!is_alone, "name", "is of a server: name that too");
    fields.finish()?;
    Ok((server, tool))
}

fn render(stats: &MemoryStats) -> GetMemoryStatsResponse {
    let tool = |one: &ToolStats| v1::ToolMemory {
        server: one.tool.server.as_str().to_owned(),
        name: one.tool.name.as_str().to_owned(),
        exemplars: one.exemplars,
        last_call_time: Some(timestamp(one.seen_ms)),
    };
    GetMemoryStatsResponse {
        enabled: stats.enabled,
        exemplars: stats.tools.iter().map(|one| one.exemplars).sum(),
        tools: stats.tools.iter().take(TOOLS_SHOWN).map(tool).collect(),
    }
}

fn timestamp(millis: i64) -> Timestamp {
    let nanos = i32::try_from(millis.rem_euclid(1_000) * 1_000_000).unwrap_or(0);
    Timestamp { seconds: millis.div_euclid(1_000), nanos }
}
