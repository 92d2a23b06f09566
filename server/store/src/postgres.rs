//! Shared store: a PostgreSQL database that many replicas read and write. The `sql` module holds the statements. This
//! module connects to the database. It uses no session state and no prepared statements, so that it works through a
//! pooler that gives each transaction another connection.

use std::fmt;
use std::str::FromStr as _;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions as _, Row as _};
use sqlx::{SqlSafeStr as _, SqlStr};
use tokio::sync::{Notify, OnceCell};
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

use self::failure::{UseFailure, failed};
use self::reach::Reach;
use self::transaction::PgTransaction;
use super::clock::{StoreClock, here_ms};
use super::sql::{Backend, Scope};
use super::{SchemaState, StoreError, StoreFuture};

mod failure;
mod listen;
mod reach;
mod schema;
#[cfg(test)]
mod tests;
mod transaction;

#[cfg(test)]
pub(super) use self::schema::MIGRATIONS;

/// Statement that begins a read, which sees one state of the database throughout.
const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
/// Statement that begins a write. Writers of one tenant wait for each other at its row, and then see the other's
/// commit.
const BEGIN_WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/// Maximum time that a transaction waits for a lock.
const LOCK_LIMIT: Duration = Duration::from_secs(5);
/// Maximum time that a transaction may be idle. It bounds how long a replica that hangs blocks a tenant.
const IDLE_LIMIT: Duration = Duration::from_secs(30);
/// Time after which an unused connection is closed.
const UNUSED_LIMIT: Duration = Duration::from_secs(10 * 60);
/// Lifetime of a connection. Reconnecting makes a changed address or certificate take effect.
const CONNECTION_LIFE: Duration = Duration::from_secs(30 * 60);

/// Connection settings of a database.
#[derive(Clone)]
pub struct PostgresConfig {
    /// URL of the form `postgres://user:password@host/database?sslmode=...`, a secret.
    pub url: String,
    /// Maximum number of connections, in addition to one that listens.
    pub max_connections: u32,
    /// Maximum time for one statement.
    pub statement_timeout: Duration,
    /// Maximum time to wait for a connection.
    pub connect_timeout: Duration,
    /// True if the store listens for hints of changes.
    pub listen: bool,
}

impl fmt::Debug for PostgresConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PostgresConfig").finish_non_exhaustive()
    }
}

/// Store in a PostgreSQL database.
pub struct PostgresStore {
    pool: PgPool,
    place: String,
    statement_timeout: Duration,
    reach: Reach,
    /// Set after the schema was found current or was migrated.
    ready: OnceCell<()>,
    news: Arc<Notify>,
    failures: AtomicU64,
    clock: StoreClock,
    _listener: Option<AbortOnDropHandle<()>>,
}

impl PostgresStore {
    /// Creates the store at `config.url`. The database need not be reachable yet: calls fail until it is.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if `config.url` is not a valid PostgreSQL URL.
    pub fn new(config: &PostgresConfig) -> Result<Self, StoreError> {
        let options = options(&config.url)?;
        let place = place(&options);
        let pool = PgPoolOptions::new()
            .max_connections(config.max_connections)
            .acquire_timeout(config.connect_timeout)
            .idle_timeout(UNUSED_LIMIT)
            .max_lifetime(CONNECTION_LIFE)
            .connect_lazy_with(options.clone());
        let news = Arc::new(Notify::new());
        let listener = config.listen.then(|| {
            let hints = listen::listen(options, config.connect_timeout, Arc::clone(&news));
            AbortOnDropHandle::new(tokio::spawn(hints))
        });
        Ok(Self {
            pool,
            place,
            statement_timeout: config.statement_timeout,
            reach: Reach::new(config.connect_timeout),
            ready: OnceCell::new(),
            news,
            failures: AtomicU64::new(0),
            clock: StoreClock::default(),
            _listener: listener,
        })
    }

    /// Connects to the store at `config.url` and migrates its schema.
    ///
    /// # Errors
    /// Same as for [`PostgresStore::new`] and [`PostgresStore::prepare`].
    pub async fn open(config: &PostgresConfig) -> Result<Self, StoreError> {
        let store = Self::new(config)?;
        store.prepare().await?;
        Ok(store)
    }

    /// Migrates the schema unless this store already has. Of replicas that start together, one migrates and the
    /// others wait.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] with a cause that names the database, without its password, and the problem.
    pub async fn prepare(&self) -> Result<(), StoreError> {
        // The driver's futures are large without optimisation.
        self.ready.get_or_try_init(|| Box::pin(self.bring_up_to_date())).await.copied()
    }

    /// Compares the schema of the database with this version's schema.
    ///
    /// # Errors
    /// Same as for [`PostgresStore::prepare`].
    pub async fn schema(&self) -> Result<SchemaState, StoreError> {
        schema::state(&self.pool, &self.place).await
    }

