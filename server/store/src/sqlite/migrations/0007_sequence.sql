-- The number of the tenant's last change among all tenants' changes; 0 for those from before it was kept.
ALTER TABLE tenants ADD COLUMN sequence INTEGER NOT NULL DEFAULT 0;

CREATE INDEX tenants_by_sequence ON tenants (sequence);
