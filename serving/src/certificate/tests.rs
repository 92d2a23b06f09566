use rcgen::{CertificateParams, DnType, KeyPair, SanType};

use super::*;

/// Makes a certificate that expires on this date, with these URIs and common names.
fn certificate(ends: (i32, u8, u8), uris: &[&str], names: &[&str]) -> CertificateDer<'static> {
    let mut params = CertificateParams::new(vec!["a.test".to_owned()]).expect("parameters");
    params.not_after = rcgen::date_time_ymd(ends.0, ends.1, ends.2);
    for name in names {
        params.distinguished_name.push(DnType::CommonName, *name);
    }
    params.distinguished_name.push(DnType::OrganizationName, "an organisation");
    let uri = |uri: &&str| SanType::URI((*uri).to_owned().try_into().expect("ASCII"));
    params.subject_alt_names.extend(uris.iter().map(uri));
    let key = KeyPair::generate().expect("a key");
    params.self_signed(&key).expect("signed").der().clone()
}

#[test]
fn names_and_dates_are_read() {
    for (ends, seconds) in [
        ((2030, 1, 1), 1_893_456_000),
        ((2000, 2, 29), 951_782_400),
        ((1999, 3, 1), 920_246_400),
        // From 2050 on, the year has four digits.
        ((2050, 3, 1), 2_529_705_600),
        ((2100, 12, 31), 4_133_894_400),
    ] {
        let der = certificate(ends, &["spiffe://x/y", "https://z/"], &["a leaf"]);
        let read = PeerCertificate::read(&der).expect("a certificate");
        assert_eq!(read.not_after_ms, seconds * 1_000, "{ends:?}");
        assert_eq!(read.uris, ["spiffe://x/y", "https://z/"]);
        assert_eq!(read.common_name.as_deref(), Some("a leaf"));
    }
    let bare = PeerCertificate::read(&certificate((2030, 1, 1), &[], &[])).expect("a certificate");
    // rcgen adds a common name of its own where none is given.
    assert!(bare.uris.is_empty());
}

#[test]
fn what_is_cut_or_changed_is_no_panic() {
    let der = certificate((2030, 1, 1), &["spiffe://x/y"], &["a leaf"]);
    for cut in 0..der.len() {
        assert!(PeerCertificate::read(&CertificateDer::from(&der[..cut])).is_none(), "{cut} bytes");
        not_after(&der[..cut]);
        common_name(&der[cut..]);
    }
    for at in 0..der.len() {
        let mut changed = der.to_vec();
        for value in [0, 0x7f, 0x80, 0x84, 0xff] {
            changed[at] = value;
            let _ = PeerCertificate::read(&CertificateDer::from(changed.as_slice()));
            not_after(&changed);
        }
    }
}