    /// Returns true if row-level security does not bind the user: a superuser, or a user with BYPASSRLS.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn is_above_rows(&self) -> Result<bool, StoreError> {
        schema::is_above_rows(&self.pool).await.map_err(failed)
    }

    /// Returns the address of the database for messages, without its password.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    async fn bring_up_to_date(&self) -> Result<(), StoreError> {
        let state = schema::state(&self.pool, &self.place).await?;
        if !state.is_current() {
            let before = schema::migrate(&self.pool, &self.place).await?;
            info!(
                store = self.place,
                from = before.found,
                to = before.wanted,
                "the schema is up to date"
            );
        }
        if self.is_above_rows().await? {
            warn!(
                store = self.place,
                "this user is superuser or has BYPASSRLS: PostgreSQL itself does not keep tenants apart \
                 (docs/store.md says which rights are enough)"
            );
        }
        Ok(())
    }

    /// Begins a transaction and tells the database its scope. Fails at once during an outage.
    async fn begin(
        &self,
        statement: &'static str,
        scope: Scope<'_>,
    ) -> Result<PgTransaction, StoreError> {
        if !self.reach.may_try() {
            return Err(UseFailure::outage(&self.place));
        }
        let begun = async {
            self.prepare().await?;
            self.start(statement.into_sql_str(), scope).await
        };
        let begun = begun.await;
        match &begun {
            Err(error) if failure::is_outage(error) => self.reach.missed(),
            _ => self.reach.reached(),
        }
        begun
    }

    async fn start(
        &self,
        statement: SqlStr,
        scope: Scope<'_>,
    ) -> Result<PgTransaction, StoreError> {
        let refused = |cause| UseFailure::of(&self.place, cause);
        let mut transaction = self.pool.begin_with(statement).await.map_err(refused)?;
        let (tenant, work) = match scope {
            Scope::Tenant(tenant) => (tenant, ""),
            Scope::Following => ("", "following"),
            Scope::Counting => ("", "counting"),
            Scope::Forgetting => ("", "forgetting"),
            Scope::Keys => ("", "keys"),
            Scope::Sessions => ("", "sessions"),
        };
        let millis = |limit: Duration| limit.as_millis().to_string();
        let sql = "SELECT set_config('search_path', 'toolgate, pg_temp', TRUE),
             set_config('toolgate.tenant', $1, TRUE), set_config('toolgate.work', $2, TRUE),
             set_config('statement_timeout', $3, TRUE), set_config('lock_timeout', $4, TRUE),
             set_config('idle_in_transaction_session_timeout', $5, TRUE),
             CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) AS now_ms";
        let asked_ms = here_ms();
        let settings = sqlx::query(sql)
            .persistent(false)
            .bind(tenant.to_owned())
            .bind(work)
            .bind(millis(self.statement_timeout))
            .bind(millis(LOCK_LIMIT.min(self.statement_timeout)))
            .bind(millis(IDLE_LIMIT));
        let set = settings.fetch_one(&mut *transaction).await.map_err(refused)?;
        let now_ms = set.try_get("now_ms").map_err(refused)?;
        self.clock.learn(now_ms, asked_ms, here_ms());
        Ok(PgTransaction { inner: transaction, now_ms })
    }
}

impl Backend for PostgresStore {
    type Transaction = PgTransaction;

    async fn begin_read(&self, scope: Scope<'_>) -> Result<PgTransaction, StoreError> {
        self.begin(BEGIN_READ, scope).await
    }

    async fn begin_write(&self, scope: Scope<'_>) -> Result<PgTransaction, StoreError> {
        let mut transaction = self.begin(BEGIN_WRITE, scope).await?;
        if let Scope::Tenant(tenant) = scope {
            transaction.lock(tenant).await?;
        }
        Ok(transaction)
    }

    /// Commits. If the connection is lost meanwhile, the outcome is unknown; the caller's request id makes a retry
    /// safe.
    async fn commit(&self, transaction: PgTransaction) -> Result<(), StoreError> {
        transaction.inner.commit().await.map_err(failed)
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.pool.close().await;
        Ok(())
    }

    fn was_undone(error: &StoreError) -> bool {
        failure::was_undone(error)
    }

    fn failures(&self) -> &AtomicU64 {
        &self.failures
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn clock_ms(&self) -> i64 {
        self.clock.at_ms(here_ms())
    }

    fn hint(&self) -> StoreFuture<'_, ()> {
        Box::pin(async {
            self.news.notified().await;
            Ok(())
        })
    }
}

/// Returns true if the database can't be reached now, which may be temporary.
#[must_use]
pub fn is_outage(error: &StoreError) -> bool {
    failure::is_outage(error)
}

/// Parses the URL and adds options for poolers: no statement cache, and no setting that a pooler would refuse.
fn options(url: &str) -> Result<PgConnectOptions, StoreError> {
    let options = PgConnectOptions::from_str(url);
    // The cause may contain a part of the URL.
    let options = options.map_err(|_| UseFailure::lasting("store.url", "not a PostgreSQL URL"))?;
    let named = options.get_application_name().is_some();
    let options = if named { options } else { options.application_name("toolgate") };
    let options = options.statement_cache_capacity(0).extra_float_digits(None);
    Ok(options.disable_statement_logging())
}

fn place(options: &PgConnectOptions) -> String {
    let user = options.get_username();
    let database = options.get_database().unwrap_or(user);
    match options.get_socket() {
        Some(socket) => format!("postgres://{user}@{}/{database}", socket.display()),
        None => {
            format!("postgres://{user}@{}:{}/{database}", options.get_host(), options.get_port())
        }
    }
}
