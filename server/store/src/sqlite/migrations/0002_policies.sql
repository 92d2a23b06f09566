-- One document for each tenant, under the revisions of its catalog.
CREATE TABLE policies (
    tenant     TEXT    NOT NULL PRIMARY KEY REFERENCES tenants (tenant),
    document   TEXT    NOT NULL,
    -- Whether it hides tools from some callers.
    hides      INTEGER NOT NULL,
    revision   INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
