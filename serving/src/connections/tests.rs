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

/// The preface, and SETTINGS that say nothing.
const BEGUN: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0abcdefgh";

#[tokio::test]
async fn who_floods_is_read_slowly_and_not_cut_off() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let mut client = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("room");
    let mut incoming = Connections::new(listener, 1, || {});
    let mut connection =
        tokio_stream::StreamExt::next(&mut incoming).await.expect("open").expect("a connection");
    client.write_all(BEGUN).await.expect("it is taken");
    client.write_all(&PING.repeat(3_000)).await.expect("buffers have room");
    let (mut buffer, mut read) = (vec![0; 1_000], 0);
    while connection.pause.is_none() {
        read += connection.read(&mut buffer).await.expect("it is open");
    }
    let allowed = BEGUN.len() + 2_047 * PING.len();
    assert!((allowed..=allowed + 2 * buffer.len()).contains(&read), "{read} of {allowed}");
    let next = std::future::poll_fn(|cx| {
        let mut buffer = ReadBuf::new(&mut buffer);
        Poll::Ready(Pin::new(&mut connection).poll_read(cx, &mut buffer).is_pending())
    });
    assert!(next.await, "for now nothing more is read");
    let more = connection.read(&mut buffer).await.expect("it is open");
    assert!(more > 0, "and then more is");
}

#[tokio::test]
async fn calls_with_pings_between_them_are_never_held_up() {
    let address = start(8).await;
    let stream = TcpStream::connect(address).await.expect("it listens");
    let (mut client, mut connection) = h2::client::handshake(stream).await.expect("HTTP/2");
    let mut pings = connection.ping_pong().expect("the first to ask");
    tokio::spawn(connection);
    for _ in 0..3_000 {
        let request = Request::builder().uri("http://x/").body(()).expect("a request");
        let (answer, _) = client.send_request(request, true).expect("it is open");
        let (answer, pong) = tokio::join!(answer, pings.ping(h2::Ping::opaque()));
        assert!(answer.is_ok() && pong.is_ok());
    }
}
