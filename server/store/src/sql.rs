//! Common part of the SQL backends. It holds one text for each statement, over the small transaction interface below.
//! Each backend decides how its database is connected, locked and migrated.

use std::borrow::Cow;
use std::sync::atomic::AtomicU64;

use super::{ContentHash, StoreError, StoreFuture};

mod access;
mod changes;
mod commit;
mod content;
mod embeddings;
mod keys;
pub(super) mod marks;
mod memory;
mod past;
mod policies;
mod read;
mod removed;
mod requests;
pub(super) mod rows;
mod sessions;
mod tools;
pub(super) mod transaction;
mod usage;

/// Purpose of a transaction. A database that isolates tenants itself is told the purpose.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scope<'a> {
    /// Access to the content of one tenant.
    Tenant(&'a str),
    /// Access to the list of tenants and their changes, without content.
    Following,
    /// Additions to the usage counters of many tenants at once.
    Counting,
    /// Deletion of old usage counters of all tenants.
    Forgetting,
    /// Access to API keys, which are looked up before the tenant is known.
    Keys,
    /// Access to sessions that were ended, which are of no tenant.
    Sessions,
}

/// Database that stores catalogs.
pub(super) trait Backend: Send + Sync + 'static {
    /// Transaction of this database. Dropped without a commit, it changes nothing.
    type Transaction: Transaction;

    /// Begins a transaction that sees one state of the database throughout.
    fn begin_read(
        &self,
        scope: Scope<'_>,
    ) -> impl Future<Output = Result<Self::Transaction, StoreError>> + Send;

    /// Begins a transaction that writes. Write transactions of one tenant wait for each other.
    fn begin_write(
        &self,
        scope: Scope<'_>,
    ) -> impl Future<Output = Result<Self::Transaction, StoreError>> + Send;

    /// Commits a transaction. After it returns, the changes survive a power cut.
    fn commit(
        &self,
        transaction: Self::Transaction,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Closes the database after the calls in progress.
    fn close(&self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Returns true if the database rolled a transaction back because of a conflict with others, so that it may be
    /// retried.
    fn was_undone(error: &StoreError) -> bool;

    /// Releases reserved disk space if `error` is a full disk. Returns true if there was any.
    fn make_room(&self, _error: &StoreError) -> bool {
        false
    }

    /// Returns the counter of failed calls.
    fn failures(&self) -> &AtomicU64;

    /// Returns true if other processes may change the stored data.
    fn is_shared(&self) -> bool;

    /// Returns the time by the store's clock as far as it is known, in milliseconds since 1970 (UTC).
    fn clock_ms(&self) -> i64;

    /// Completes when something may have changed. Never completes if the backend has no notifications.
    fn hint(&self) -> StoreFuture<'_, ()>;
}

/// Statements within one transaction.
pub(super) trait Transaction: Send {
    /// Row that a query returns.
    type Row: Row + Send;

    /// Returns the start time of the transaction by the store's clock, in milliseconds since 1970 (UTC).
    fn now_ms(&self) -> i64;

    /// Returns all rows of a query.
    fn all(
        &mut self,
        sql: Sql,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Vec<Self::Row>, StoreError>> + Send;

    /// Passes each row of a query to `take`, without holding all rows in memory.
    fn each(
        &mut self,
        sql: Sql,
        values: &[Value<'_>],
        take: impl FnMut(&Self::Row) -> Result<(), StoreError> + Send,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Returns the row of a query, if there is one.
    fn optional(
        &mut self,
        sql: Sql,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Option<Self::Row>, StoreError>> + Send;

    /// Runs a statement and returns the number of rows that it changed.
    fn run(
        &mut self,
        sql: Sql,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Inserts rows, many in one statement, because a registration may contain thousands.
    fn insert(
        &mut self,
        insert: &Insert,
        rows: &[Vec<Value<'_>>],
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// Columns of a row by name. A value that no commit could have written gives [`StoreError::Damaged`].
pub(super) trait Row {
    /// Returns a text column.
    fn text(&self, column: &str) -> Result<Cow<'_, str>, StoreError>;
    /// Returns a text column that may be NULL.
    fn optional_text(&self, column: &str) -> Result<Option<Cow<'_, str>>, StoreError>;
    /// Returns an integer column.
    fn integer(&self, column: &str) -> Result<i64, StoreError>;
    /// Returns a boolean column.
    fn flag(&self, column: &str) -> Result<bool, StoreError>;
    /// Returns a floating-point column.
    fn real(&self, column: &str) -> Result<f32, StoreError>;
    /// Returns a column of bytes.
    fn bytes(&self, column: &str) -> Result<&[u8], StoreError>;
}

/// Statement in the dialect of each backend, with parameters `$1`, `$2` and so on. Use `sql!` to make one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sql {
    /// Text for SQLite.
    pub(super) sqlite: &'static str,
    /// Text for PostgreSQL.
    pub(super) postgres: &'static str,
}

/// Statement that inserts rows.
#[derive(Debug)]
pub(super) struct Insert {
    /// Table and columns, as `table (columns)`.
    pub(super) into: &'static str,
    /// Types of the columns.
    pub(super) columns: &'static [Column],
    /// Clause after the rows, which resolves conflicts with existing rows.
    pub(super) then: &'static str,
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// Text, which may be NULL.
    Text,
    /// 64-bit integer.
    Integer,
    /// Boolean.
    Flag,
    /// Floating-point number.
    Real,
    /// Byte string.
    Bytes,
}

/// Parameter of a statement.
#[derive(Debug, Clone)]
pub(super) enum Value<'a> {
    /// Text, which may be NULL.
    Text(Option<Cow<'a, str>>),
    /// 64-bit integer.
    Integer(i64),
    /// Boolean.
    Flag(bool),
    /// Floating-point number.
    Real(f32),
    /// Byte string.
    Bytes(Cow<'a, [u8]>),
    /// List of texts to look for.
    Texts(Vec<&'a str>),
    /// List of hashes to look for.
    Hashes(Vec<&'a ContentHash>),
    /// List of integers to join with.
    Integers(Vec<i64>),
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Some(Cow::Borrowed(text)))
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(Some(Cow::Owned(text)))
    }
}

impl<'a> From<Option<&'a str>> for Value<'a> {
    fn from(text: Option<&'a str>) -> Self {
        Self::Text(text.map(Cow::Borrowed))
    }
}

impl From<Option<String>> for Value<'_> {
    fn from(text: Option<String>) -> Self {
        Self::Text(text.map(Cow::Owned))
    }
}

impl From<i64> for Value<'_> {
    fn from(integer: i64) -> Self {
        Self::Integer(integer)
    }
}

impl From<i32> for Value<'_> {
    fn from(integer: i32) -> Self {
        Self::Integer(integer.into())
    }
}

impl From<u32> for Value<'_> {
    fn from(integer: u32) -> Self {
        Self::Integer(integer.into())
    }
}

impl From<bool> for Value<'_> {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<f32> for Value<'_> {
    fn from(real: f32) -> Self {
        Self::Real(real)
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(Cow::Borrowed(bytes))
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Value<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Self::Bytes(Cow::Borrowed(bytes))
    }
}

impl From<Vec<u8>> for Value<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(Cow::Owned(bytes))
    }
}

/// Builds a statement from pieces: a text that both backends share; `[texts 3]` and `[hashes 3]`, a subquery of the
/// list in the third parameter; `[either "a", "b"]`, a text for SQLite and one for PostgreSQL.
macro_rules! sql {
    (@sqlite [texts $n:literal]) => { concat!("(SELECT value FROM json_each($", $n, "))") };
    (@postgres [texts $n:literal]) => { concat!("(SELECT unnest($", $n, "))") };
    (@sqlite [hashes $n:literal]) => { concat!("(SELECT unhex(value) FROM json_each($", $n, "))") };
    (@postgres [hashes $n:literal]) => { concat!("(SELECT unnest($", $n, "))") };
    (@sqlite [either $sqlite:literal, $postgres:literal]) => { $sqlite };
    (@postgres [either $sqlite:literal, $postgres:literal]) => { $postgres };
    (@$backend:ident $text:literal) => { $text };
    ($($part:tt)+) => {
        $crate::sql::Sql {
            sqlite: concat!($($crate::sql::sql!(@sqlite $part)),+),
            postgres: concat!($($crate::sql::sql!(@postgres $part)),+),
        }
    };
}

/// Builds the array of a statement's parameters, in order.
macro_rules! values {
    ($($value:expr),* $(,)?) => { [$($crate::sql::Value::from($value)),*] };
}

pub(super) use {sql, values};
