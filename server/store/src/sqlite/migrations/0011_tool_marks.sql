-- Keys under which the tools are found that a registration is compared with. Made from `tools` alone.
CREATE TABLE tool_marks (
    tenant TEXT    NOT NULL,
    mark   INTEGER NOT NULL,
    server TEXT    NOT NULL,
    name   TEXT    NOT NULL,
    -- Who shares marks of 1,000 in all is compared.
    share  INTEGER NOT NULL,
    PRIMARY KEY (tenant, mark, server, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX tool_marks_by_tool ON tool_marks (tenant, server, name);

-- The version of the tenant's marks; 0 before any were made.
ALTER TABLE tenants ADD COLUMN marks INTEGER NOT NULL DEFAULT 0;
