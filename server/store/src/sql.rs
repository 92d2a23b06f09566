//! What the SQL backends do alike. Each has one text for a statement, over the small face of a transaction
//! that is below; how a database is reached, locked and brought up to date is each backend's own.

use std::borrow::Cow;
use std::sync::atomic::AtomicU64;

use super::{ContentHash, StoreError, StoreFuture};

mod access;
mod changes;
mod commit;
mod content;
mod embeddings;
mod keys;
mod memory;
mod past;
mod policies;
mod read;
mod removed;
mod requests;
pub(super) mod rows;
mod tools;
pub(super) mod transaction;
mod usage;

/// What a transaction is for. Where the database holds tenants apart by itself, it is told so.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scope<'a> {
    /// One tenant's content.
    Tenant(&'a str),
    /// Which tenants there are, and which of them changed: no content.
    Following,
    /// Counters of usage, added to for many tenants at once.
    Counting,
    /// Old counters of usage of all tenants, to be forgotten.
    Forgetting,
    /// API keys, which are looked up before the tenant is known.
    Keys,
}

/// A database that holds catalogs.
pub(super) trait Backend: Send + Sync + 'static {
    /// A transaction; dropped without a commit, it leaves nothing.
    type Transaction: Transaction;

    /// Begins a transaction that sees one state of the database throughout.
    fn begin_read(
        &self,
        scope: Scope<'_>,
    ) -> impl Future<Output = Result<Self::Transaction, StoreError>> + Send;

    /// Begins a transaction that writes. Those of one tenant wait for each other.
    fn begin_write(
        &self,
        scope: Scope<'_>,
    ) -> impl Future<Output = Result<Self::Transaction, StoreError>> + Send;

    /// Commits: what is acknowledged survives a power cut.
    fn commit(
        &self,
        transaction: Self::Transaction,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Closes the database, after the calls under way.
    fn close(&self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Whether the database undid a transaction for others' sake, so that it may be tried again.
    fn was_undone(error: &StoreError) -> bool;

    /// Gives room back that was set aside, if `error` is a full disk; returns true if there was any.
    fn make_room(&self, _error: &StoreError) -> bool {
        false
    }

    /// Counts the calls that failed.
    fn failures(&self) -> &AtomicU64;

    /// Whether other processes may change what is stored.
    fn is_shared(&self) -> bool;

    /// Returns the time by the store's clock as far as it is known, in milliseconds since 1970.
    fn clock_ms(&self) -> i64;

    /// Answers when something may have changed; never where nobody tells.
    fn hint(&self) -> StoreFuture<'_, ()>;
}

/// Statements within one transaction.
pub(super) trait Transaction: Send {
    /// What a query finds.
    type Row: Row + Send;

    /// Returns when the transaction began by the store's clock, in milliseconds since 1970.
    fn now_ms(&self) -> i64;

    /// All rows of a query.
    fn all(
        &mut self,
        sql: Sql,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Vec<Self::Row>, StoreError>> + Send;

    /// Gives each row of a query to `take`, without holding all of them.
    fn each(
        &mut self,
        sql: Sql,
        values: &[Value<'_>],
        take: impl FnMut(&Self::Row) -> Result<(), StoreError> + Send,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The row of a query, if there is one.
    fn optional(
        &mut self,
        sql: Sql,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Option<Self::Row>, StoreError>> + Send;

    /// Runs a statement; how many rows it changed.
    fn run(
        &mut self,
        sql: Sql,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Inserts rows, many a statement: a registration may bring thousands.
    fn insert(
        &mut self,
        insert: &Insert,
        rows: &[Vec<Value<'_>>],
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// The columns of a row by their names. What no commit wrote is [`StoreError::Damaged`].
pub(super) trait Row {
    /// A text.
    fn text(&self, column: &str) -> Result<Cow<'_, str>, StoreError>;
    /// A text, if there is one.
    fn optional_text(&self, column: &str) -> Result<Option<Cow<'_, str>>, StoreError>;
    /// An integer.
    fn integer(&self, column: &str) -> Result<i64, StoreError>;
    /// True or false.
    fn flag(&self, column: &str) -> Result<bool, StoreError>;
    /// A number with a fraction.
    fn real(&self, column: &str) -> Result<f32, StoreError>;
    /// Bytes.
    fn bytes(&self, column: &str) -> Result<&[u8], StoreError>;
}

/// A statement in each backend's words, with parameters `$1`, `$2` and so on. Made by `sql!`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sql {
    /// For SQLite.
    pub(super) sqlite: &'static str,
    /// For PostgreSQL.
    pub(super) postgres: &'static str,
}

/// A statement that inserts rows.
#[derive(Debug)]
pub(super) struct Insert {
    /// `table (columns)`.
    pub(super) into: &'static str,
    /// What each column holds.
    pub(super) columns: &'static [Column],
    /// What comes after the rows: what to do about those that are there.
    pub(super) then: &'static str,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// Texts, which may be missing.
    Text,
    /// Integers.
    Integer,
    /// True or false.
    Flag,
    /// Numbers with a fraction.
    Real,
    /// Bytes.
    Bytes,
}

/// A statement's parameter.
#[derive(Debug, Clone)]
pub(super) enum Value<'a> {
    /// A text, which may be missing.
    Text(Option<Cow<'a, str>>),
    /// An integer.
    Integer(i64),
    /// True or false.
    Flag(bool),
    /// A number with a fraction.
    Real(f32),
    /// Bytes.
    Bytes(Cow<'a, [u8]>),
    /// Texts to look for.
    Texts(Vec<&'a str>),
    /// Hashes to look for.
    Hashes(Vec<&'a ContentHash>),
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

/// A statement's text, in pieces: texts that both backends read alike; `[texts 3]` and `[hashes 3]`, a subquery
/// of the list that is the third parameter; `[either "a", "b"]`, SQLite's words and PostgreSQL's.
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

/// Parameters in their order.
macro_rules! values {
    ($($value:expr),* $(,)?) => { [$($crate::sql::Value::from($value)),*] };
}

pub(super) use {sql, values};
