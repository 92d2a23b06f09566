//! RPCs by their paths, from the descriptors of the contract.

use std::collections::HashMap;

use prost_reflect::{DescriptorPool, MethodDescriptor};
use tonic_health::pb::FILE_DESCRIPTOR_SET as HEALTH_DESCRIPTORS;
use toolgate_proto::v1::FILE_DESCRIPTOR_SET;

use super::failure::Failure;

/// Every RPC of the server, by a path such as `/toolgate.v1.RouterService/Route`.
pub(super) struct Methods(HashMap<String, MethodDescriptor>);

impl Methods {
    /// Collects the RPCs of our contract and of the health service.
    pub(super) fn of_contract() -> Self {
        let mut methods = HashMap::new();
        for descriptors in [FILE_DESCRIPTOR_SET, HEALTH_DESCRIPTORS] {
            let pool = DescriptorPool::decode(descriptors);
            let pool = pool.expect("the descriptors are generated and committed");
            for service in pool.services() {
                let path = |method: &MethodDescriptor| {
                    format!("/{}/{}", service.full_name(), method.name())
                };
                methods.extend(service.methods().map(|method| (path(&method), method)));
            }
        }
        Self(methods)
    }

    /// Returns the unary RPC at a path, or a failure for an unknown path or a streaming RPC.
    pub(super) fn unary(&self, path: &str) -> Result<&MethodDescriptor, Failure> {
        let method = self.0.get(path).ok_or_else(|| Failure::no_such_method(path))?;
        if method.is_server_streaming() || method.is_client_streaming() {
            return Err(Failure::streams(path));
        }
        Ok(method)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn served_rpcs_are_found_and_streams_are_told_apart() {
        let methods = Methods::of_contract();
        for path in ["/toolgate.v1.RouterService/Route", "/grpc.health.v1.Health/Check"] {
            assert!(methods.unary(path).is_ok(), "{path}");
        }
        for path in ["/toolgate.v1.CatalogService/WatchCatalog", "/toolgate.v1.Router/Route", "/"] {
            assert!(methods.unary(path).is_err(), "{path}");
        }
    }
}
