-- Whether a tool is shown and callable: 'active', 'quarantined' until somebody approves it, or 'approved'.
ALTER TABLE tools ADD COLUMN status TEXT COLLATE "C" NOT NULL DEFAULT 'active'
    CHECK (status IN ('active', 'quarantined', 'approved'));
