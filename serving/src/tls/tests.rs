//! Tests with real handshakes: certificates replaced while connections are open, client certificates, and peers that
//! stall.

use std::net::SocketAddr;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_stream::StreamExt as _;
use tonic::transport::server::Connected as _;

use super::*;
use crate::{ConnectionLimits, Connections};

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("signed")
}

/// Makes a certificate and its key (PEM).
fn leaf(issuer: &Issuer, host: &str, uri: Option<&str>) -> (String, String) {
    let mut params = CertificateParams::new(vec![host.to_owned()]).expect("parameters");
    params.distinguished_name.push(DnType::CommonName, "a leaf");
    let uri = uri.map(|uri| SanType::URI(uri.to_owned().try_into().expect("ASCII")));
    params.subject_alt_names.extend(uri);
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, issuer).expect("signed");
    (certificate.pem(), key.serialize_pem())
}

struct Files {
    folder: TempDir,
    issuer: Issuer,
}

impl Files {
    fn new() -> Self {
        let files =
            Self { folder: tempfile::tempdir().expect("a folder"), issuer: authority("server") };
        files.write("one.test");
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, host: &str) {
        let (certificate, key) = leaf(&self.issuer, host, None);
        fs::write(self.path("cert.pem"), certificate).expect("written");
        fs::write(self.path("key.pem"), key).expect("written");
    }

    fn load(&self, clients: Option<(&Issuer, bool)>) -> Tls {
        if let Some((issuer, _)) = clients {
            fs::write(self.path("clients.pem"), issuer.pem()).expect("written");
        }
        Tls::load(TlsFiles {
            certificate: self.path("cert.pem"),
            key: self.path("key.pem"),
            client_authorities: clients.map(|_| self.path("clients.pem")),
            client_certificate_optional: clients.is_some_and(|(_, optional)| optional),
        })
        .expect("good files")
    }

    async fn connect(
        &self,
        address: SocketAddr,
        host: &str,
        shown: Option<&(String, String)>,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).expect("an authority");
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        let mut config = match shown {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = CertificateDer::pem_slice_iter(certificate.as_bytes());
                let chain = chain.collect::<Result<_, _>>().expect("PEM");
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM");
                builder.with_client_auth_cert(chain, key).expect("a pair")
            }
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from(host.to_owned()).expect("a name");
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }
}

/// Starts a server that echoes what it reads, prefixed with the name in the client's certificate.
async fn echo(tls: Arc<Tls>) -> SocketAddr {
    echo_within(tls, Duration::from_secs(30)).await
}

/// Starts the same server with a limit on the time for a handshake.
async fn echo_within(tls: Arc<Tls>, handshake_max: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let mut incoming = Connections::new(listener, ConnectionLimits::of(1_000), |_| {})
        .over_tls(Some(tls))
        .with_handshake_max(handshake_max);
    tokio::spawn(async move {
        while let Some(Ok(mut connection)) = incoming.next().await {
            tokio::spawn(async move {
                let peer = connection.connect_info();
                let mut bytes = [0; 64];
                while let Ok(read @ 1..) = connection.read(&mut bytes).await {
                    let uris = peer.certificate().map_or("nobody".to_owned(), |c| c.uris.concat());
                    let said = [uris.as_bytes(), b": ", &bytes[..read]].concat();
                    connection.write_all(&said).await.ok();
                    connection.flush().await.ok();
                }
            });
        }
    });
    address
}

async fn say(stream: &mut TlsStream<TcpStream>, text: &str) -> std::io::Result<String> {
    stream.write_all(text.as_bytes()).await?;
    let mut bytes = [0; 256];
    let read = timeout(Duration::from_secs(60), stream.read(&mut bytes)).await??;
    Ok(String::from_utf8_lossy(&bytes[..read]).into_owned())
}

const LONG: &str = "more than a connection must begin with, which is thirty-three bytes";

