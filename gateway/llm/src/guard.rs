//! Names under which the proxy may be called. A page could have another name resolve to this machine (DNS rebinding).

use std::net::{IpAddr, SocketAddr};

use http::uri::Authority;
use http::{HeaderMap, Uri, header};
use url::Url;

/// Names and origins that requests may come with.
#[derive(Debug)]
pub(crate) struct Names {
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Names {
    pub(crate) fn new(address: SocketAddr, public_url: &str) -> Self {
        let local = ["localhost", "127.0.0.1", "[::1]"];
        let mut hosts: Vec<String> = local.map(str::to_owned).to_vec();
        // Any address of 127.0.0.0/8 is this machine's too. That of an interface needs a `public_url`.
        if address.ip().is_loopback() {
            hosts.push(host_in_url(address.ip()));
        }
        let origin = |host: &String| format!("http://{host}:{}", address.port());
        let mut origins: Vec<String> = hosts.iter().map(origin).collect();
        if let Ok(url) = Url::parse(public_url) {
            hosts.extend(url.host_str().map(str::to_owned));
            origins.push(url.origin().ascii_serialization());
        }
        Self { hosts, origins }
    }

    /// Returns true if a request names the proxy, and comes from no foreign page.
    pub(crate) fn allow(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let is_named = host_of(uri, headers).is_some_and(|host| self.hosts.contains(&host));
        is_named && self.is_own(headers)
    }

    /// Returns true if metrics may be read so: scrapers ask by address, and no name resolves to one anew.
    pub(crate) fn allow_scrape(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let is_address = |host: &str| {
            host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok()
        };
        let is_named = host_of(uri, headers)
            .is_some_and(|host| is_address(&host) || self.hosts.contains(&host));
        is_named && self.is_own(headers)
    }

    /// Returns true if a request comes from no foreign page.
    fn is_own(&self, headers: &HeaderMap) -> bool {
        headers.get_all(header::ORIGIN).iter().all(|origin| {
            origin.to_str().is_ok_and(|origin| self.origins.iter().any(|own| own == origin))
        })
    }
}

/// Returns an address as URLs have it: one of IPv6 in brackets.
fn host_in_url(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// Returns the host that a request names, in lower case. `None` if it names none, several, or one that can't be read.
fn host_of(uri: &Uri, headers: &HeaderMap) -> Option<String> {
    let in_header = headers.get_all(header::HOST).iter().map(|host| {
        let authority = host.to_str().ok()?.parse::<Authority>().ok()?;
        Some(authority.host().to_ascii_lowercase())
    });
    let in_target = uri.authority().map(|authority| Some(authority.host().to_ascii_lowercase()));
    let mut named: Vec<Option<String>> = in_header.collect();
    if named.len() > 1 {
        return None;
    }
    named.extend(in_target);
    let first = named.first()?.clone();
    named.iter().all(|name| *name == first).then_some(first)?
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_own_names_and_origins_are_allowed() {
        let names = Names::new(SocketAddr::from(([127, 0, 0, 1], 7090)), "https://llm.example/x");
        let allows = |host: Option<&'static str>, origin: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.extend(host.map(|host| (header::HOST, HeaderValue::from_static(host))));
            headers.extend(origin.map(|from| (header::ORIGIN, HeaderValue::from_static(from))));
            names.allow(&Uri::from_static("/openai/v1/models"), &headers)
        };
        for host in ["127.0.0.1:7090", "LOCALHOST:1", "[::1]:7090", "llm.example"] {
            assert!(allows(Some(host), None), "{host}");
        }
        assert!(allows(Some("localhost"), Some("http://localhost:7090")));
        assert!(allows(Some("localhost"), Some("https://llm.example")));
        for host in [None, Some("evil.example"), Some("localhost.evil.example"), Some("a b")] {
            assert!(!allows(host, None), "{host:?}");
        }
        let twice = |target: &'static str, hosts: &[&'static str]| {
            let hosts = hosts.iter().map(|host| (header::HOST, HeaderValue::from_static(host)));
            let mut headers = HeaderMap::new();
            hosts.for_each(|(name, host)| {
                headers.append(name, host);
            });
            names.allow(&Uri::from_static(target), &headers)
        };
        assert!(twice("http://localhost:7090/openai", &["LOCALHOST:7090"]));
        assert!(twice("http://localhost:7090/openai", &[]));
        assert!(!twice("http://evil.example/openai", &["localhost"]));
        assert!(!twice("http://localhost@evil.example/openai", &["localhost"]));
        assert!(!twice("http://localhost/openai", &["evil.example"]));
        assert!(!twice("http://localhost/openai", &["127.0.0.1"]), "which one is meant?");
        assert!(!twice("/openai", &["localhost", "evil.example"]));
        assert!(!twice("/openai", &["localhost", "localhost"]));
        let at_another = Names::new(SocketAddr::from(([127, 0, 0, 2], 7090)), "");
        let headers = [(header::HOST, HeaderValue::from_static("127.0.0.2:7090"))];
        assert!(at_another.allow(&Uri::from_static("/"), &headers.into_iter().collect()));
        let scraped = |host: &'static str| {
            let headers = [(header::HOST, HeaderValue::from_static(host))].into_iter().collect();
            names.allow_scrape(&Uri::from_static("/metrics"), &headers)
        };
        assert!(scraped("10.0.0.7:7090") && scraped("[fd00::7]:7090") && scraped("localhost"));
        assert!(!scraped("evil.example"));
        for origin in ["null", "http://localhost:8000", "https://evil.example"] {
            assert!(!allows(Some("localhost"), Some(origin)), "{origin}");
        }
    }
}
