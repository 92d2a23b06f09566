//! Checks that the server's ports are free, or already served by Toolgate.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use toolgate_client::{Client, ClientOptions, Health, RetryOptions};

use super::check::Check;
use toolgate_config::{ServerConfig, keys};

const PATIENCE: Duration = Duration::from_secs(2);
const ROUTER: &str = "toolgate.v1.RouterService";

pub(super) async fn check(config: &ServerConfig) -> Vec<Check> {
    let grpc =
        check_port("gRPC port", keys::SERVER_LISTEN.spec.name, config.listen, grpc_answer).await;
    let admin = check_port(
        "admin port",
        keys::SERVER_ADMIN_LISTEN.spec.name,
        config.admin_listen,
        admin_answer,
    )
    .await;
    let mut checks = vec![grpc, admin];
    checks.extend(check_exposure(config.listen));
    checks
}

async fn check_port(
    name: &'static str,
    key: &str,
    address: SocketAddr,
    answer: impl AsyncFnOnce(SocketAddr) -> Option<String>,
) -> Check {
    match TcpListener::bind(address) {
        Ok(_) => Check::ok(name, format!("{address} is free")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            match answer(reachable(address)).await {
                Some(answer) => {
                    Check::ok(name, format!("{address} is served by Toolgate: {answer}"))
                }
                None => Check::fail(name, format!("{address} is taken by something else"))
                    .advice(format!("stop what listens there, or set {key} to another port")),
            }
        }
        Err(error) => Check::fail(name, format!("{address} cannot be listened on: {error}"))
            .advice(format!("set {key} to an address of this machine and a port from 1024 on")),
    }
}

/// Returns the health of a Toolgate server at the address, as text. Returns `None` if none answers there.
async fn grpc_answer(address: SocketAddr) -> Option<String> {
    let options = ClientOptions {
        deadline: PATIENCE,
        connect_timeout: PATIENCE,
        retry: RetryOptions { max_attempts: 1, ..Default::default() },
        ..Default::default()
    };
    let client = Client::connect(&format!("http://{address}"), options).await.ok()?;
    match client.health(ROUTER).await.ok()? {
        Health::Serving => Some("serving".into()),
        Health::NotServing => Some("not serving yet, or draining".into()),
        Health::Unknown => None,
    }
}

/// Sends an HTTP request without a client library, because only the status line is needed.
async fn admin_answer(address: SocketAddr) -> Option<String> {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"GET /livez HTTP/1.0\r\nHost: localhost\r\n\r\n").await?;
        let mut head = [0; 12];
        stream.read_exact(&mut head).await?;
        io::Result::Ok(head)
    };
    let head = timeout(PATIENCE, exchange).await.ok()?.ok()?;
    (head.starts_with(b"HTTP/1.") && head.ends_with(b" 200")).then(|| "/livez answers".into())
}

/// Returns an address for connecting from this machine, for a listener on every interface.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn check_exposure(address: SocketAddr) -> Option<Check> {
    if address.ip().is_loopback() {
        return None;
    }
    let detail = format!(
        "{address} can be reached from other machines, and this version asks nobody who they are"
    );
    Some(Check::warn("exposure", detail).advice(
        "let only trusted machines reach it (firewall, network policy), or set server.listen to 127.0.0.1",
    ))
}

#[cfg(test)]
mod tests {
    use super::super::check::Status;
    use super::*;

    async fn nobody(_: SocketAddr) -> Option<String> {
        None
    }

    fn taken() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        (listener, address)
    }

    #[tokio::test]
    async fn ports_are_free_or_taken_by_somebody() {
        let (listener, address) = taken();
        let check = check_port("p", "server.listen", address, nobody).await;
        assert_eq!(check.status, Status::Fail);
        assert!(check.advice.contains("server.listen"), "{check:?}");
        let ours = async |_| Some("serving".to_owned());
        assert_eq!(check_port("p", "k", address, ours).await.status, Status::Ok);
        drop(listener);
        assert_eq!(check_port("p", "k", address, nobody).await.status, Status::Ok);
        let foreign = "192.0.2.1:7070".parse().expect("an address");
        assert_eq!(check_port("p", "k", foreign, nobody).await.status, Status::Fail);
    }

    #[tokio::test]
    async fn a_stranger_is_not_taken_for_toolgate() {
        let (listener, address) = taken();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                drop(stream);
            }
        });
        assert_eq!(grpc_answer(address).await, None);
        assert_eq!(admin_answer(address).await, None);
    }

    #[tokio::test]
    async fn the_admin_port_is_known_by_its_answer() {
        let (listener, address) = taken();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a caller");
            let answer = b"HTTP/1.1 200 OK\r\n\r\n";
            std::io::Write::write_all(&mut stream, answer).expect("answered");
        });
        assert_eq!(admin_answer(address).await.as_deref(), Some("/livez answers"));
    }

    #[test]
    fn exposure_is_warned_of() {
        let at = |text: &str| check_exposure(text.parse().expect("an address"));
        assert!(at("127.0.0.1:1").is_none() && at("[::1]:1").is_none());
        assert!(at("0.0.0.0:1").is_some_and(|check| check.status == Status::Warn));
        assert_eq!(reachable("0.0.0.0:5".parse().expect("an address")).to_string(), "127.0.0.1:5");
    }
}
