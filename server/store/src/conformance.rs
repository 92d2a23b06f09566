//! Conformance tests for all backends, as functions over `&dyn Store`. `conformance_tests!` turns them into tests of
//! one backend. Each function gets an empty store.

use super::{
    CatalogStore, ChangeFeed, ContentHash, EmbeddingStore, KeyStore, MemoryStore, PendingRequest,
    PolicyChange, Revision, ServerChange, ServerRecord, Store, StoreError, StoredCatalog,
    StoredEmbedding, TenantArchive, ToolRecord, ToolStatus, UsageStore,
};
use toolgate_core::identity::{ServerName, TenantId, ToolName};
use toolgate_core::mcp_server::{TransportHint, TrustTier};

mod changes;
mod commits;
mod concurrency;
mod content;
mod deltas;
mod embeddings;
mod keys;
mod memory;
mod model;
mod past;
mod policies;
mod properties;
mod quarantine;
mod reads;
mod requests;
mod sessions;
mod similar;
mod usage;

pub(super) use changes::*;
pub(super) use commits::*;
pub(super) use concurrency::*;
pub(super) use content::*;
pub(super) use deltas::*;
pub(super) use embeddings::*;
pub(super) use keys::*;
pub(super) use memory::*;
pub(super) use past::*;
pub(super) use policies::*;
pub(super) use properties::*;
pub(super) use quarantine::*;
pub(super) use reads::*;
pub(super) use requests::*;
pub(super) use sessions::*;
pub(super) use similar::*;
pub(super) use usage::*;

/// Defines a test for each function of the suite. `$open` returns a fixture with a field `store`.
macro_rules! conformance_tests {
    ($open:path) => {
        $crate::conformance::conformance_tests!($open:
            an_unknown_tenant_has_nothing,
            a_commit_is_read_back_whole,
            a_stale_base_is_refused,
            a_removed_server_is_gone_and_revisions_go_on,
            a_taken_name_is_refused,
            names_move_within_one_change,
            the_stock_is_limited,
            a_failed_commit_leaves_nothing,
            many_tools_commit_at_once,
            pages_follow_each_other,
            tenants_do_not_meet,
            texts_are_kept_byte_for_byte,
            the_pool_keeps_its_order,
            a_name_taken_again_is_no_removal,
            scopes_begin_deltas_anew,
            removed_names_are_pruned_by_whole_revisions,
            a_quarantined_tool_is_read_back_apart,
            quarantine_is_told_as_a_removal,
            quarantine_of_a_scoped_tool_begins_deltas_anew,
            removed_tools_are_remembered,
            removed_tools_are_forgotten_in_time,
            removing_many_tools_makes_no_others_forgotten,
            similar_tools_are_read_and_no_others,
            marks_go_with_their_tools,
            a_comparison_that_lacks_a_tool_is_refused,
            embeddings_go_with_their_last_tool,
            saved_embeddings_are_kept,
            embeddings_that_come_after_their_tool_went_are_not_kept,
            a_request_is_remembered_with_its_change,
            a_request_id_stands_for_one_request,
            an_unchanged_request_is_recorded_once,
            a_policy_is_read_back_with_its_catalog,
            a_stale_policy_is_refused,
            a_policy_begins_deltas_anew,
            a_policy_that_hides_tells_nobody_of_changes,
            policies_of_tenants_do_not_meet,
            changes_are_told_by_server,
            old_removals_can_not_be_told,
            changed_tenants_are_told_in_order,
            tenants_are_listed_by_name,
            content_is_stored_elsewhere_as_it_is,
            one_commit_wins_each_base,
            readers_see_whole_changes,
            exemplars_are_read_back_whole,
            memory_tells_what_changed,
            memory_is_cleared_by_tool_server_and_tenant,
            memory_goes_with_its_tool,
            memory_is_bounded_and_fades,
            usage_is_added_up_by_hour,
            usage_of_tenants_does_not_meet,
            usage_stays_at_its_most,
            usage_is_folded_into_wider_buckets,
            old_usage_is_forgotten_for_all_tenants,
            usage_added_at_once_is_all_there,
            a_key_is_read_back_whole,
            keys_are_read_with_the_store_s_time,
            a_key_is_made_once,
            an_ended_session_stays_so_for_its_time,
            keys_are_listed_by_id,
            a_revoked_key_ends_no_later,
            use_of_keys_is_marked,
        );

        #[test]
        fn random_operations_agree_with_the_model() {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            let fixture = runtime.block_on($open());
            $crate::conformance::random_operations(&fixture.store, &runtime);
        }
    };
    ($open:path: $($name:ident,)*) => {
        $(#[tokio::test]
        async fn $name() {
            let fixture = $open().await;
            $crate::conformance::$name(&fixture.store).await;
        })*
    };
}
pub(super) use conformance_tests;

