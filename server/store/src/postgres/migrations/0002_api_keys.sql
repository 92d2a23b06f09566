-- Credentials of callers. Of the secret there is only the hash.
CREATE TABLE api_keys (
    id          TEXT   NOT NULL COLLATE "C" PRIMARY KEY,
    -- SHA-256.
    secret_hash BYTEA  NOT NULL,
    -- NULL: of no tenant; each call names one.
    tenant      TEXT   COLLATE "C",
    principal   TEXT   NOT NULL,
    -- A JSON array of names.
    roles       TEXT   NOT NULL,
    label       TEXT   NOT NULL,
    -- Milliseconds since 1970 (UTC), as all moments here.
    created_ms  BIGINT NOT NULL,
    -- 2^63 - 1: never.
    expires_ms  BIGINT NOT NULL,
    revoked_ms  BIGINT NOT NULL,
    -- -2^63: not yet.
    used_ms     BIGINT NOT NULL
);

-- Keys are looked up before anybody knows whose call it is: by work that says so (toolgate.work), and by no tenant's.
ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE api_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY keeping_keys ON api_keys
    USING (current_setting('toolgate.work', TRUE) = 'keys')
    WITH CHECK (current_setting('toolgate.work', TRUE) = 'keys');
