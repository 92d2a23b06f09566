use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, timeout};
use tonic::codegen::http::{Request, Response};
use tower::service_fn;

use super::*;
use crate::transport;

const OPENING: Duration = Duration::from_millis(400);

/// A server that answers every call with nothing, and takes as long as `OPENING` for openings.
async fn start(max: usize) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let mut incoming = Connections::new(listener, max, || {});
    incoming.opening_max = Some(OPENING);
    let answer = service_fn(|_: Request<tonic::body::Body>| async {
        Ok::<_, std::convert::Infallible>(Response::new(tonic::body::Body::empty()))
    });
    tokio::spawn(transport().serve_with_incoming(answer, incoming));
    address
}

/// Whether the connection was closed within some time after `sent`.
async fn is_closed_after(address: std::net::SocketAddr, sent: &[u8], within: Duration) -> bool {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.write_all(sent).await.expect("it is taken");
    // What the server says first, its SETTINGS, is no end.
    let mut buffer = Vec::new();
    timeout(within, stream.read_to_end(&mut buffer)).await.is_ok()
}

#[tokio::test]
async fn who_does_not_begin_http2_in_time_is_closed() {
    let address = start(8).await;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for sent in [b"".as_slice(), b"P", &preface[..23], preface] {
        assert!(is_closed_after(address, sent, OPENING * 10).await, "{} bytes", sent.len());
    }
}

#[tokio::test]
async fn who_has_begun_may_be_silent_for_longer() {
    let address = start(8).await;
    let settings = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    assert!(!is_closed_after(address, settings, OPENING * 3).await);
}

#[tokio::test]
async fn places_of_silent_peers_come_back() {
    let address = start(2).await;
    let _silent = [
        TcpStream::connect(address).await.expect("it listens"),
        TcpStream::connect(address).await.expect("it listens"),
    ];
    let started = Instant::now();
    loop {
        let stream = TcpStream::connect(address).await.expect("it listens");
        let Ok((mut client, connection)) = h2::client::handshake(stream).await else { continue };
        tokio::spawn(connection);
        let request = Request::builder().uri("http://x/").body(()).expect("a request");
        // Refused connections end before they answer.
        let Ok((answer, _)) = client.send_request(request, true) else { continue };
        if answer.await.is_ok() {
            break;
        }
        assert!(started.elapsed() < OPENING * 20, "nobody else is let in");
        tokio::time::sleep(OPENING / 10).await;
    }
    assert!(started.elapsed() > OPENING / 2, "the places were taken");
}
