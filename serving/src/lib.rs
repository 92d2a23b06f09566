//! Shared foundations of every process of Toolgate that serves gRPC: bounded connections, bounds on the resources of
//! each, deadlines read from the wire, reasons for errors of the transport, a shutdown that ends in time, logging and
//! tracing. The services themselves live elsewhere.

mod answers;
mod arrival;
mod certificate;
mod connections;
mod deadline;
mod grpc;
mod limits;
mod owner;
mod pages;
mod refusal;
mod requests;
mod shares;
mod stopping;
mod tls;
mod transport;

pub use answers::{BoundAnswers, OPEN_COST};
pub use arrival::Arrival;
pub use certificate::PeerCertificate;
pub use connections::{
    BoundedListener, Connection, ConnectionLimits, ConnectionRefusal, Connections, CredentialScope,
    Network, Peer,
};
pub use deadline::time_asked;
pub use grpc::{ExplainUndecoded, Explained};
pub use limits::{open_as_many_files_as_allowed, outlive_file_size_limit};
pub use owner::RequestOwner;
pub use pages::serve_pages;
pub use requests::{
    BodyPace, BodyTime, BoundRequests, BoundedService, IncomingRequest, RefusedRequest,
    RequestRefusal, Stage,
};
pub use shares::{Owner, Share, Shares};
pub use stopping::{drained_or_cut, stop_on_signal};
pub use tls::{Tls, TlsError, TlsFiles};
pub use transport::{ending_after, transport};
