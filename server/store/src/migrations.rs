//! Builds the migrations of a database from the SQL files beside its store. sqlx's own macro does this too, but it
//! compiles both drivers a second time for the compiler, which adds a tenth to the build time of all dependencies.

use sqlx::SqlSafeStr as _;
use sqlx::migrate::{Migration, MigrationType, Migrator};

/// SQL file of a folder of migrations.
pub(super) struct File {
    /// File name in the form `NUMBER_WHAT_IT_ADDS.sql`. The number is the position of the file, from 1.
    pub(super) name: &'static str,
    pub(super) sql: &'static str,
}

/// Lists files of the folder `migrations` beside the source file, in the order in which they are applied.
macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        &[$($crate::migrations::File {
            name: $name,
            sql: include_str!(concat!("migrations/", $name)),
        }),+]
    };
}
pub(super) use files;

/// Builds migrations exactly as sqlx reads them from a folder. Databases store their versions, descriptions and
/// checksums, so these must match.
pub(super) fn migrator(files: &[File]) -> Migrator {
    let migration = |(version, file): (i64, &File)| {
        let words = file.name.split_once('_').map_or(file.name, |(_, words)| words);
        let description = words.trim_end_matches(".sql").replace('_', " ");
        let sql = file.sql.into_sql_str();
        Migration::new(version, description.into(), MigrationType::Simple, sql, false)
    };
    Migrator::with_migrations((1..).zip(files).map(migration).collect())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{postgres, sqlite};
    use super::*;

    #[tokio::test]
    async fn every_file_of_the_folders_is_there_as_sqlx_reads_it() {
        for (store, made) in [("sqlite", &sqlite::SCHEMA), ("postgres", &postgres::MIGRATIONS)] {
            let folder =
                Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/{store}/migrations"));
            let read = Migrator::new(folder).await.expect("SQL files");
            assert!(read.iter().count() >= 4);
            let told = |migrator: &Migrator| -> Vec<_> {
                let told = migrator.iter().map(|one| {
                    let checksum = one.checksum.to_vec();
                    (one.version, one.description.clone(), one.migration_type, one.no_tx, checksum)
                });
                told.collect()
            };
            assert_eq!(told(made), told(&read), "{store}");
        }
    }
}
