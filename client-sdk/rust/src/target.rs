//! Address of the service: parsing, checks, and conversion for the transport.

use std::net::IpAddr;
use std::time::Duration;

use tonic::transport::{Endpoint, Uri};

use crate::error::{Error, innermost};
use crate::options::ClientOptions;

/// Interval of pings on a connection with a call in progress. They keep a watch from waiting forever on a dead
/// connection.
const SIGN_OF_LIFE: Duration = Duration::from_secs(60);

/// Parses the target, and checks that `options` fit it.
pub(crate) fn checked(target: &str, options: &ClientOptions) -> Result<Endpoint, Error> {
    let endpoint = parse(target, options.connect_timeout)?;
    let encrypted = is_encrypted(endpoint.uri());
    if options.tls.is_some() && !encrypted {
        let shown = shown(target);
        let problem = format!("`tls` is set, but \"{shown}\" is not encrypted: write https://");
        return Err(Error::Options { problem });
    }
    options.credentials.check()?;
    let in_the_open = !encrypted && !is_loopback(endpoint.uri());
    if options.credentials.are_given() && in_the_open && !options.allow_insecure_credentials {
        let problem = format!(
            "credentials would go to \"{}\" unencrypted: use https://, or set \
             allow_insecure_credentials if the network is trusted",
            shown(target)
        );
        return Err(Error::Options { problem });
    }
    let endpoint = endpoint
        .http2_keep_alive_interval(SIGN_OF_LIFE)
        .keep_alive_timeout(SIGN_OF_LIFE / 3)
        .keep_alive_while_idle(false);
    if encrypted { encrypt(endpoint, target, options) } else { Ok(endpoint) }
}

/// Parses an address, with the settings that every connection of this crate has.
pub(crate) fn parse(target: &str, connect_timeout: Duration) -> Result<Endpoint, Error> {
    let problem = |problem: String| Error::Endpoint { endpoint: shown(target), problem };
    let text = target.trim();
    let address = match text.split_once("://") {
        None => format!("http://{text}"),
        Some(("http" | "https", _)) => text.to_owned(),
        Some((scheme, _)) => return Err(problem(format!("unknown scheme \"{scheme}\""))),
    };
    let endpoint = Endpoint::from_shared(address).map_err(|error| problem(innermost(&error)))?;
    let uri = endpoint.uri();
    if uri.host().is_none_or(str::is_empty) {
        return Err(problem("it names no host".into()));
    }
    if uri.port_u16().is_none_or(|port| port == 0) {
        return Err(problem("it names no port".into()));
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(problem("a user's name or password has no place in it".into()));
    }
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(problem("it has a path".into()));
    }
    Ok(endpoint.connect_timeout(connect_timeout).tcp_nodelay(true))
}

/// Returns the address in readable form.
pub(crate) fn address(endpoint: &Endpoint) -> String {
    endpoint.uri().to_string().trim_end_matches('/').to_owned()
}

#[cfg(feature = "tls")]
fn encrypt(endpoint: Endpoint, _: &str, options: &ClientOptions) -> Result<Endpoint, Error> {
    let tls = options.tls.clone().unwrap_or_default();
    let mistake = |error: tonic::transport::Error| Error::Options {
        problem: format!("tls: {}", innermost(&error)),
    };
    endpoint.tls_config(tls.for_transport(options.connect_timeout)?).map_err(mistake)
}

#[cfg(not(feature = "tls"))]
fn encrypt(_: Endpoint, target: &str, _: &ClientOptions) -> Result<Endpoint, Error> {
    let problem = "it needs the feature `tls` of toolgate-client, which is off".into();
    Err(Error::Endpoint { endpoint: shown(target), problem })
}

fn is_encrypted(uri: &Uri) -> bool {
    uri.scheme_str() == Some("https")
}

fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_loopback = |address: IpAddr| address.is_loopback();
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(is_loopback)
}

/// Returns the target as it was written, without a password.
fn shown(target: &str) -> String {
    match target.rsplit_once('@') {
        Some((_, address)) => format!("...@{address}"),
        None => target.to_owned(),
    }
}
