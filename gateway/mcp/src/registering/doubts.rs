//! Catalogs that somebody else has changed: what they lack is registered again.

use std::collections::BTreeSet;

use super::Follower;

impl Follower {
    /// Looks at the catalogs that somebody else has changed, and forgets what they lack, so that it is registered again. Returns
    /// false if one could not be looked at.
    pub(super) async fn look_at_doubted(&mut self) -> bool {
        let mut are_known = true;
        let revisions = self.registered.revisions.clone();
        for tenant in revisions.take_doubted() {
            let Some(servers) = self.servers_in_catalog(&tenant).await else {
                revisions.keep_doubt(&tenant);
                are_known = false;
                continue;
            };
            // A server that is announced alone has lost its tools.
            let with_tools = servers.iter().filter(|server| !server.pending);
            let with_tools = with_tools.map(|server| server.name.clone()).collect();
            let lost = self.registered.forget_lost(&tenant, &with_tools);
            if lost.is_empty() {
                revisions.is_whole(&tenant);
            }
            for server in lost {
                tracing::warn!(
                    server,
                    tenant,
                    "the catalog has lost the server: it is registered again"
                );
            }
            let names: BTreeSet<&str> = servers.iter().map(|server| &*server.name).collect();
            self.announced.retain(|(of, server)| *of != tenant || names.contains(&**server));
        }
        are_known
    }
}