#[tokio::test]
async fn new_certificates_are_for_new_connections() {
    let files = Files::new();
    let tls = Arc::new(files.load(None));
    let address = echo(Arc::clone(&tls)).await;
    let mut first = files.connect(address, "one.test", None).await.expect("a handshake");
    assert_eq!(first.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    assert_eq!(say(&mut first, "a").await.expect("an answer"), "nobody: a");
    assert!(!tls.reload().expect("nothing new"));
    files.write("two.test");
    assert!(tls.reload().expect("new ones"));
    assert!(files.connect(address, "one.test", None).await.is_err());
    files.connect(address, "two.test", None).await.expect("a handshake");
    assert_eq!(say(&mut first, "b").await.expect("it goes on"), "nobody: b");
}

#[tokio::test]
async fn a_bad_pair_changes_nothing_and_is_told_once() {
    let files = Files::new();
    let tls = Arc::new(files.load(None));
    let address = echo(Arc::clone(&tls)).await;
    let good = fs::read(files.path("cert.pem")).expect("the file");
    let other = leaf(&files.issuer, "two.test", None).0.into_bytes();
    for bad in [b"".to_vec(), b"no PEM".to_vec(), other, good[..good.len() / 2].to_vec()] {
        fs::write(files.path("cert.pem"), bad).expect("written");
        let problem = tls.reload().expect_err("it is no good").to_string();
        assert!(problem.contains("cert.pem"), "{problem}");
        assert!(!tls.reload().expect("told before"));
        files.connect(address, "one.test", None).await.expect("the one before");
    }
    fs::remove_file(files.path("cert.pem")).expect("removed");
    assert!(tls.reload().is_err());
    files.write("two.test");
    assert!(tls.reload().expect("good again"));
    files.connect(address, "two.test", None).await.expect("a handshake");
    assert!(tls.not_after_ms() > 0);
}

#[tokio::test]
async fn client_certificates_are_verified_and_said() {
    let files = Files::new();
    let clients = authority("clients");
    let strangers = authority("strangers");
    let good = leaf(&clients, "x", Some("spiffe://x/tenant/acme/a"));
    let bad = leaf(&strangers, "x", Some("spiffe://x/tenant/acme/a"));
    for optional in [true, false] {
        let address = echo(Arc::new(files.load(Some((&clients, optional))))).await;
        let told = async |shown: Option<&(String, String)>| {
            let mut stream = files.connect(address, "one.test", shown).await?;
            say(&mut stream, "a").await
        };
        assert_eq!(told(Some(&good)).await.expect("let in"), "spiffe://x/tenant/acme/a: a");
        // With TLS 1.3 the client's handshake ends before the server has checked its certificate.
        assert!(
            told(Some(&bad)).await.is_err() || told(Some(&bad)).await.expect("ends").is_empty()
        );
        let without = told(None).await.unwrap_or_default();
        assert_eq!(without, if optional { "nobody: a" } else { "" });
    }
}

#[tokio::test]
async fn who_does_not_finish_a_handshake_holds_nobody_up() {
    let files = Files::new();
    let address = echo_within(Arc::new(files.load(None)), Duration::from_secs(600)).await;
    let mut held = Vec::new();
    let hello = hello();
    for sent in [&b""[..], b"\x16", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n\r\n", &hello] {
        // More of each than the number of handshakes that run at a time.
        for _ in 0..100 {
            let mut stream = TcpStream::connect(address).await.expect("it listens");
            stream.write_all(sent).await.expect("taken");
            held.push(stream);
        }
    }
    let connected = files.connect(address, "one.test", None);
    let mut stream = timeout(Duration::from_secs(60), connected)
        .await
        .expect("nobody has to be waited for")
        .expect("a handshake");
    let said = say(&mut stream, LONG).await.expect("an answer");
    assert!(said.starts_with(&format!("nobody: {}", &LONG[..64])), "{said}");
}

/// Builds a complete ClientHello of a client that sends nothing more.
fn hello() -> Vec<u8> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::try_from("one.test").expect("a name");
    let mut client = rustls::ClientConnection::new(Arc::new(config), name).expect("a client");
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).expect("memory takes it");
    bytes
}

#[tokio::test]
async fn a_handshake_that_goes_no_further_ends_within_seconds() {
    let files = Files::new();
    let limit = Duration::from_millis(20);
    let address = echo_within(Arc::new(files.load(None)), limit).await;
    let hello = hello();
    for sent in [&hello[..1], &hello[..hello.len() / 2], &hello[..]] {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        stream.write_all(sent).await.expect("taken");
        let mut rest = Vec::new();
        drop(stream.read_to_end(&mut rest).await);
    }
}
