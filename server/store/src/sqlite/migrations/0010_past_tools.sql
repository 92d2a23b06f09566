-- What tools said when they were removed, so that one that comes back otherwise is known for a change.
CREATE TABLE past_tools (
    tenant       TEXT    NOT NULL REFERENCES tenants (tenant),
    server       TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    -- Of the definition, and of the summary.
    hash         BLOB    NOT NULL,
    summary_hash BLOB    NOT NULL,
    search_hint  TEXT    NOT NULL,
    status       TEXT    NOT NULL CHECK (status IN ('active', 'quarantined', 'approved')),
    -- Milliseconds since 1970 (UTC).
    removed_ms   INTEGER NOT NULL,
    PRIMARY KEY (tenant, server, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX past_tools_by_age ON past_tools (tenant, removed_ms);
