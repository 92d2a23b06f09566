//! Encrypted connections to a service with a certificate of its own authority.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tonic::transport::{Certificate, Identity, ServerTlsConfig};
use toolgate_client::{Client, ClientIdentity, ClientOptions, Credentials, Error, TlsOptions};

use crate::fake::{Fake, Script};
use crate::{options, route};

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    fn pem(&self) -> String {
        self.0.pem()
    }

    fn issue(&self, name: &str) -> ClientIdentity {
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        ClientIdentity {
            certificate_pem: certificate.pem().into(),
            key_pem: key.serialize_pem().into(),
        }
    }

    fn serving(&self, script: &Script, name: &str) -> Fake {
        Fake::serving_encrypted(script, self.server(name))
    }

    fn server(&self, name: &str) -> ServerTlsConfig {
        let ClientIdentity { certificate_pem, key_pem } = self.issue(name);
        ServerTlsConfig::new().identity(Identity::from_pem(certificate_pem, key_pem))
    }

    fn trusted(&self) -> TlsOptions {
        TlsOptions { ca_pem: Some(self.pem().into()), ..Default::default() }
    }
}

fn with(tls: TlsOptions) -> ClientOptions {
    ClientOptions { tls: Some(tls), ..options() }
}

#[tokio::test]
async fn a_service_of_a_trusted_authority_is_called() {
    let authority = Authority::new();
    let script = Script::default();
    let fake = authority.serving(&script, "127.0.0.1");
    let credentials = Credentials::api_key("k");
    let options = ClientOptions { credentials, ..with(authority.trusted()) };
    let client = Client::connect(&fake.endpoint, options).await.expect("connected");
    route(&client).await.expect("routed");
    assert_eq!(script.asked()[0].authorization.as_deref(), Some("Bearer k"));
}

#[tokio::test]
async fn another_authority_or_name_is_not_spoken_to() {
    let authority = Authority::new();
    let script = Script::default();
    let fake = authority.serving(&script, "toolgate.example");
    let named = TlsOptions { server_name: Some("toolgate.example".into()), ..authority.trusted() };
    for (tls, expected) in [
        (authority.trusted(), Err("certificate")),
        (
            TlsOptions { ca_pem: Some(Authority::new().pem().into()), ..named.clone() },
            Err("certificate"),
        ),
        (named, Ok(())),
    ] {
        let outcome = Client::connect(&fake.endpoint, with(tls)).await;
        match (outcome, expected) {
            (Ok(client), Ok(())) => drop(route(&client).await.expect("routed")),
            (Err(Error::Unreachable { cause, .. }), Err(part)) => {
                assert!(cause.contains(part), "{cause}");
            }
            (outcome, _) => panic!("{outcome:?}"),
        }
    }
}

#[tokio::test]
async fn a_client_shows_its_own_certificate() {
    let authority = Authority::new();
    let script = Script::default();
    let server =
        authority.server("127.0.0.1").client_ca_root(Certificate::from_pem(authority.pem()));
    let fake = Fake::serving_encrypted(&script, server);
    let identity = Some(authority.issue("an agent"));
    let shown = TlsOptions { identity, ..authority.trusted() };
    let client = Client::connect(&fake.endpoint, with(shown)).await.expect("connected");
    route(&client).await.expect("routed");
    // The service refuses after the handshake, so only the call fails.
    let nameless = Client::lazy(&fake.endpoint, with(authority.trusted())).expect("an address");
    let error = route(&nameless).await.expect_err("no certificate");
    assert!(error.is_unreachable(), "{error:?}");
}

#[tokio::test]
async fn what_is_no_certificate_is_refused() {
    let authority = Authority::new();
    let mut mixed = authority.issue("an agent");
    mixed.key_pem = b"no key".to_vec();
    for tls in [
        TlsOptions { ca_pem: Some(b"ca.pem".to_vec()), ..Default::default() },
        TlsOptions { identity: Some(mixed), ..authority.trusted() },
        TlsOptions { server_name: Some("no name".into()), ..authority.trusted() },
    ] {
        let error = Client::lazy("https://localhost:1", with(tls)).expect_err("not usable");
        assert!(matches!(error, Error::Options { .. }), "{error:?}");
        assert!(error.to_string().contains("tls"), "{error}");
    }
    let shown = format!(
        "{:?}",
        with(TlsOptions { identity: Some(authority.issue("x")), ..Default::default() })
    );
    assert!(!shown.contains("45, 45"), "{shown}");
}
