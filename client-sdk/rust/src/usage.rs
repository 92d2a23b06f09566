//! RPC of `UsageService`.

use toolgate_proto::v1;

use crate::call::Rpc;
use crate::client::Client;
use crate::error::Error;

impl Client {
    /// Returns the tenant's token ledger for a span of time.
    ///
    /// # Errors
    /// The call failed; see [`Error`].
    pub async fn get_usage(
        &self,
        mut request: v1::GetUsageRequest,
    ) -> Result<v1::GetUsageResponse, Error> {
        self.fill_tenant(&mut request.tenant);
        self.call(Rpc::read("GetUsage"), request, |request| {
            let mut service = self.usage();
            async move { service.get_usage(request).await }
        })
        .await
    }
}
