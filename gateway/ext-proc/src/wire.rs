//! Messages of the protocol, and the answers that are made of them.

use bytes::Bytes;
use http::StatusCode;

use v3::body_mutation::Mutation;
use v3::processing_response::Response;
use v3::{
    BodyMutation, BodyResponse, BodySendMode, CommonResponse, HeaderMutation, HeaderSendMode,
    HeadersResponse, HttpStatus, ImmediateResponse, ProcessingMode, ProcessingResponse,
    StreamedBodyResponse, TrailersResponse,
};

/// Messages and the server of the package `envoy.service.ext_proc.v3`.
#[allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::all,
    clippy::pedantic,
    reason = "generated code"
)]
#[rustfmt::skip]
pub(crate) mod v3 {
    include!("gen/envoy.service.ext_proc.v3.rs");
}

/// Largest piece of a body that is sent, in bytes.
const PIECE_MAX: usize = 64 << 10;

/// Part of an exchange that a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Request,
    Response,
}

fn common(headers: Option<HeaderMutation>, body: Option<Mutation>) -> CommonResponse {
    let body_mutation = body.map(|mutation| BodyMutation { mutation: Some(mutation) });
    CommonResponse { header_mutation: headers, body_mutation }
}

fn message(response: Response) -> ProcessingResponse {
    ProcessingResponse { response: Some(response), mode_override: None }
}

/// Answers headers.
pub(crate) fn headers(side: Side, mutation: Option<HeaderMutation>) -> ProcessingResponse {
    let answer = HeadersResponse { response: Some(common(mutation, None)) };
    message(match side {
        Side::Request => Response::RequestHeaders(answer),
        Side::Response => Response::ResponseHeaders(answer),
    })
}

fn body_message(side: Side, common: CommonResponse) -> ProcessingResponse {
    let answer = BodyResponse { response: Some(common) };
    message(match side {
        Side::Request => Response::RequestBody(answer),
        Side::Response => Response::ResponseBody(answer),
    })
}

/// Answers a whole body, with another if there is one.
pub(crate) fn whole_body(
    side: Side,
    mutation: Option<HeaderMutation>,
    body: Option<Bytes>,
) -> ProcessingResponse {
    body_message(side, common(mutation, body.map(Mutation::Body)))
}

/// Writes the next pieces of a body.
pub(crate) fn pieces(side: Side, mut body: Bytes, is_last: bool) -> Vec<ProcessingResponse> {
    let mut messages = Vec::with_capacity(body.len() / PIECE_MAX + 1);
    loop {
        let piece = body.split_to(body.len().min(PIECE_MAX));
        let end_of_stream = is_last && body.is_empty();
        let streamed = StreamedBodyResponse { body: piece, end_of_stream };
        messages.push(body_message(side, common(None, Some(Mutation::StreamedResponse(streamed)))));
        if body.is_empty() {
            return messages;
        }
    }
}

/// Answers trailers.
pub(crate) fn trailers(side: Side) -> ProcessingResponse {
    message(match side {
        Side::Request => Response::RequestTrailers(TrailersResponse {}),
        Side::Response => Response::ResponseTrailers(TrailersResponse {}),
    })
}

/// Answers the host in the place of the provider.
pub(crate) fn immediate(
    status: StatusCode,
    headers: HeaderMutation,
    body: Bytes,
) -> ProcessingResponse {
    message(Response::ImmediateResponse(ImmediateResponse {
        status: Some(HttpStatus { code: status.as_u16().into() }),
        headers: Some(headers),
        body,
        details: "toolgate".to_owned(),
    }))
}

/// Answers a request's headers, and asks for the bodies that Envoy does not send by itself.
pub(crate) fn with_bodies(mutation: Option<HeaderMutation>) -> ProcessingResponse {
    let mode = ProcessingMode {
        request_header_mode: HeaderSendMode::Send.into(),
        response_header_mode: HeaderSendMode::Send.into(),
        // What does not fit goes on as it came.
        request_body_mode: BodySendMode::BufferedPartial.into(),
        response_body_mode: BodySendMode::FullDuplexStreamed.into(),
        request_trailer_mode: HeaderSendMode::Skip.into(),
        response_trailer_mode: HeaderSendMode::Send.into(),
    };
    ProcessingResponse { mode_override: Some(mode), ..headers(Side::Request, mutation) }
}
