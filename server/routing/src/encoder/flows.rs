//! Whose turn it is at the encoders: tenants take turns, and so do a tenant's agents and its registrations. These embed
//! for minutes, and nobody waits for them as for an agent's answer: they get what agents leave, and a little at least.

use sha2::{Digest, Sha256};
use toolgate_encoder::Flow;

use toolgate_core::identity::TenantId;

/// The flow of what a tenant's agents ask for. The same in every replica, since replicas share workers.
#[must_use]
pub fn flow_of_intents(tenant: &TenantId) -> Flow {
    Flow::new(number(b"intents", tenant))
}

/// The flow of what a tenant registers.
#[must_use]
pub fn flow_of_passages(tenant: &TenantId) -> Flow {
    Flow::yielding(number(b"passages", tenant))
}

/// A number of 63 bits.
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
