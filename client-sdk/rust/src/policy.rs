//! RPCs of `PolicyService`, and listings that fetch all verdicts.

use toolgate_proto::v1;

use crate::call::{Repeat, Rpc};
use crate::client::Client;
use crate::error::Error;
use crate::items::{ItemStream, paged};

impl Client {
    /// Replaces the tenant's policy. With an `etag`, the call is not retried after a broken connection, because the
    /// first attempt may have changed the etag.
    ///
    /// # Errors
    /// The call failed; see [`Error`].
    pub async fn set_policy(
        &self,
        mut request: v1::SetPolicyRequest,
    ) -> Result<v1::SetPolicyResponse, Error> {
        self.fill_tenant(&mut request.tenant);
        let repeat = if request.etag.is_empty() { Repeat::Safe } else { Repeat::OnlyIfRefused };
        self.call(Rpc::change("SetPolicy", repeat), request, |request| {
            let mut service = self.policies();
            async move { service.set_policy(request).await }
        })
        .await
    }

    /// Returns the tenant's policy, or an empty document if none was ever set.
    ///
    /// # Errors
    /// The call failed; see [`Error`].
    pub async fn get_policy(
        &self,
        mut request: v1::GetPolicyRequest,
    ) -> Result<v1::GetPolicyResponse, Error> {
        self.fill_tenant(&mut request.tenant);
        self.call(Rpc::read("GetPolicy"), request, |request| {
            let mut service = self.policies();
            async move { service.get_policy(request).await }
        })
        .await
    }

    /// Returns one page of a policy's verdicts on tools.
    ///
    /// # Errors
    /// The call failed; see [`Error`].
    pub async fn check_policy(
        &self,
        mut request: v1::CheckPolicyRequest,
    ) -> Result<v1::CheckPolicyResponse, Error> {
        self.fill_tenant(&mut request.tenant);
        self.call(Rpc::read("CheckPolicy"), request, |request| {
            let mut service = self.policies();
            async move { service.check_policy(request).await }
        })
        .await
    }

    /// Streams a policy's verdicts on tools. It leaves out the `rules` of the first page, which
    /// [`check_policy`](Self::check_policy) and [`check_policy_whole`](Self::check_policy_whole) return.
    pub fn policy_verdicts(
        &self,
        request: v1::CheckPolicyRequest,
    ) -> ItemStream<v1::PolicyVerdict> {
        let client = self.clone();
        paged(request.page_token.clone(), move |page_token| {
            let client = client.clone();
            let request = v1::CheckPolicyRequest { page_token, ..request.clone() };
            async move {
                let page = client.check_policy(request).await?;
                Ok((page.verdicts, page.next_page_token))
            }
        })
    }

    /// Returns all pages of a policy's verdicts on tools as one answer.
    ///
    /// # Errors
    /// The call failed; see [`Error`].
    pub async fn check_policy_whole(
        &self,
        mut request: v1::CheckPolicyRequest,
    ) -> Result<v1::CheckPolicyResponse, Error> {
        let mut whole = v1::CheckPolicyResponse::default();
        if request.page_size == 0 {
            // Few large pages are faster, because the service evaluates the whole catalog for each page.
            request.page_size = 1_000;
        }
        loop {
            let page = self.check_policy(request.clone()).await?;
            whole.verdicts.extend(page.verdicts);
            whole.rules.extend(page.rules);
            if page.next_page_token.is_empty() {
                return Ok(whole);
            }
            request.page_token = page.next_page_token;
        }
    }
}
