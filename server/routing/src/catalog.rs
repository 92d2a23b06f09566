//! What tenants register: parsing of MCP bodies, derived fields, the upsert, and plain reads of what is
//! stored. Ranking and indexes live elsewhere.

use std::sync::Arc;

use crate::encoder::Encoder;
pub use hubs::Hubs;
pub use metrics::SafetyMetrics;
use share::Share;
use toolgate_config::LimitsConfig;
use toolgate_core::error::Error;
use toolgate_core::identity::{ServerName, TenantId};
use toolgate_core::live::Live;
use toolgate_store::{Committed, Store, StoreError, StoredServer, StoredTool, ToolCursor};
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
    store: Arc<dyn Store>,
    encoder: Arc<dyn Encoder>,
    limits: Arc<Live<LimitsConfig>>,
    vetting: Option<Vetting>,
    hubs: Option<Hubs>,
    share: Arc<Share>,
}

impl Catalog {
    /// Catalogs in `store`, whose summaries `encoder` embeds.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        encoder: Arc<dyn Encoder>,
        limits: Arc<Live<LimitsConfig>>,
    ) -> Self {
        Self { store, encoder, limits, vetting: None, hubs: None, share: Arc::default() }
    }

    /// The same with registrations vetted; without, nothing new is quarantined.
    #[must_use]
    pub fn with_vetting(self, vetting: Option<Vetting>) -> Self {
        Self { vetting, ..self }
    }

    /// The same with tools told of that are near to everything, where registrations are vetted.
    #[must_use]
    pub fn with_hubs(self, hubs: Option<Hubs>) -> Self {
        Self { hubs, ..self }
    }

    /// The share of the cores that registrations have.
    #[must_use]
    pub fn share(&self) -> &Arc<Share> {
        &self.share
    }

    /// Removes one MCP server, and says how many tools went with it.
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

    /// One MCP server.
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

    /// A page of MCP servers by name, after `after`.
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

    /// A page of tools by server and name, after `after`, of one server or of all.
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

    /// That the tenant ever had a catalog.
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
