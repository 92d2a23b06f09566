//! Addresses by which hosts reach the gateway.

use std::net::SocketAddr;

use super::{Config, GatewayConfig};

impl Config {
    /// Checks that the gateway is not open to other machines without authentication, unless the file says so.
    ///
    /// # Errors
    /// The problem, and a remedy.
    pub fn check_exposure(&self) -> Result<(), String> {
        let Self { gateway: GatewayConfig { listen, auth, .. }, .. } = self;
        if listen.ip().is_loopback() || !auth.methods.is_empty() || auth.allow_anybody {
            return Ok(());
        }
        Err(format!(
            "other machines reach {listen}, and nothing says who may call: set gateway.auth.methods, or \
             gateway.auth.allow_anybody = true"
        ))
    }

    /// Returns the URL by which hosts reach the gateway, without a slash at the end.
    #[must_use]
    pub fn base_url(&self, address: SocketAddr) -> String {
        match self.gateway.public_url.trim_end_matches('/') {
            "" => format!("{}://{address}", self.gateway.scheme()),
            url => url.to_owned(),
        }
    }

    /// Returns the audiences of tokens for this gateway: the URLs of its faces, and those that the file names.
    #[must_use]
    pub fn audiences(&self, address: SocketAddr) -> Vec<String> {
        let base = self.base_url(address);
        let servers = self.server.keys().map(|server| format!("{base}/mcp/s/{server}"));
        let faces =
            ["", "/", "/mcp", "/mcp/all", "/mcp/search"].map(|face| format!("{base}{face}"));
        let named = self.gateway.auth.audiences.iter().cloned();
        faces.into_iter().chain(servers).chain(named).collect()
    }
}
