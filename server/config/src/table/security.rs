//! Keys of authentication, TLS, the audit file and the safety of registered texts.

use super::{count, key, span};
use crate::components::AuthMethod;
use crate::key::{Fallback, Key, Kind};

/// Keys in the order of the example file.
pub(super) const KEYS: &[Key] = &[
    key(
        "auth.methods",
        Kind::Words(&AuthMethod::NAMES),
        "",
        "Credentials that callers must show one of (docs/security.md). None: whoever reaches the port may do \
         everything.",
    ),
    absent(
        "auth.admin_key_file",
        Kind::Path,
        "A file with one API key, which is an admin's and is in no store: the first one. Read again on SIGHUP.",
    ),
    absent(
        "auth.jwks_file",
        Kind::Path,
        "A file with the token issuer's public keys (JWKS), read again when it changes. Not together with jwks_url.",
    ),
    absent(
        "auth.jwks_url",
        Kind::Text,
        "Where the token issuer's public keys are, such as \"https://id.example.com/.well-known/jwks.json\".",
    ),
    absent(
        "auth.jwks_ca_file",
        Kind::Path,
        "The authorities (PEM) that jwks_url's certificate may be of. Absent: the public ones.",
    ),
    key(
        "auth.jwks_refresh",
        span(10_000, 24 * 3_600_000),
        "5m",
        "How often jwks_url is asked. An unknown key has it asked at once, every 30s at most.",
    ),
    key(
        "auth.jwks_max_age",
        span(60_000, 90 * 24 * 3_600_000),
        "24h",
        "How long the issuer's keys count while neither file nor URL gives any: afterwards all tokens are refused.",
    ),
    absent("auth.issuer", Kind::Text, "Who must have issued a token: its claim iss."),
    absent("auth.audience", Kind::Text, "Whom a token must be for: its claim aud, or one of it."),
    key(
        "auth.clock_skew",
        span(0, 300_000),
        "30s",
        "How far the token issuer's clock may be from this machine's.",
    ),
    key(
        "auth.tenant_claim",
        Kind::Text,
        "tenant",
        "The claim that says a token's tenant. With a slash before it, a JSON pointer: \"/realm/tenant\".",
    ),
    key(
        "auth.principal_claim",
        Kind::Text,
        "sub",
        "The claim that says who calls; what policies know as principal.id.",
    ),
    key(
        "auth.roles_claim",
        Kind::Text,
        "roles",
        "The claim with the roles: an array, or words with spaces between. Others than agent, catalog-writer and \
         admin are passed over.",
    ),
    absent(
        "auth.scopes_claim",
        Kind::Text,
        "The claim with the scopes that an agent may have, such as \"scope\": of those in its state, only these \
         count. Absent: tokens say nothing of scopes.",
    ),
    absent(
        "auth.trust_domain",
        Kind::Text,
        "A SPIFFE trust domain: client certificates of spiffe://TRUST-DOMAIN/tenant/TENANT/PRINCIPAL are agents of \
         that tenant.",
    ),
    key(
        "auth.certificates",
        Kind::Certificates,
        "",
        "Other client certificates, by a URI of theirs or cn: and the common name, with tenant and roles, such as \
         \"spiffe://example.org/ns/ops/sa/catalog=acme:catalog-writer\". * instead of a tenant: any, for admins.",
    ),
    absent(
        "tls.cert_file",
        Kind::Path,
        "The server's certificate and those that it was signed with (PEM): gRPC is served over TLS then. Read again \
         when it changes.",
    ),
    absent("tls.key_file", Kind::Path, "The certificate's private key (PEM)."),
    absent(
        "tls.client_ca_file",
        Kind::Path,
        "The authorities (PEM) of client certificates. Without mtls among auth.methods, a client must have one to \
         connect at all; with it, one of the other credentials does as well.",
    ),
    absent(
        "audit.file",
        Kind::Path,
        "A file to which each change of catalogs, policies, memory and API keys is appended as a line of JSON, \
         beside the log. While it can't be written, there are no changes. Opened again on SIGHUP.",
    ),
    key(
        "safety.scan",
        Kind::Flag,
        "true",
        "Whether the texts of registered tools are scanned for instructions to the model, and tools quarantined by the \
         trust tier of their MCP server (docs/safety.md). false: what is quarantined stays so.",
    ),
    absent(
        "safety.rules_file",
        Kind::Path,
        "A file of rules (YAML) over the shipped ones: adds rules, replaces them, switches them off. Read again on \
         SIGHUP.",
    ),
    key(
        "safety.untrusted_by_default",
        Kind::Flag,
        "false",
        "Whether an MCP server is untrusted when its registration names no trust tier; standard otherwise.",
    ),
    key(
        "safety.untrusted_max_per_server",
        count(1, 100),
        "5",
        "The most tools of one untrusted MCP server that are chosen by rank, or found by one search.",
    ),
    key(
        "safety.untrusted_max_active",
        count(1, 100),
        "5",
        "The most tools of all untrusted MCP servers that are chosen by rank while tools of others want the places; never \
         more than half of the places.",
    ),
];

const fn absent(name: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key { name, kind, default: Fallback::Absent, doc }
}
