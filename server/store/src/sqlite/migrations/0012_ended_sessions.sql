-- Sessions of hosts of the MCP gateway that were ended before their time: their IDs stay good by themselves until then.
CREATE TABLE ended_sessions (
    id       TEXT    NOT NULL PRIMARY KEY,
    -- Milliseconds since 1970 (UTC).
    until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