pub(super) const ENCODER: &str = "encoder-1";
const ROOM: u64 = 100_000;

pub(super) fn tenant(name: &str) -> TenantId {
    TenantId::parse(name).expect("a tenant")
}

pub(super) fn server_name(name: &str) -> ServerName {
    ServerName::parse(name).expect("an MCP server's name")
}

pub(super) fn tool_name(name: &str) -> ToolName {
    ToolName::parse(name).expect("a tool's name")
}

pub(super) fn tool(server: &str, name: &str, summary: &str) -> ToolRecord {
    ToolRecord {
        server: server_name(server),
        name: tool_name(name),
        model_name: format!("mcp__{server}__{name}"),
        summary: summary.to_owned(),
        search_hint: format!("hint of {name}"),
        definition: format!("{{\"name\": \"{name}\"}}"),
        hash: hash_of(name),
        precondition: None,
        required_scopes: Vec::new(),
        always_load: false,
        critical: false,
        schema_tokens: 7,
        summary_tokens: 3,
        status: ToolStatus::Active,
    }
}

pub(super) fn change(
    server: &str,
    base: Option<Revision>,
    upserts: Vec<ToolRecord>,
) -> ServerChange {
    ServerChange {
        base,
        server: ServerRecord {
            description: format!("what {server} is for"),
            transport_hint: TransportHint::Stdio,
            trust_tier: TrustTier::Standard,
            ..ServerRecord::new(server_name(server))
        },
        upserts,
        removals: Vec::new(),
        embeddings: Vec::new(),
        fingerprint: ENCODER.to_owned(),
        comparison: None,
        max_tools: ROOM,
        max_servers: ROOM,
        request: None,
    }
}

pub(super) fn removal(server: &str, base: Revision, names: &[&str]) -> ServerChange {
    let removals = names.iter().map(|name| tool_name(name)).collect();
    ServerChange { removals, ..change(server, Some(base), Vec::new()) }
}

pub(super) fn request(id: &str, body: &str) -> PendingRequest {
    let answer = format!("answer to {body}").into_bytes();
    PendingRequest { id: id.to_owned(), body_hash: hash_of(body), answer }
}

pub(super) fn embedding(text: &str, vector: &[f32]) -> StoredEmbedding {
    StoredEmbedding { text_hash: hash_of(text), vector: vector.to_vec() }
}

pub(super) fn hash_of(text: &str) -> ContentHash {
    use sha2::{Digest, Sha256};
    Sha256::digest(text.as_bytes()).into()
}

/// Commits a change and returns its revision.
pub(super) async fn commit(
    store: &dyn CatalogStore,
    to: &TenantId,
    change: ServerChange,
) -> Revision {
    store.commit(to, change).await.expect("a commit").revision
}

/// Returns the error of a commit that must fail.
async fn refusal(store: &dyn CatalogStore, to: &TenantId, change: ServerChange) -> StoreError {
    store.commit(to, change).await.expect_err("a refusal")
}

pub(super) async fn catalog(store: &dyn CatalogStore, of: &TenantId) -> StoredCatalog {
    store.load_catalog(of).await.expect("a read").expect("a catalog")
}
