-- True from the announcement of an MCP server to the registration of its tools.
ALTER TABLE servers ADD COLUMN pending INTEGER NOT NULL DEFAULT 0;
