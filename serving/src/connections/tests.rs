use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, timeout};
use tonic::codegen::http::{Request, Response};
use tower::service_fn;

use super::*;
use crate::transport;

#[cfg(unix)]
mod waiting;

const OPENING: Duration = Duration::from_millis(400);

/// Starts a server that answers every call with an empty body and closes connections that do not begin within
/// `OPENING`.
async fn start(max: usize) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let mut incoming = Connections::new(listener, ConnectionLimits::of(max), |_| {});
    incoming.opening_max = Some(OPENING);
    let answer = service_fn(|_: Request<tonic::body::Body>| async {
        Ok::<_, std::convert::Infallible>(Response::new(tonic::body::Body::empty()))
    });
    tokio::spawn(transport().serve_with_incoming(answer, incoming));
    address
}

/// Returns true if the connection was closed within `within` after `sent`.
async fn is_closed_after(address: std::net::SocketAddr, sent: &[u8], within: Duration) -> bool {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.write_all(sent).await.expect("it is taken");
    // The server sends its SETTINGS first, which is no end.
    let mut buffer = Vec::new();
    timeout(within, stream.read_to_end(&mut buffer)).await.is_ok()
}

#[tokio::test]
async fn who_does_not_begin_http2_in_time_is_closed() {
    let address = start(8).await;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for sent in [b"".as_slice(), b"P", &preface[..23], preface] {
        assert!(
            is_closed_after(address, sent, Duration::from_secs(60)).await,
            "{} bytes",
            sent.len()
        );
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
    let started = Instant::now();
    let _silent = [
        TcpStream::connect(address).await.expect("it listens"),
        TcpStream::connect(address).await.expect("it listens"),
    ];
    loop {
        let stream = TcpStream::connect(address).await.expect("it listens");
        let Ok((mut client, connection)) = h2::client::handshake(stream).await else { continue };
        tokio::spawn(connection);
        let request = Request::builder().uri("http://x/").body(()).expect("a request");
        // A refused connection ends without an answer.
        let Ok((answer, _)) = client.send_request(request, true) else { continue };
        if answer.await.is_ok() {
            break;
        }
        assert!(started.elapsed() < OPENING * 150, "nobody else is let in");
        tokio::time::sleep(OPENING / 10).await;
    }
    assert!(started.elapsed() > OPENING / 2, "the places were taken");
}

/// Preface, followed by empty SETTINGS.
const BEGUN: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0abcdefgh";

#[tokio::test]
async fn who_floods_is_read_slowly_and_not_cut_off() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let mut client = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("room");
    let mut incoming = Connections::new(listener, ConnectionLimits::of(1), |_| {});
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

/// Starts a server that lets in `max` connections and treats every call to `/known` as authenticated.
async fn start_closing(max: usize, idle: Duration) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let limits = ConnectionLimits {
        unproven_idle: Some(idle),
        idle: Some(10 * idle),
        ..ConnectionLimits::of(max)
    };
    let incoming = Connections::new(listener, limits, |_| {});
    let answer = service_fn(|request: Request<tonic::body::Body>| async move {
        let peer = request.extensions().get::<Peer>().expect("it came over a connection");
        if request.uri().path() == "/known" {
            peer.prove(Some("acme"));
        }
        Ok::<_, std::convert::Infallible>(Response::new(tonic::body::Body::empty()))
    });
    tokio::spawn(transport().accept_http1(true).serve_with_incoming(answer, incoming));
    address
}

type Client = h2::client::SendRequest<bytes::Bytes>;

async fn connect(address: std::net::SocketAddr) -> (Client, tokio::task::JoinHandle<()>) {
    let stream = TcpStream::connect(address).await.expect("it listens");
    let (client, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
    // Pings are answered, as an attacker would.
    (client, tokio::spawn(async { drop(connection.await) }))
}

async fn ask(client: &mut Client, path: &str) -> bool {
    let request = Request::builder().uri(format!("http://x{path}")).body(()).expect("a request");
    let Ok((answer, _)) = client.send_request(request, true) else { return false };
    answer.await.is_ok()
}

#[tokio::test]
async fn who_never_showed_a_credential_makes_room_for_others() {
    let max = 4;
    let address = start_closing(max, Duration::from_secs(600)).await;
    let (mut known, _open) = connect(address).await;
    assert!(ask(&mut known, "/known").await);
    // Half-sent request heads of HTTP/1.1, and connections that only answer pings.
    let mut slow = TcpStream::connect(address).await.expect("it listens");
    slow.write_all(b"GET /known HTTP/1.1\r\nHost: somewhere\r\n").await.expect("it is taken");
    let mut silent = Vec::new();
    for _ in 0..3 * max {
        silent.push(connect(address).await);
    }
    let (mut new, _open) = connect(address).await;
    assert!(ask(&mut new, "/known").await, "somebody new finds a place");
    assert!(ask(&mut known, "/known").await, "who is known keeps his");
    let mut rest = Vec::new();
    timeout(Duration::from_secs(60), slow.read_to_end(&mut rest)).await.expect("closed").ok();
    let (_, first) = silent.swap_remove(0);
    timeout(Duration::from_secs(60), first).await.expect("closed").expect("no panic");
}

#[tokio::test]
async fn who_asks_nothing_is_closed() {
    let address = start_closing(8, Duration::from_millis(20)).await;
    let (_client, silent) = connect(address).await;
    silent.await.expect("no panic");
}

/// Builds the head of a request on a stream; `flags` are added to END_HEADERS.
fn request(stream: u32, flags: u8) -> Vec<u8> {
    // Indexed fields (RFC 7541, A): POST, http, /; and x as the authority.
    let block = b"\x83\x86\x84\x41\x01x";
    let mut bytes = vec![0, 0, u8::try_from(block.len()).expect("short"), 1, 4 | flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(block);
    bytes
}

/// Builds the head of a request on a stream, followed by its reset.
fn request_and_reset(stream: u32) -> Vec<u8> {
    let mut bytes = request(stream, 0);
    bytes.extend(b"\0\0\x04\x03\0");
    bytes.extend(stream.to_be_bytes());
    bytes.extend(8_u32.to_be_bytes());
    bytes
}

#[tokio::test]
async fn calls_that_were_reset_before_their_turn_do_not_end_the_connection() {
    let address = start(8).await;
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let mut sent = BEGUN.to_vec();
    for call in 0..1_000 {
        sent.extend(request_and_reset(2 * call + 1));
    }
    // The server answers this ping after it has read everything before.
    sent.extend(PING);
    stream.write_all(&sent).await.expect("it is taken");
    let mut answers = Vec::new();
    let pong = b"abcdefgh";
    while !answers.windows(pong.len()).any(|window| window == pong) {
        let mut buffer = [0; 4_096];
        let read = timeout(Duration::from_secs(60), stream.read(&mut buffer)).await;
        let read = read.expect("in time").expect("it is open");
        assert!(read > 0, "the connection was ended");
        answers.extend(&buffer[..read]);
        let text = String::from_utf8_lossy(&answers);
        assert!(!text.contains("too_many_resets"), "{text}");
    }
}
