-- Credentials of callers. Of the secret there is only the hash.
CREATE TABLE api_keys (
    id          TEXT    NOT NULL PRIMARY KEY,
    -- SHA-256.
    secret_hash BLOB    NOT NULL,
    -- NULL: of no tenant; each call names one.
    tenant      TEXT,
    principal   TEXT    NOT NULL,
    -- A JSON array of names.
    roles       TEXT    NOT NULL,
    label       TEXT    NOT NULL,
    -- Milliseconds since 1970 (UTC), as all moments here.
    created_ms  INTEGER NOT NULL,
    -- 2^63 - 1: never.
    expires_ms  INTEGER NOT NULL,
    revoked_ms  INTEGER NOT NULL,
    -- -2^63: not yet.
    used_ms     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
