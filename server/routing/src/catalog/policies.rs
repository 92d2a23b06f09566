//! Stored policies: checked before they are set, and versioned with the catalog's revisions.

use super::Catalog;
use toolgate_core::error::{Error, FieldViolation};
use toolgate_core::identity::TenantId;
use toolgate_core::policy::Policy;
use toolgate_store::{PolicyChange, StoreError, StoredCatalog, StoredPolicy};

/// Maximum attempts at a commit while other callers change the same policy.
const TRIES: usize = 8;

impl Catalog {
    /// Replaces the tenant's policy. Setting the same document again changes nothing.
    ///
    /// # Errors
    /// An invalid document, a stale etag, or a store that can't be reached. Nothing is stored then.
    pub async fn set_policy(
        &self,
        tenant: &TenantId,
        document: String,
        etag: &str,
    ) -> Result<StoredPolicy, Error> {
        let text = document.clone();
        // Compiling expressions keeps a core busy, so it runs outside the async threads.
        let parse = move || parse(&text);
        let policy = tokio::task::spawn_blocking(parse).await.map_err(Error::internal)??;
        for _ in 0..TRIES {
            let stored = self.store.read_policy(tenant).await?;
            let actual = stored.as_ref().map_or_else(String::new, StoredPolicy::etag);
            if !etag.is_empty() && etag != actual {
                return Err(Error::EtagMismatch { expected: etag.to_owned(), actual });
            }
            let base = stored.as_ref().map(|stored| stored.revision);
            if let Some(same) = stored.filter(|stored| stored.document == document) {
                return Ok(same);
            }
            let change = PolicyChange { base, document: document.clone(), hides: policy.hides() };
            match self.store.set_policy(tenant, change).await {
                Ok(committed) => {
                    let revision = committed.revision;
                    let updated_ms = committed.updated_ms;
                    return Ok(StoredPolicy { document, revision, updated_ms });
                }
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let what = "policy conflicted with other changes of this tenant's policy";
        Err(Error::Contended { what, tries: TRIES })
    }

    /// Returns the tenant's policy, or `None` if none was ever set.
    ///
    /// # Errors
    /// No such tenant, or a store that can't be reached.
    pub async fn policy(&self, tenant: &TenantId) -> Result<Option<StoredPolicy>, Error> {
        self.must_exist(tenant).await?;
        Ok(self.store.read_policy(tenant).await?)
    }

    /// Returns the tenant's whole catalog with its policy.
    ///
    /// # Errors
    /// No such tenant, or a store that can't be reached.
    pub async fn whole(&self, tenant: &TenantId) -> Result<StoredCatalog, Error> {
        let catalog = self.store.load_catalog(tenant).await?;
        catalog.ok_or_else(|| Error::TenantNotFound(tenant.as_str().to_owned()))
    }
}

/// Parses a policy document. Each mistake is reported with the field at fault.
///
/// # Errors
/// [`Error::InvalidFields`] if the document is invalid.
pub fn parse(document: &str) -> Result<Policy, Error> {
    if document.is_empty() {
        let problem = "is missing: `{}` is a policy that says nothing";
        return Err(Error::field("document", problem));
    }
    Policy::parse(document).map_err(|mistakes| {
        let violation = |mistake: &toolgate_core::policy::PolicyMistake| {
            FieldViolation::new("document", mistake.to_string())
        };
        Error::InvalidFields(mistakes.iter().map(violation).collect())
    })
}
