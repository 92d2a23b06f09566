-- Counters of what tenants used, by hour. Amounts are added and stop at the largest integer.

CREATE TABLE usage (
    tenant TEXT    NOT NULL,
    -- Hours since 1970 (UTC).
    hour   INTEGER NOT NULL,
    -- What is counted, such as `route_calls`.
    item   TEXT    NOT NULL,
    amount INTEGER NOT NULL,
    PRIMARY KEY (tenant, hour, item)
) STRICT, WITHOUT ROWID;
