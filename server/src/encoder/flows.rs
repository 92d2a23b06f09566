//! Whose turn it is at the encoders: tenants take turns, and so do a tenant's agents and its registrations, which
//! embed for minutes.

use sha2::{Digest, Sha256};
use toolgate_encoder_worker::Flow;

use crate::identity::TenantId;

/// The flow of what a tenant's agents ask for. The same in every replica, since replicas share workers.
#[must_use]
pub fn flow_of_intents(tenant: &TenantId) -> Flow {
    flow(b"intents", tenant)
}

/// The flow of what a tenant registers.
#[must_use]
pub fn flow_of_passages(tenant: &TenantId) -> Flow {
    flow(b"passages", tenant)
}

fn flow(kind: &[u8], tenant: &TenantId) -> Flow {
    let mut hash = Sha256::new();
    hash.update(kind);
    hash.update([0]);
    hash.update(tenant.as_str());
    let hash: [u8; 32] = hash.finalize().into();
    let (first, _) = hash.as_chunks::<8>();
    Flow::new(u64::from_le_bytes(first[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_of_one_tenant_and_one_kind() {
        let tenant = |name| TenantId::parse(name).expect("a tenant");
        let (a, b) = (tenant("a"), tenant("b"));
        assert_eq!(flow_of_intents(&a), flow_of_intents(&tenant("a")));
        assert_ne!(flow_of_intents(&a), flow_of_intents(&b));
        assert_ne!(flow_of_intents(&a), flow_of_passages(&a));
    }
}
