//! Addresses of encoder workers: one address, or every address behind a name.

use std::fmt;
use std::str::FromStr;

/// Address of one encoder worker, or of all workers behind a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerAddress {
    /// One worker at `host:port`.
    One(String),
    /// One worker at each address of a DNS name, such as a headless service's.
    Behind {
        /// DNS name.
        name: String,
        /// Port of each worker.
        port: u16,
    },
}

impl FromStr for WorkerAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let (host, port) = rest.rsplit_once(':').ok_or("the port is missing")?;
        let port = port.parse().map_err(|_| format!("\"{port}\" is not a port"))?;
        let is_bare_v6 = host.contains(':') && !host.starts_with('[');
        if host.is_empty() || is_bare_v6 || host.contains(['/', ' ', '@']) {
            return Err(format!("\"{host}\" is not a host"));
        }
        match scheme {
            "http" => Ok(Self::One(format!("{host}:{port}"))),
            "dns" => Ok(Self::Behind { name: host.to_owned(), port }),
            "https" => Err("this version speaks no TLS".into()),
            _ => Err(format!("\"{scheme}\" is neither http nor dns")),
        }
    }
}

impl fmt::Display for WorkerAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(address) => formatter.write_str(address),
            Self::Behind { name, port } => write!(formatter, "dns://{name}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip() {
        for text in ["127.0.0.1:7080", "[::1]:7080", "gpu-1:7080", "dns://workers.ns.svc:7080"] {
            assert_eq!(text.parse::<WorkerAddress>().expect(text).to_string(), text);
        }
        assert_eq!("http://a:1".parse(), Ok(WorkerAddress::One("a:1".into())));
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in ["", "a", "a:", "a:b", ":1", "::1:7", "https://a:1", "ftp://a:1", "a/b:1"] {
            assert!(text.parse::<WorkerAddress>().is_err(), "{text}");
        }
    }
}
