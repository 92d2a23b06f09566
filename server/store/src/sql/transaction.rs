//! Implementation of a transaction over sqlx, shared by the databases that sqlx supports.

/// Defines `$name`, a transaction of `$database`. It takes statements from the field `$text` of `Sql`, binds values
/// with `$bind` and inserts rows with `$insert`.
macro_rules! sqlx_transaction {
    (
        $(#[$doc:meta])* $name:ident over $database:ty, $row:ty;
        text: $text:ident, persistent: $persistent:expr, bind: $bind:path, insert: $insert:path, failed: $failed:path
    ) => {
        $(#[$doc])*
        pub(crate) struct $name {
            pub(super) inner: sqlx::Transaction<'static, $database>,
            /// Start time by the store's clock, in milliseconds since 1970 (UTC).
            pub(super) now_ms: i64,
        }

        impl $name {
            fn query<'q>(
                sql: $crate::sql::Sql,
                values: &[$crate::sql::Value<'_>],
            ) -> sqlx::query::Query<'q, $database, <$database as sqlx::Database>::Arguments> {
                let query = sqlx::query(sql.$text).persistent($persistent);
                values.iter().fold(query, $bind)
            }
        }

        impl $crate::sql::Transaction for $name {
            type Row = $row;

            fn now_ms(&self) -> i64 {
                self.now_ms
            }

            async fn all(
                &mut self,
                sql: $crate::sql::Sql,
                values: &[$crate::sql::Value<'_>],
            ) -> Result<Vec<Self::Row>, $crate::StoreError> {
                Self::query(sql, values).fetch_all(&mut *self.inner).await.map_err($failed)
            }

            async fn each(
                &mut self,
                sql: $crate::sql::Sql,
                values: &[$crate::sql::Value<'_>],
                mut take: impl FnMut(&Self::Row) -> Result<(), $crate::StoreError> + Send,
            ) -> Result<(), $crate::StoreError> {
                let mut found = Self::query(sql, values).fetch(&mut *self.inner);
                while let Some(row) = tokio_stream::StreamExt::next(&mut found).await {
                    take(&row.map_err($failed)?)?;
                }
                Ok(())
            }

            async fn optional(
                &mut self,
                sql: $crate::sql::Sql,
                values: &[$crate::sql::Value<'_>],
            ) -> Result<Option<Self::Row>, $crate::StoreError> {
                Self::query(sql, values).fetch_optional(&mut *self.inner).await.map_err($failed)
            }

            async fn run(
                &mut self,
                sql: $crate::sql::Sql,
                values: &[$crate::sql::Value<'_>],
            ) -> Result<u64, $crate::StoreError> {
                let done = Self::query(sql, values).execute(&mut *self.inner).await;
                Ok(done.map_err($failed)?.rows_affected())
            }

            async fn insert(
                &mut self,
                insert: &$crate::sql::Insert,
                rows: &[Vec<$crate::sql::Value<'_>>],
            ) -> Result<(), $crate::StoreError> {
                $insert(&mut self.inner, insert, rows).await
            }
        }
    };
}

pub(crate) use sqlx_transaction;
