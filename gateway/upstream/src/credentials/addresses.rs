//! Addresses that a server's answer may lead to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// Returns whether an address is of the public internet: not this machine's, private, link-local (where clouds keep their
/// metadata), shared, multicast or reserved.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Returns whether a URL names this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Returns the address that a URL names without a resolver.
pub(crate) fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Domain(_) => None,
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let is_shared = first == 100 && (64..128).contains(&second);
    let is_protocol = first == 192 && second == 0 && matches!(third, 0 | 2);
    let is_relay = first == 192 && second == 88 && third == 99;
    let is_benchmark = first == 198 && matches!(second, 18 | 19);
    let is_reserved = first == 0 || first >= 224;
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || is_shared
        || is_protocol
        || is_relay
        || is_benchmark
        || is_reserved)
}

/// Only 2000::/3 is given out. Addresses that carry one of IPv4 are as public as that one.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let low = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match segments {
        [0, 0, 0, 0, 0, 0xffff, high, last] | [0x64, 0xff9b, 0, 0, 0, 0, high, last] => {
            is_public_v4(low(high, last))
        }
        [0x2002, high, last, ..] => is_public_v4(low(high, last)),
        // Teredo, benchmarks, ORCHID; documentation.
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_public_internet_is_public() {
        for text in ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "2002:101:101::1"] {
            assert!(is_public(text.parse().expect("an address")), "{text}");
        }
        for text in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.100.100.200",
            "192.0.0.192",
            "198.18.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:169.254.169.254",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::1",
            "2001::1",
            "2001:db8::1",
            "fe80::1",
            "fd00:ec2::254",
            "ff02::1",
        ] {
            assert!(!is_public(text.parse().expect("an address")), "{text}");
        }
    }
}
