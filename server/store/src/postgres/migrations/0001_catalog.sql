-- One tenant's content never meets another's: every primary key, index and predicate begins with the
-- tenant, and row-level security holds what a predicate forgets. Texts compare by their bytes.

CREATE TABLE tenants (
    tenant        TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    -- 0: known, but never had a catalog.
    revision      BIGINT NOT NULL DEFAULT 0,
    pool_floor    BIGINT NOT NULL DEFAULT 0,
    -- What changed up to this revision can't be told any more.
    changes_floor BIGINT NOT NULL DEFAULT 0,
    -- The number of the last change among all tenants' changes.
    sequence      BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX tenants_by_sequence ON tenants (sequence);

-- One row. Taken last in each transaction that changes a catalog, so that numbers have no gaps and follow the
-- order of commits.
CREATE TABLE change_counter (
    is_it BOOLEAN NOT NULL PRIMARY KEY DEFAULT TRUE CHECK (is_it),
    value BIGINT NOT NULL
) WITH (fillfactor = 10);

INSERT INTO change_counter (value) VALUES (0);

CREATE TABLE servers (
    tenant          TEXT COLLATE "C" NOT NULL REFERENCES tenants (tenant),
    name            TEXT COLLATE "C" NOT NULL,
    description     TEXT COLLATE "C" NOT NULL,
    transport_hint  BIGINT NOT NULL,
    trust_tier      BIGINT NOT NULL,
    precondition    TEXT,
    required_scopes TEXT NOT NULL,
    revision        BIGINT NOT NULL,
    updated_ms      BIGINT NOT NULL,
    tool_count      BIGINT NOT NULL,
    -- True from the announcement of an MCP server to the registration of its tools.
    pending         BOOLEAN NOT NULL,
    PRIMARY KEY (tenant, name)
);

CREATE INDEX servers_by_revision ON servers (tenant, revision);

CREATE TABLE tools (
    tenant           TEXT COLLATE "C" NOT NULL,
    server           TEXT COLLATE "C" NOT NULL,
    name             TEXT COLLATE "C" NOT NULL,
    model_name       TEXT COLLATE "C" NOT NULL,
    summary          TEXT COLLATE "C" NOT NULL,
    -- SHA-256 of the summary: finds the tools that share an embedding.
    summary_hash     BYTEA NOT NULL,
    summary_revision BIGINT NOT NULL,
    search_hint      TEXT COLLATE "C" NOT NULL,
    definition       TEXT COLLATE "C" NOT NULL,
    hash             BYTEA NOT NULL,
    precondition     TEXT,
    required_scopes  TEXT NOT NULL,
    always_load      BOOLEAN NOT NULL,
    critical         BOOLEAN NOT NULL,
    schema_tokens    BIGINT NOT NULL,
    summary_tokens   BIGINT NOT NULL,
    PRIMARY KEY (tenant, server, name),
    UNIQUE (tenant, model_name),
    FOREIGN KEY (tenant, server) REFERENCES servers (tenant, name)
);

CREATE INDEX tools_by_summary ON tools (tenant, summary_hash);

-- Texts come and go with tools whatever the encoder, so the hash stands before the fingerprint.
CREATE TABLE embeddings (
    tenant      TEXT COLLATE "C" NOT NULL,
    text_hash   BYTEA NOT NULL,
    fingerprint TEXT COLLATE "C" NOT NULL,
    -- f32, little-endian.
    vector      BYTEA NOT NULL CHECK (length(vector) > 0),
    PRIMARY KEY (tenant, text_hash, fingerprint)
);

CREATE INDEX embeddings_by_encoder ON embeddings (tenant, fingerprint);

-- At most one row for a name, and none while a tool has it: the pool's deltas stay unambiguous.
CREATE TABLE removed_tools (
    tenant     TEXT COLLATE "C" NOT NULL,
    model_name TEXT COLLATE "C" NOT NULL,
    revision   BIGINT NOT NULL,
    PRIMARY KEY (tenant, model_name)
);

CREATE INDEX removed_tools_by_revision ON removed_tools (tenant, revision);

-- MCP servers that were removed, so that who watches the catalog can be told of it.
CREATE TABLE removed_servers (
    tenant   TEXT COLLATE "C" NOT NULL REFERENCES tenants (tenant),
    name     TEXT COLLATE "C" NOT NULL,
    revision BIGINT NOT NULL,
    PRIMARY KEY (tenant, name)
);

CREATE INDEX removed_servers_by_revision ON removed_servers (tenant, revision);

CREATE TABLE requests (
    tenant       TEXT COLLATE "C" NOT NULL,
    id           TEXT COLLATE "C" NOT NULL,
    body_hash    BYTEA NOT NULL,
    answer       BYTEA NOT NULL,
    revision     BIGINT NOT NULL,
    committed_ms BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE INDEX requests_by_age ON requests (tenant, committed_ms);

-- One document for each tenant, under the revisions of its catalog.
CREATE TABLE policies (
    tenant     TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES tenants (tenant),
    document   TEXT NOT NULL,
    -- Whether it hides tools from some callers.
    hides      BOOLEAN NOT NULL,
    revision   BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL
);

-- Counters of what tenants used, by hours since 1970 (UTC). Amounts are added and stop at the largest integer.
CREATE TABLE usage (
    tenant TEXT COLLATE "C" NOT NULL,
    hour   BIGINT NOT NULL,
    -- What is counted, such as `route_calls`.
    item   TEXT COLLATE "C" NOT NULL,
    amount BIGINT NOT NULL,
    PRIMARY KEY (tenant, hour, item)
);

CREATE INDEX usage_by_hour ON usage (hour);

-- Intents, as embeddings, with the tools that were called for them.
CREATE TABLE memories (
    tenant  TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    -- Counts changes.
    version BIGINT NOT NULL,
    -- The version of the last change that took exemplars away: who knows an older one reads all of them.
    floor   BIGINT NOT NULL
);

CREATE TABLE exemplars (
    tenant   TEXT COLLATE "C" NOT NULL,
    server   TEXT COLLATE "C" NOT NULL,
    name     TEXT COLLATE "C" NOT NULL,
    place    BIGINT NOT NULL,
    encoder  BYTEA NOT NULL,
    -- A signed byte a dimension.
    imprint  BYTEA NOT NULL,
    strength REAL NOT NULL,
    seen_ms  BIGINT NOT NULL,
    fades_ms BIGINT NOT NULL,
    owner    BYTEA NOT NULL,
    made     BIGINT NOT NULL,
    -- Eight bytes each.
    voters   BYTEA NOT NULL,
    -- Of the tenant's memory, when it last changed.
    version  BIGINT NOT NULL,
    PRIMARY KEY (tenant, server, name, place)
);

CREATE INDEX exemplars_by_version ON exemplars (tenant, version);
CREATE INDEX exemplars_by_fading ON exemplars (tenant, fades_ms);

-- A transaction sees and changes the rows of the tenant that it names (toolgate.tenant), whoever owns the
-- tables; without a name, none.
DO $$
DECLARE
    holder TEXT;
BEGIN
    FOREACH holder IN ARRAY ARRAY[
        'tenants', 'servers', 'tools', 'embeddings', 'removed_tools', 'removed_servers', 'requests',
        'policies', 'usage', 'memories', 'exemplars'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', holder);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', holder);
        EXECUTE format(
            'CREATE POLICY own_tenant ON %I
                 USING (tenant = current_setting(''toolgate.tenant'', TRUE))
                 WITH CHECK (tenant = current_setting(''toolgate.tenant'', TRUE))',
            holder
        );
    END LOOP;
END $$;

-- Work over all tenants (toolgate.work), each with the least that it needs: which tenants changed, adding to
-- counters of usage, and forgetting old ones.
CREATE POLICY following ON tenants FOR SELECT
    USING (current_setting('toolgate.work', TRUE) = 'following');
CREATE POLICY counting ON usage FOR INSERT
    WITH CHECK (current_setting('toolgate.work', TRUE) = 'counting');
CREATE POLICY counting_more ON usage FOR UPDATE
    USING (current_setting('toolgate.work', TRUE) = 'counting')
    WITH CHECK (current_setting('toolgate.work', TRUE) = 'counting');
CREATE POLICY counted ON usage FOR SELECT
    USING (current_setting('toolgate.work', TRUE) IN ('counting', 'forgetting'));
CREATE POLICY forgetting ON usage FOR DELETE
    USING (current_setting('toolgate.work', TRUE) = 'forgetting');
