-- One tenant's content never meets another's: every primary key, index and predicate begins with the
-- tenant. Texts compare by their bytes, as `str` does.

-- "TGAT": tells our databases from those of other applications.
PRAGMA application_id = 1413955924;

CREATE TABLE tenants (
    tenant     TEXT    NOT NULL PRIMARY KEY,
    revision   INTEGER NOT NULL,
    pool_floor INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE servers (
    tenant          TEXT    NOT NULL REFERENCES tenants (tenant),
    name            TEXT    NOT NULL,
    description     TEXT    NOT NULL,
    transport_hint  INTEGER NOT NULL,
    trust_tier      INTEGER NOT NULL,
    precondition    TEXT,
    required_scopes TEXT    NOT NULL,
    revision        INTEGER NOT NULL,
    updated_ms      INTEGER NOT NULL,
    tool_count      INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT;

CREATE TABLE tools (
    tenant           TEXT    NOT NULL,
    server           TEXT    NOT NULL,
    name             TEXT    NOT NULL,
    model_name       TEXT    NOT NULL,
    summary          TEXT    NOT NULL,
    -- SHA-256 of the summary: finds the tools that share an embedding.
    summary_hash     BLOB    NOT NULL,
    summary_revision INTEGER NOT NULL,
    search_hint      TEXT    NOT NULL,
    definition       TEXT    NOT NULL,
    hash             BLOB    NOT NULL,
    precondition     TEXT,
    required_scopes  TEXT    NOT NULL,
    always_load      INTEGER NOT NULL,
    critical         INTEGER NOT NULL,
    schema_tokens    INTEGER NOT NULL,
    summary_tokens   INTEGER NOT NULL,
    PRIMARY KEY (tenant, server, name),
    UNIQUE (tenant, model_name),
    FOREIGN KEY (tenant, server) REFERENCES servers (tenant, name)
) STRICT;

CREATE INDEX tools_by_summary ON tools (tenant, summary_hash);

-- Texts come and go with tools whatever the encoder, so the hash stands before the fingerprint.
CREATE TABLE embeddings (
    tenant      TEXT NOT NULL,
    text_hash   BLOB NOT NULL,
    fingerprint TEXT NOT NULL,
    -- f32, little-endian.
    vector      BLOB NOT NULL CHECK (length(vector) > 0),
    PRIMARY KEY (tenant, text_hash, fingerprint)
) STRICT;

-- Reads one encoder's rows as they lie on the disk: by hash they would be scattered.
CREATE INDEX embeddings_by_encoder ON embeddings (tenant, fingerprint);

-- At most one row for a name, and none while a tool has it: the pool's deltas stay unambiguous.
CREATE TABLE removed_tools (
    tenant     TEXT    NOT NULL,
    model_name TEXT    NOT NULL,
    revision   INTEGER NOT NULL,
    PRIMARY KEY (tenant, model_name)
) STRICT, WITHOUT ROWID;

CREATE INDEX removed_tools_by_revision ON removed_tools (tenant, revision);

CREATE TABLE requests (
    tenant       TEXT    NOT NULL,
    id           TEXT    NOT NULL,
    body_hash    BLOB    NOT NULL,
    answer       BLOB    NOT NULL,
    revision     INTEGER NOT NULL,
    committed_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT;

CREATE INDEX requests_by_age ON requests (tenant, committed_ms);
