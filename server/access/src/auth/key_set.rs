//! Public keys that an issuer signs tokens with (RFC 7517). Keys of a set that are not for RS256, ES256 or EdDSA
//! signatures are skipped, because sets hold keys for other uses too.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde::Deserialize;

/// Maximum size of a set's text in bytes. The sets of large issuers have some kilobytes.
pub const SET_BYTES_MAX: usize = 256 << 10;

/// Maximum number of keys in a set.
const KEYS_MAX: usize = 100;
const RSA_BYTES_MIN: usize = 2048 / 8;
const RSA_BYTES_MAX: usize = 8192 / 8;

/// Signature algorithm of tokens. Unsigned tokens and shared secrets are not supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// RSA PKCS #1 v1.5 with SHA-256, 2,048 bits or more.
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

/// Public keys of one issuer.
#[derive(Debug, Default)]
pub struct KeySet {
    keys: Vec<VerifyingKey>,
}

/// Public key that verifies signatures.
#[derive(Debug)]
pub struct VerifyingKey {
    id: Option<String>,
    material: Material,
}

#[derive(Debug)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

#[derive(Deserialize)]
struct WireSet {
    keys: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct WireKey {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl Algorithm {
    /// Returns the algorithm with this name in the `alg` of a token or key.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "ES256" => Some(Self::Es256),
            // RFC 9864 gives Ed25519 a name of its own.
            "EdDSA" | "Ed25519" => Some(Self::EdDsa),
            _ => None,
        }
    }
}

impl KeySet {
    /// Parses a set.
    ///
    /// # Errors
    /// A description of the problem: the text is too large, or it is not JSON of a set's shape. A set without usable
    /// keys is valid and empty, because the issuer has then stated that there are none.
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        if json.len() > SET_BYTES_MAX {
            return Err(format!("more than {SET_BYTES_MAX} bytes"));
        }
        let wire: WireSet = serde_json::from_slice(json)
            .map_err(|error| format!("not a JSON Web Key Set: {error}"))?;
        if wire.keys.len() > KEYS_MAX {
            return Err(format!("more than {KEYS_MAX} keys"));
        }
        let read = |key: serde_json::Value| serde_json::from_value::<WireKey>(key).ok();
        let keys: Vec<_> =
            wire.keys.into_iter().filter_map(read).filter_map(VerifyingKey::new).collect();
        Ok(Self { keys })
    }

    /// Returns the keys that may have signed a token with this header. A token without a key id fits only if the set
    /// has exactly one key of its algorithm.
    pub fn fitting<'a>(
        &'a self,
        algorithm: Algorithm,
        id: Option<&'a str>,
    ) -> impl Iterator<Item = &'a VerifyingKey> {
        let of_algorithm = move |key: &&VerifyingKey| key.algorithm() == algorithm;
        let alone = self.keys.iter().filter(of_algorithm).count() == 1;
        self.keys.iter().filter(of_algorithm).filter(move |key| match id {
            Some(id) => key.id.as_deref() == Some(id),
            None => alone,
        })
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns true if there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

impl VerifyingKey {
    /// Converts a key of the set; `None` if it is not for a supported signature.
    fn new(wire: WireKey) -> Option<Self> {
        let signs = wire.purpose.as_deref().is_none_or(|purpose| purpose == "sig")
            && wire.key_ops.is_none_or(|ops| ops.iter().any(|op| op == "verify"));
        let bytes = |text: &Option<String>| URL_SAFE_NO_PAD.decode(text.as_deref()?).ok();
        let material = match (wire.kty.as_str(), wire.crv.as_deref()) {
            ("RSA", _) => Material::Rsa { n: bytes(&wire.n)?, e: bytes(&wire.e)? },
            ("EC", Some("P-256")) => {
                let x = bytes(&wire.x)?;
                let y = bytes(&wire.y)?;
                // Uncompressed point as in SEC 1.
                (x.len() == 32 && y.len() == 32)
                    .then(|| Material::P256([&[4], &*x, &*y].concat()))?
            }
            ("OKP", Some("Ed25519")) => Material::Ed25519(bytes(&wire.x)?),
            _ => return None,
        };
        let right = match &material {
            Material::Rsa { n, e } => {
                let n = n.iter().skip_while(|byte| **byte == 0).count();
                (RSA_BYTES_MIN..=RSA_BYTES_MAX).contains(&n) && (1..=8).contains(&e.len())
            }
            Material::P256(_) => true,
            Material::Ed25519(x) => x.len() == 32,
        };
        let key = Self { id: wire.kid, material };
        let says = wire.alg.as_deref();
        let agrees = says.is_none_or(|name| Algorithm::named(name) == Some(key.algorithm()));
        (signs && right && agrees).then_some(key)
    }

    /// Returns the only algorithm that the key is for.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        match self.material {
            Material::Rsa { .. } => Algorithm::Rs256,
            Material::P256(_) => Algorithm::Es256,
            Material::Ed25519(_) => Algorithm::EdDsa,
        }
    }

    /// Returns true if the message was signed with this key.
    #[must_use]
    pub fn signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let verified = match &self.material {
            Material::Rsa { n, e } => {
                let key = RsaPublicKeyComponents { n, e };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
            Material::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            Material::Ed25519(x) => UnparsedPublicKey::new(&ED25519, x).verify(message, signature),
        };
        verified.is_ok()
    }
}
