-- Keys under which the tools are found that a registration is compared with. Made from `tools` alone.
CREATE TABLE tool_marks (
    tenant TEXT COLLATE "C" NOT NULL,
    mark   BIGINT NOT NULL,
    server TEXT COLLATE "C" NOT NULL,
    name   TEXT COLLATE "C" NOT NULL,
    -- Who shares marks of 1,000 in all is compared.
    share  BIGINT NOT NULL,
    PRIMARY KEY (tenant, mark, server, name)
);

CREATE INDEX tool_marks_by_tool ON tool_marks (tenant, server, name);

ALTER TABLE tool_marks ENABLE ROW LEVEL SECURITY;
ALTER TABLE tool_marks FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON tool_marks
    USING (tenant = current_setting('toolgate.tenant', TRUE))
    WITH CHECK (tenant = current_setting('toolgate.tenant', TRUE));

-- The version of the tenant's marks; 0 before any were made.
ALTER TABLE tenants ADD COLUMN marks BIGINT NOT NULL DEFAULT 0;
