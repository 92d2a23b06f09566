//! Tests of requests that wait in the runtime. A single thread serves all, so that the order of events is known.

use std::os::fd::AsFd as _;
use std::time::Instant as Moment;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;
use crate::{Arrival, BodyPace, BoundRequests, Stage};

const END_STREAM: u8 = 1;

/// Blocks the thread until the clock has advanced, and returns the new time.
fn hold() -> Moment {
    let begun = Moment::now();
    loop {
        let now = Moment::now();
        if now > begun {
            return now;
        }
    }
}

/// Call as the layer and the service saw it.
struct Seen {
    arrival: Arrival,
    /// Time when the service released the thread.
    left: Moment,
}

/// Serves calls over `connections`; each blocks the thread for a moment. The first receiver gets each call as it was
/// seen, the second one the waiting times passed to the admission callback.
fn serve_holding(
    connections: Vec<Connection>,
) -> (UnboundedReceiver<Seen>, UnboundedReceiver<Duration>) {
    let (tell_seen, seen) = unbounded_channel();
    let (tell_waited, waited) = unbounded_channel();
    let pace = BodyPace::within(Duration::from_secs(600));
    let bounds = BoundRequests::new(10 * connections.len(), pace, |_| {}).asking(move |request| {
        if request.stage == Stage::Begins {
            tell_waited.send(request.waited).expect("the test listens");
        }
        Ok(())
    });
    let answer = service_fn(move |request: Request<tonic::body::Body>| {
        let arrival = Arrival::of(request.extensions());
        tell_seen.send(Seen { arrival, left: hold() }).expect("the test listens");
        async { Ok::<_, std::convert::Infallible>(Response::new(tonic::body::Body::empty())) }
    });
    let incoming = tokio_stream::iter(connections.into_iter().map(Ok::<_, io::Error>));
    tokio::spawn(transport().layer(bounds).serve_with_incoming(answer, incoming));
    (seen, waited)
}

/// Reads until these bytes have come.
async fn read_until(stream: &mut TcpStream, expected: &[u8]) {
    let mut read = Vec::new();
    while !read.windows(expected.len()).any(|window| window == expected) {
        assert!(stream.read_buf(&mut read).await.expect("it is open") > 0, "it was closed");
    }
}

#[tokio::test]
async fn calls_that_waited_for_the_thread_count_from_their_first_bytes() {
    let calls = 20;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let mut incoming = Connections::new(listener, ConnectionLimits::of(calls), |_| {});
    let mut clients = Vec::new();
    let mut connections = Vec::new();
    let mut sockets = Vec::new();
    for _ in 0..calls {
        let mut client = TcpStream::connect(address).await.expect("it listens");
        client.write_all(BEGUN).await.expect("it is taken");
        clients.push(client);
        let connection = tokio_stream::StreamExt::next(&mut incoming).await;
        let connection = connection.expect("open").expect("a connection");
        let Bytes::Plain(socket) = &connection.stream else { unreachable!("no TLS here") };
        let socket = socket.as_fd().try_clone_to_owned().expect("room for a descriptor");
        sockets.push(std::net::TcpStream::from(socket));
        connections.push(connection);
    }
    let (mut seen, mut waited) = serve_holding(connections);
    for client in &mut clients {
        read_until(client, b"\0\0\0\x04\x01\0\0\0\0").await;
    }
    let (bell, rung) = tokio::net::UnixStream::pair().expect("a pair");
    bell.writable().await.expect("it is open");
    // The runtime can't poll sockets until every request is in its own socket, and then sees all of them.
    let sent = Moment::now();
    let call = request(1, END_STREAM);
    for (client, socket) in clients.iter().zip(&sockets) {
        assert_eq!(client.try_write(&call).expect("there is room"), call.len());
        while !socket.peek(&mut [0; 64]).is_ok_and(|there| there == call.len()) {
            std::thread::yield_now();
        }
    }
    bell.try_write(b"!").expect("there is room");
    rung.readable().await.expect("it is open");
    let held = Moment::now();
    hold();
    let mut before = sent;
    for _ in 0..calls {
        let Seen { arrival, left } = seen.recv().await.expect("it serves");
        assert!((sent..=held).contains(&arrival.at), "it could be read before the thread was held");
        assert!(arrival.at + arrival.waited >= before, "it waited for those before it");
        assert_eq!(waited.try_recv(), Ok(arrival.waited), "and that is asked when it begins");
        before = left;
    }
}
