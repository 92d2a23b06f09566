//! Keys of authentication, TLS, the audit file and the safety of registered texts.

use std::path::PathBuf;
use std::time::Duration;

use crate::certificate_rule::CertificateRule;
use crate::components::AuthMethod;
use crate::key::{Key, OptionalKey};
use crate::typed_kind::{CERTIFICATES, FLAG, PATH, TEXT, count, span, words};

pub const AUTH_METHODS: Key<Vec<AuthMethod>> = Key::new(
    "auth.methods",
    words(),
    "",
    "Credentials that callers must show one of (docs/security.md). None: whoever reaches the \
     port may do everything.",
);
pub const AUTH_ADMIN_KEY_FILE: OptionalKey<PathBuf> = OptionalKey::new(
    "auth.admin_key_file",
    PATH,
    "A file with one API key, which is an admin's and is in no store: the first one. Read again \
     on SIGHUP.",
);
pub const AUTH_JWKS_FILE: OptionalKey<PathBuf> = OptionalKey::new(
    "auth.jwks_file",
    PATH,
    "A file with the token issuer's public keys (JWKS), read again when it changes. Not together \
     with jwks_url.",
);
pub const AUTH_JWKS_URL: OptionalKey<String> = OptionalKey::new(
    "auth.jwks_url",
    TEXT,
    "Where the token issuer's public keys are, such as \
     \"https://id.example.com/.well-known/jwks.json\".",
);
pub const AUTH_JWKS_CA_FILE: OptionalKey<PathBuf> = OptionalKey::new(
    "auth.jwks_ca_file",
    PATH,
    "The authorities (PEM) that jwks_url's certificate may be of. Absent: the public ones.",
);
pub const AUTH_JWKS_REFRESH: Key<Duration> = Key::new(
    "auth.jwks_refresh",
    span(10_000, 24 * 3_600_000),
    "5m",
    "How often jwks_url is asked. An unknown key has it asked at once, every 30s at most.",
);
pub const AUTH_JWKS_MAX_AGE: Key<Duration> = Key::new(
    "auth.jwks_max_age",
    span(60_000, 90 * 24 * 3_600_000),
    "24h",
    "How long the issuer's keys count while neither file nor URL gives any: afterwards all \
     tokens are refused.",
);
pub const AUTH_ISSUER: OptionalKey<String> =
    OptionalKey::new("auth.issuer", TEXT, "Who must have issued a token: its claim iss.");
pub const AUTH_AUDIENCE: OptionalKey<String> = OptionalKey::new(
    "auth.audience",
    TEXT,
    "Whom a token must be for: its claim aud, or one of it.",
);
pub const AUTH_CLOCK_SKEW: Key<Duration> = Key::new(
    "auth.clock_skew",
    span(0, 300_000),
    "30s",
    "How far the token issuer's clock may be from this machine's.",
);
pub const AUTH_TENANT_CLAIM: Key<String> = Key::new(
    "auth.tenant_claim",
    TEXT,
    "tenant",
    "The claim that says a token's tenant. With a slash before it, a JSON pointer: \
     \"/realm/tenant\".",
);
pub const AUTH_PRINCIPAL_CLAIM: Key<String> = Key::new(
    "auth.principal_claim",
    TEXT,
    "sub",
    "The claim that says who calls; what policies know as principal.id.",
);
pub const AUTH_ROLES_CLAIM: Key<String> = Key::new(
    "auth.roles_claim",
    TEXT,
    "roles",
    "The claim with the roles: an array, or words with spaces between. Others than agent, \
     catalog-writer, delegate and admin are passed over.",
);
pub const AUTH_SCOPES_CLAIM: OptionalKey<String> = OptionalKey::new(
    "auth.scopes_claim",
    TEXT,
    "The claim with the scopes that an agent may have, such as \"scope\": of those in its state, \
     only these count. Absent: tokens say nothing of scopes.",
);
pub const AUTH_TRUST_DOMAIN: OptionalKey<String> = OptionalKey::new(
    "auth.trust_domain",
    TEXT,
    "A SPIFFE trust domain: client certificates of spiffe://TRUST-DOMAIN/tenant/TENANT/PRINCIPAL \
     are agents of that tenant.",
);
pub const AUTH_CERTIFICATES: Key<Vec<CertificateRule>> = Key::new(
    "auth.certificates",
    CERTIFICATES,
    "",
    "Other client certificates, by a URI of theirs or cn: and the common name, with tenant and \
     roles, such as \"spiffe://example.org/ns/ops/sa/catalog=acme:catalog-writer\". * instead of \
     a tenant: any, for admins and delegates.",
);
pub const TLS_CERT_FILE: OptionalKey<PathBuf> = OptionalKey::new(
    "tls.cert_file",
    PATH,
    "The server's certificate and those that it was signed with (PEM): gRPC is served over TLS \
     then. Read again when it changes.",
);
pub const TLS_KEY_FILE: OptionalKey<PathBuf> =
    OptionalKey::new("tls.key_file", PATH, "The certificate's private key (PEM).");
pub const TLS_CLIENT_CA_FILE: OptionalKey<PathBuf> = OptionalKey::new(
    "tls.client_ca_file",
    PATH,
    "The authorities (PEM) of client certificates. Without mtls among auth.methods, a client \
     must have one to connect at all; with it, one of the other credentials does as well.",
);
pub const AUDIT_FILE: OptionalKey<PathBuf> = OptionalKey::new(
    "audit.file",
    PATH,
    "A file to which each change of catalogs, policies, memory and API keys is appended as a \
     line of JSON, beside the log. While it can't be written, there are no changes. Opened again \
     on SIGHUP.",
);
pub const SAFETY_SCAN: Key<bool> = Key::new(
    "safety.scan",
    FLAG,
    "true",
    "Whether the texts of registered tools are scanned for instructions to the model, and tools \
     quarantined by the trust tier of their MCP server (docs/safety.md). false: what is \
     quarantined stays so.",
);
pub const SAFETY_RULES_FILE: OptionalKey<PathBuf> = OptionalKey::new(
    "safety.rules_file",
    PATH,
    "A file of rules (YAML) over the shipped ones: adds rules, replaces them, switches them off. \
     Read again on SIGHUP.",
);
pub const SAFETY_UNTRUSTED_BY_DEFAULT: Key<bool> = Key::new(
    "safety.untrusted_by_default",
    FLAG,
    "false",
    "Whether an MCP server is untrusted when its registration names no trust tier; standard \
     otherwise.",
);
pub const SAFETY_UNTRUSTED_MAX_PER_SERVER: Key<usize> = Key::new(
    "safety.untrusted_max_per_server",
    count(1, 100),
    "5",
    "The most tools of one untrusted MCP server that are chosen by rank, or found by one \
     search.",
);
pub const SAFETY_UNTRUSTED_MAX_ACTIVE: Key<usize> = Key::new(
    "safety.untrusted_max_active",
    count(1, 100),
    "5",
    "The most tools of all untrusted MCP servers that are chosen by rank while tools of others \
     want the places; never more than half of the places.",
);
