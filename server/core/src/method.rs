//! Methods of the service: the single table of their names, roles and kinds of work. Protocols map their own paths to
//! these.

use std::time::Duration;

use crate::role::{Role, Roles};

/// Maximum time of a registration. It embeds every new summary, which takes a CPU minutes for thousands of tools.
pub const REGISTRATION_TIME: Duration = Duration::from_secs(600);

/// Method of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// Chooses the active set of a turn.
    Route,
    /// Checks the model's calls.
    Gate,
    /// Finds tools for a query.
    SearchTools,
    /// Lists the summaries of a catalog.
    GetSummaryPool,
    /// Returns the definitions of named tools.
    BatchGetToolSchemas,
    /// Registers an MCP server's catalog.
    RegisterServer,
    /// Removes an MCP server and its tools.
    UnregisterServer,
    /// Returns an MCP server.
    GetServer,
    /// Lists the MCP servers of a tenant.
    ListServers,
    /// Lists tools.
    ListTools,
    /// Streams changes of a catalog.
    WatchCatalog,
    /// Approves quarantined tools.
    ApproveTools,
    /// Replaces a tenant's policy.
    SetPolicy,
    /// Returns a tenant's policy.
    GetPolicy,
    /// Reports what a policy would do.
    CheckPolicy,
    /// Returns a tenant's usage.
    GetUsage,
    /// Returns the size of a tenant's memory.
    GetMemoryStats,
    /// Deletes a tenant's memory.
    ClearMemory,
}

/// Kind of a method's work, which decides how its calls are admitted and how long they may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// The caller waits for it.
    Interactive,
    /// It makes or checks a change, and may embed or check a whole catalog.
    Change,
    /// It registers a catalog: a change that may take minutes, since a CPU embeds every new summary.
    Registration,
    /// It is a stream, which lives until the caller or the service ends it.
    Stream,
}

impl Method {
    /// All methods.
    pub const ALL: [Self; 18] = [
        Self::Route,
        Self::Gate,
        Self::SearchTools,
        Self::GetSummaryPool,
        Self::BatchGetToolSchemas,
        Self::RegisterServer,
        Self::UnregisterServer,
        Self::GetServer,
        Self::ListServers,
        Self::ListTools,
        Self::WatchCatalog,
        Self::ApproveTools,
        Self::SetPolicy,
        Self::GetPolicy,
        Self::CheckPolicy,
        Self::GetUsage,
        Self::GetMemoryStats,
        Self::ClearMemory,
    ];

    /// Returns the name in metrics, spans and the audit, such as `RouterService/Route`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Route => "RouterService/Route",
            Self::Gate => "RouterService/Gate",
            Self::SearchTools => "RouterService/SearchTools",
            Self::GetSummaryPool => "RouterService/GetSummaryPool",
            Self::BatchGetToolSchemas => "RouterService/BatchGetToolSchemas",
            Self::RegisterServer => "CatalogService/RegisterServer",
            Self::UnregisterServer => "CatalogService/UnregisterServer",
            Self::GetServer => "CatalogService/GetServer",
            Self::ListServers => "CatalogService/ListServers",
            Self::ListTools => "CatalogService/ListTools",
            Self::WatchCatalog => "CatalogService/WatchCatalog",
            Self::ApproveTools => "CatalogService/ApproveTools",
            Self::SetPolicy => "PolicyService/SetPolicy",
            Self::GetPolicy => "PolicyService/GetPolicy",
            Self::CheckPolicy => "PolicyService/CheckPolicy",
            Self::GetUsage => "UsageService/GetUsage",
            Self::GetMemoryStats => "MemoryService/GetMemoryStats",
            Self::ClearMemory => "MemoryService/ClearMemory",
        }
    }

    /// Returns the method of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Returns the roles that may call it, beside admins.
    #[must_use]
    pub const fn roles(self) -> Roles {
        match self {
            Self::Route
            | Self::Gate
            | Self::SearchTools
            | Self::GetSummaryPool
            | Self::BatchGetToolSchemas => Roles::of(&[Role::Agent]),
            // An agent may list tools only with `as_agent`, which shows what the agent itself sees.
            Self::ListTools | Self::WatchCatalog => Roles::of(&[Role::Agent, Role::CatalogWriter]),
            // A caller that registers tools must not also approve them.
            Self::ApproveTools => Roles::of(&[Role::Admin]),
            Self::RegisterServer
            | Self::UnregisterServer
            | Self::GetServer
            | Self::ListServers
            | Self::SetPolicy
            | Self::GetPolicy
            | Self::CheckPolicy
            | Self::GetUsage
            | Self::GetMemoryStats
            | Self::ClearMemory => Roles::of(&[Role::CatalogWriter]),
        }
    }

    /// Returns the kind of its work.
    #[must_use]
    pub const fn work(self) -> Work {
        match self {
            Self::RegisterServer => Work::Registration,
            Self::WatchCatalog => Work::Stream,
            Self::UnregisterServer
            | Self::ApproveTools
            | Self::SetPolicy
            | Self::CheckPolicy
            | Self::ClearMemory => Work::Change,
            Self::Route
            | Self::Gate
            | Self::SearchTools
            | Self::GetSummaryPool
            | Self::BatchGetToolSchemas
            | Self::GetServer
            | Self::ListServers
            | Self::ListTools
            | Self::GetPolicy
            | Self::GetUsage
            | Self::GetMemoryStats => Work::Interactive,
        }
    }

    /// Returns the maximum time of a call, from its arrival, where `max_deadline` is that of most methods. Returns `None`
    /// for a stream, which lives until its caller or the service ends it.
    #[must_use]
    pub fn longest(self, max_deadline: Duration) -> Option<Duration> {
        match self.work() {
            Work::Registration => Some(REGISTRATION_TIME.max(max_deadline)),
            Work::Interactive | Work::Change => Some(max_deadline),
            Work::Stream => None,
        }
    }

    /// Returns the greatest maximum time of all methods that have one.
    #[must_use]
    pub fn longest_of_all(max_deadline: Duration) -> Duration {
        let each = Self::ALL.into_iter().filter_map(|method| method.longest(max_deadline));
        each.max().unwrap_or(max_deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_methods() {
        for method in Method::ALL {
            assert_eq!(Method::named(method.name()), Some(method));
        }
        assert_eq!(Method::named("RouterService/route"), None);
        assert_eq!(Method::named(""), None);
    }

    #[test]
    fn only_streams_have_no_maximum_time() {
        let short = Duration::from_secs(30);
        let long = 2 * REGISTRATION_TIME;
        assert_eq!(Method::WatchCatalog.longest(short), None);
        assert_eq!(Method::RegisterServer.longest(short), Some(REGISTRATION_TIME));
        assert_eq!(Method::RegisterServer.longest(long), Some(long));
        let others = Method::ALL
            .into_iter()
            .filter(|method| !matches!(method, Method::WatchCatalog | Method::RegisterServer));
        for method in others {
            assert_eq!(method.longest(short), Some(short), "{method:?}");
        }
        assert_eq!(Method::longest_of_all(short), REGISTRATION_TIME);
        assert_eq!(Method::longest_of_all(long), long);
    }
}
