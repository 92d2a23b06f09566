//! Services of the contract that this version does not serve: every call says so with an `ErrorInfo`,
//! which a client can tell from a service that is not there.

use tonic::{Request, Response, Status};
use toolgate_proto::v1::encoder_service_server::EncoderService;
use toolgate_proto::v1::policy_service_server::PolicyService;
use toolgate_proto::v1::{
    CheckPolicyRequest, CheckPolicyResponse, DescribeRequest, DescribeResponse, EmbedRequest,
    EmbedResponse, GetPolicyRequest, GetPolicyResponse, SetPolicyRequest, SetPolicyResponse,
};

use super::edge::Edge;

/// The face of what is not served.
pub(super) struct Unserved {
    pub(super) edge: Edge,
}

#[tonic::async_trait]
impl PolicyService for Unserved {
    async fn set_policy(
        &self,
        _: Request<SetPolicyRequest>,
    ) -> Result<Response<SetPolicyResponse>, Status> {
        Err(self.edge.unserved("PolicyService/SetPolicy"))
    }

    async fn get_policy(
        &self,
        _: Request<GetPolicyRequest>,
    ) -> Result<Response<GetPolicyResponse>, Status> {
        Err(self.edge.unserved("PolicyService/GetPolicy"))
    }

    async fn check_policy(
        &self,
        _: Request<CheckPolicyRequest>,
    ) -> Result<Response<CheckPolicyResponse>, Status> {
        Err(self.edge.unserved("PolicyService/CheckPolicy"))
    }
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
