//! Services of the contract that this version does not implement. Every call fails with an `ErrorInfo`, so that clients
//! can tell this from an unknown service.

use tonic::{Request, Response, Status};
use toolgate_proto::v1::encoder_service_server::EncoderService;
use toolgate_proto::v1::{DescribeRequest, DescribeResponse, EmbedRequest, EmbedResponse};

use super::edge::Edge;

/// Implementation of services that are not served.
pub(super) struct Unserved {
    pub(super) edge: Edge,
}

#[tonic::async_trait]
impl EncoderService for Unserved {
    async fn embed(&self, _: Request<EmbedRequest>) -> Result<Response<EmbedResponse>, Status> {
        Err(self.edge.unserved("EncoderService/Embed"))
    }

    async fn describe(
        &self,
        _: Request<DescribeRequest>,
    ) -> Result<Response<DescribeResponse>, Status> {
        Err(self.edge.unserved("EncoderService/Describe"))
    }
}
