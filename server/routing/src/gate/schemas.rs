//! Cache of compiled input schemas, kept between calls because compiling one takes up to 50 ms.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use crate::shard::tool::Tool;
use toolgate_core::identity::TenantId;
use toolgate_core::schema::ArgumentSchema;
use toolgate_store::ContentHash;

/// Maximum schemas in the cache, over all tenants, and their maximum total bytes.
const KEPT: usize = 20_000;
const BYTES: u64 = 256 << 20;
/// Number of partitions of the cache. It is low, because the largest schema must fit in one of them.
const PIECES: usize = 4;

/// Approximate bytes of a schema that can't be compiled, and units of about 100 ns that the failed attempt took.
const BYTES_OF_A_WRONG_ONE: usize = 1 << 10;
const UNITS_OF_A_WRONG_ONE: usize = 10_000;

/// Compiled schema, or the reason why it can't be compiled.
#[derive(Debug, Clone)]
pub struct Compiled(Arc<Result<ArgumentSchema, String>>);

impl Compiled {
    /// Returns the schema.
    ///
    /// # Errors
    /// The reason why it can't be compiled.
    pub fn schema(&self) -> Result<&ArgumentSchema, &String> {
        Result::as_ref(&self.0)
    }

    /// Returns the cost of compiling, in units of about 100 ns.
    #[must_use]
    pub fn units(&self) -> usize {
        self.schema().map_or(UNITS_OF_A_WRONG_ONE, ArgumentSchema::compile_units)
    }
}

/// Cache of compiled schemas by tenant and definition.
pub struct Schemas {
    kept: Cache<(TenantId, ContentHash), Compiled, Bytes>,
    compilations: AtomicU64,
}

/// Weigher of schemas by their bytes.
#[derive(Clone)]
struct Bytes;

impl Weighter<(TenantId, ContentHash), Compiled> for Bytes {
    fn weight(&self, _: &(TenantId, ContentHash), schema: &Compiled) -> u64 {
        schema.schema().map_or(BYTES_OF_A_WRONG_ONE, ArgumentSchema::memory_bytes) as u64
    }
}

impl Default for Schemas {
    fn default() -> Self {
        let options = OptionsBuilder::new()
            .shards(PIECES)
            .estimated_items_capacity(KEPT)
            .weight_capacity(BYTES)
            .build()
            .expect("both capacities are given");
        let hasher = DefaultHashBuilder::default();
        let kept = Cache::with_options(options, Bytes, hasher, DefaultLifecycle::default());
        Self { kept, compilations: AtomicU64::new(0) }
    }
}

impl Schemas {
    /// Returns the tool's schema if it is in the cache.
    #[must_use]
    pub fn kept(&self, tenant: &TenantId, tool: &Tool) -> Option<Compiled> {
        self.kept.get(&(tenant.clone(), tool.hash))
    }

    /// Returns the tool's schema, and compiles it if it is not in the cache. Blocks the thread for up to about 50 ms.
    pub fn compile(&self, tenant: &TenantId, tool: &Tool) -> Compiled {
        let compile = || {
            self.compilations.fetch_add(1, Ordering::Relaxed);
            let schema = ArgumentSchema::compile(tool.definition.input_schema());
            Ok::<_, std::convert::Infallible>(Compiled(Arc::new(schema)))
        };
        let compiled = self.kept.get_or_insert_with(&(tenant.clone(), tool.hash), compile);
        compiled.unwrap_or_else(|never| match never {})
    }

    /// Returns the number of schemas compiled since the start.
    #[must_use]
    pub fn compilations(&self) -> u64 {
        self.compilations.load(Ordering::Relaxed)
    }
}
