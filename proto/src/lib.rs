//! The wire contract of Toolgate: messages and services of `toolgate.v1`, generated from the `.proto` files beside this
//! crate, and the closed set of error reasons. The crate has no behaviour of its own.

/// Domain of every `google.rpc.ErrorInfo` that the service sends.
pub const ERROR_DOMAIN: &str = "toolgate";

/// Messages, clients and servers of the package `toolgate.v1`.
#[allow(missing_docs, clippy::all, clippy::pedantic, reason = "generated code")]
#[rustfmt::skip]
pub mod v1 {
    include!("gen/toolgate.v1.rs");

    /// Encoded `google.protobuf.FileDescriptorSet` of this package, for gRPC reflection.
    pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("gen/descriptors.bin");
}

impl v1::ErrorReason {
    /// Returns the name that `google.rpc.ErrorInfo.reason` carries, such as `INVALID_FIELD`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.as_str_name().strip_prefix("ERROR_REASON_").unwrap_or("UNSPECIFIED")
    }

    /// Returns the reason with that name, or `None` for a name from a newer contract.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::from_str_name(&format!("ERROR_REASON_{name}"))
    }
}
