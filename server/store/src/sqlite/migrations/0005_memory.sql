-- Intents, as embeddings, with the tools that were called for them.

CREATE TABLE memories (
    tenant  TEXT    NOT NULL PRIMARY KEY,
    -- Counts changes.
    version INTEGER NOT NULL,
    -- The version of the last change that took exemplars away: who knows an older one reads all of them.
    floor   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE exemplars (
    tenant   TEXT    NOT NULL,
    server   TEXT    NOT NULL,
    name     TEXT    NOT NULL,
    place    INTEGER NOT NULL,
    encoder  BLOB    NOT NULL,
    -- A signed byte a dimension.
    imprint  BLOB    NOT NULL,
    strength REAL    NOT NULL,
    seen_ms  INTEGER NOT NULL,
    fades_ms INTEGER NOT NULL,
    owner    BLOB    NOT NULL,
    made     INTEGER NOT NULL,
    -- Eight bytes each.
    voters   BLOB    NOT NULL,
    -- Of the tenant's memory, when it last changed.
    version  INTEGER NOT NULL,
    PRIMARY KEY (tenant, server, name, place)
) STRICT;

CREATE INDEX exemplars_by_version ON exemplars (tenant, version);
CREATE INDEX exemplars_by_fading ON exemplars (tenant, fades_ms);
