-- Sessions of hosts of the MCP gateway that were ended before their time: their IDs stay good by themselves until then.
CREATE TABLE ended_sessions (
    id       TEXT   NOT NULL COLLATE "C" PRIMARY KEY,
    -- Milliseconds since 1970 (UTC).
    until_ms BIGINT NOT NULL
);
CREATE INDEX ended_sessions_by_time ON ended_sessions (until_ms);

-- They are of no tenant; work that is about them says so (toolgate.work).
ALTER TABLE ended_sessions ENABLE ROW LEVEL SECURITY;
ALTER TABLE ended_sessions FORCE ROW LEVEL SECURITY;
CREATE POLICY keeping_sessions ON ended_sessions
    USING (current_setting('toolgate.work', TRUE) = 'sessions')
    WITH CHECK (current_setting('toolgate.work', TRUE) = 'sessions');
