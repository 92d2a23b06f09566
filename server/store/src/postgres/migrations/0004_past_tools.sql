-- What tools said when they were removed, so that one that comes back otherwise is known for a change.
CREATE TABLE past_tools (
    tenant       TEXT COLLATE "C" NOT NULL REFERENCES tenants (tenant),
    server       TEXT COLLATE "C" NOT NULL,
    name         TEXT COLLATE "C" NOT NULL,
    -- Of the definition, and of the summary.
    hash         BYTEA NOT NULL,
    summary_hash BYTEA NOT NULL,
    search_hint  TEXT COLLATE "C" NOT NULL,
    status       TEXT COLLATE "C" NOT NULL CHECK (status IN ('active', 'quarantined', 'approved')),
    -- Milliseconds since 1970 (UTC).
    removed_ms   BIGINT NOT NULL,
    PRIMARY KEY (tenant, server, name)
);

CREATE INDEX past_tools_by_age ON past_tools (tenant, removed_ms);

ALTER TABLE past_tools ENABLE ROW LEVEL SECURITY;
ALTER TABLE past_tools FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON past_tools
    USING (tenant = current_setting('toolgate.tenant', TRUE))
    WITH CHECK (tenant = current_setting('toolgate.tenant', TRUE));
