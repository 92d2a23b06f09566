//! RPCs of `MemoryService`.

use toolgate_proto::v1;

use crate::call::{Repeat, Rpc};
use crate::client::Client;
use crate::error::Error;

impl Client {
    /// Returns counts of the tenant's remembered calls.
    ///
    /// # Errors
    /// The call failed; see [`Error`].
    pub async fn get_memory_stats(
        &self,
        mut request: v1::GetMemoryStatsRequest,
    ) -> Result<v1::GetMemoryStatsResponse, Error> {
        self.fill_tenant(&mut request.tenant);
        self.call(Rpc::read("GetMemoryStats"), request, |request| {
            let mut service = self.memory();
            async move { service.get_memory_stats(request).await }
        })
        .await
    }

    /// Deletes the remembered calls of the tenant, or of some tools.
    ///
    /// # Errors
    /// The call failed; see [`Error`].
    pub async fn clear_memory(
        &self,
        mut request: v1::ClearMemoryRequest,
    ) -> Result<v1::ClearMemoryResponse, Error> {
        self.fill_tenant(&mut request.tenant);
        self.call(Rpc::change("ClearMemory", Repeat::Safe), request, |request| {
            let mut service = self.memory();
            async move { service.clear_memory(request).await }
        })
        .await
    }
}
