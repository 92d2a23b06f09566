-- MCP servers that were removed, so that who watches the catalog can be told of it.
CREATE TABLE removed_servers (
    tenant   TEXT    NOT NULL REFERENCES tenants (tenant),
    name     TEXT    NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX removed_servers_by_revision ON removed_servers (tenant, revision);

CREATE INDEX servers_by_revision ON servers (tenant, revision);

-- What changed up to this revision can't be told any more.
ALTER TABLE tenants ADD COLUMN changes_floor INTEGER NOT NULL DEFAULT 0;

-- Until now removals were not recorded.
UPDATE tenants SET changes_floor = revision;
