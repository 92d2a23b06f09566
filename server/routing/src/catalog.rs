//! Catalogs that tenants register: parsing of MCP bodies, derived fields, upserts and plain reads of stored content.
//! Ranking and indexes are in other modules.

use std::sync::Arc;

use crate::encoder::Encoder;
pub use hubs::Hubs;
pub use metrics::SafetyMetrics;
use share::Share;
use toolgate_config::LimitsConfig;
use toolgate_core::error::Error;
use toolgate_core::identity::{ServerName, TenantId};
use toolgate_core::live::Live;
use toolgate_store::{CatalogStore, Committed, StoreError, StoredServer, StoredTool, ToolCursor};
use vetting::Vetting;

pub mod approval;
pub mod check;
pub mod definition;
mod hubs;
pub mod json_text;
mod metrics;
pub mod outcome;
pub mod plan;
pub mod policies;
pub mod registration;
pub mod sample;
pub mod share;
pub mod signature;
pub mod summary;
pub mod tools_list;
pub mod verify;
pub mod vetting;

/// Catalogs of all tenants.
#[derive(Clone)]
pub struct Catalog {
    store: Arc<dyn CatalogStore>,
    encoder: Arc<dyn Encoder>,
    limits: Arc<Live<LimitsConfig>>,
    vetting: Option<Vetting>,
    hubs: Option<Hubs>,
    share: Arc<Share>,
}

impl Catalog {
    /// Creates the catalogs kept in `store`. `encoder` embeds the summaries of tools.
    #[must_use]
    pub fn new(
        store: Arc<dyn CatalogStore>,
        encoder: Arc<dyn Encoder>,
        limits: Arc<Live<LimitsConfig>>,
    ) -> Self {
        Self { store, encoder, limits, vetting: None, hubs: None, share: Arc::default() }
    }

    /// Returns the catalogs with vetting of registrations. Without vetting, no new tool is quarantined.
    #[must_use]
    pub fn with_vetting(self, vetting: Option<Vetting>) -> Self {
        Self { vetting, ..self }
    }

    /// Returns the catalogs with a finding for every tool that is near to all requests. This takes effect only with
    /// vetting.
    #[must_use]
    pub fn with_hubs(self, hubs: Option<Hubs>) -> Self {
        Self { hubs, ..self }
    }

    /// Returns the share of the CPU cores that registrations may use.
    #[must_use]
    pub fn share(&self) -> &Arc<Share> {
        &self.share
    }

    /// Removes one MCP server and returns the number of tools removed with it.
    ///
    /// # Errors
    /// No such tenant or server, a stale etag, or a store that can't be reached.
    pub async fn unregister(
        &self,
        tenant: &TenantId,
        server: &ServerName,
        etag: &str,
    ) -> Result<(Committed, u32), Error> {
        let stored = self.server(tenant, server).await?;
        let actual = stored.etag();
        if !etag.is_empty() && etag != actual {
            return Err(Error::EtagMismatch { expected: etag.to_owned(), actual });
        }
        match self.store.remove_server(tenant, server, stored.revision).await {
            Ok(committed) => Ok((committed, stored.tool_count)),
            Err(StoreError::Conflict) => Err(Error::EtagMismatch {
                expected: actual,
                actual: "another one by now".to_owned(),
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns one MCP server.
    ///
    /// # Errors
    /// No such tenant or server, or a store that can't be reached.
    pub async fn server(
        &self,
        tenant: &TenantId,
        server: &ServerName,
    ) -> Result<StoredServer, Error> {
        self.must_exist(tenant).await?;
        let stored = self.store.read_server(tenant, server).await?;
        let (server, _) =
            stored.ok_or_else(|| Error::ServerNotFound(server.as_str().to_owned()))?;
        Ok(server)
    }

    /// Returns up to `page_size` MCP servers after the name `after`, ordered by name.
    ///
    /// # Errors
    /// No such tenant, or a store that can't be reached.
    pub async fn servers(
        &self,
        tenant: &TenantId,
        after: Option<&str>,
        page_size: u32,
    ) -> Result<Vec<StoredServer>, Error> {
        self.must_exist(tenant).await?;
        Ok(self.store.list_servers(tenant, after, page_size).await?)
    }

    /// Returns up to `page_size` tools after `after`, ordered by server and name: of one server, or of all.
    ///
    /// # Errors
    /// No such tenant or server, or a store that can't be reached.
    pub async fn tools(
        &self,
        tenant: &TenantId,
        server: Option<&ServerName>,
        after: Option<&ToolCursor>,
        page_size: u32,
    ) -> Result<Vec<StoredTool>, Error> {
        match server {
            Some(server) => drop(self.server(tenant, server).await?),
            None => self.must_exist(tenant).await?,
        }
        Ok(self.store.list_tools(tenant, server, after, page_size).await?)
    }

    /// Checks that the tenant has, or once had, a catalog.
    ///
    /// # Errors
    /// No such tenant, or a store that can't be reached.
    pub async fn must_exist(&self, tenant: &TenantId) -> Result<(), Error> {
        match self.store.revision(tenant).await? {
            Some(_) => Ok(()),
            None => Err(Error::TenantNotFound(tenant.as_str().to_owned())),
        }
    }
}
