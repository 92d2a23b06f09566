//! Flows, by which the encoder shares its time: tenants take turns, and so do a tenant's agents and its registrations.
//! Registrations embed for minutes and no agent waits for them. They get the time that agents leave, and always a small
//! share.

use sha2::{Digest, Sha256};
use toolgate_encoder::Flow;

use toolgate_core::identity::TenantId;

/// Returns the flow of the intents of a tenant's agents. It is the same in every replica, because replicas share
/// workers.
#[must_use]
pub fn flow_of_intents(tenant: &TenantId) -> Flow {
    Flow::new(number(b"intents", tenant))
}

/// Returns the flow of a tenant's registrations.
#[must_use]
pub fn flow_of_passages(tenant: &TenantId) -> Flow {
    Flow::yielding(number(b"passages", tenant))
}

/// Returns a hash of 63 bits.
fn number(kind: &[u8], tenant: &TenantId) -> u64 {
    let mut hash = Sha256::new();
    hash.update(kind);
    hash.update([0]);
    hash.update(tenant.as_str());
    let hash: [u8; 32] = hash.finalize().into();
    let (first, _) = hash.as_chunks::<8>();
    u64::from_le_bytes(first[0]) >> 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_of_one_tenant_and_one_kind() {
        let tenant = |name| TenantId::parse(name).expect("a tenant");
        let a = tenant("a");
        let b = tenant("b");
        assert_eq!(flow_of_intents(&a), flow_of_intents(&tenant("a")));
        assert_ne!(flow_of_intents(&a), flow_of_intents(&b));
        assert_ne!(flow_of_intents(&a), flow_of_passages(&a));
        for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
            let agents = flow_of_intents(&tenant(name)).number();
            assert_eq!(Flow::yielding(agents).number(), agents + (1 << 63), "agents don't yield");
        }
    }
}
