//! The tables of a SQLite database.

use super::super::Error;
use super::super::schema::{ForeignKey, Index, Schema, Table, TableColumn, is_asked_for};
use sqlx::AssertSqlSafe;
use sqlx::sqlite::SqliteConnection;

/// The most rows that are counted one by one.
const COUNTED: i64 = 10_000;

pub(super) async fn schema(connection: &mut SqliteConnection, pattern: &str) -> Result<Schema, Error> {
    let mut found: Vec<(String, String)> = sqlx::query_as(
        "SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
         ORDER BY name",
    )
    .fetch_all(&mut *connection)
    .await?;
    found.retain(|(name, _)| is_asked_for(pattern, name));
    let mut schema = Schema::of("sqlite", found.iter().map(|(name, _)| name.clone()).collect());
    let mut bytes = 0;
    for (name, kind) in found {
        let mut table = Table { name, kind, ..Table::default() };
        if let Err(error) = describe(connection, &mut table).await {
            // A view over what is gone.
            table.error = Some(Error::from(error).to_string());
        }
        if !schema.describe(table, &mut bytes) {
            break;
        }
    }
    Ok(schema)
}

async fn describe(connection: &mut SqliteConnection, table: &mut Table) -> Result<(), sqlx::Error> {
    // Type, default, whether it may be NULL, place in the primary key.
    let columns: Vec<(String, String, Option<String>, bool, i64)> = sqlx::query_as(
        "SELECT name, type, dflt_value, \"notnull\", pk FROM pragma_table_xinfo(?) WHERE hidden <> 1 ORDER BY cid",
    )
    .bind(&table.name)
    .fetch_all(&mut *connection)
    .await?;
    table.columns = columns
        .into_iter()
        .map(|(name, kind, default, not_null, key)| TableColumn {
            name,
            kind,
            nullable: !not_null,
            default,
            primary_key: key > 0,
        })
        .collect();
    let indexes: Vec<(String, bool)> =
        sqlx::query_as("SELECT name, \"unique\" FROM pragma_index_list(?) ORDER BY seq")
            .bind(&table.name)
            .fetch_all(&mut *connection)
            .await?;
    for (name, unique) in indexes {
        let columns = sqlx::query_scalar(
            "SELECT coalesce(name, '(expression)') FROM pragma_index_info(?) ORDER BY seqno",
        )
        .bind(&name)
        .fetch_all(&mut *connection)
        .await?;
        table.indexes.push(Index { name, columns, unique });
    }
    let keys: Vec<(i64, String, String, Option<String>)> = sqlx::query_as(
        "SELECT id, \"table\", \"from\", \"to\" FROM pragma_foreign_key_list(?) ORDER BY id, seq",
    )
    .bind(&table.name)
    .fetch_all(&mut *connection)
    .await?;
    let mut last = None;
    for (id, other, from, to) in keys {
        if last.replace(id) != Some(id) {
            table.foreign_keys.push(ForeignKey { table: other, ..ForeignKey::default() });
        }
        if let Some(key) = table.foreign_keys.last_mut() {
            key.columns.push(from);
            key.references.extend(to);
        }
    }
    if table.kind == "table" {
        table.row_estimate = rows(connection, &table.name).await;
    }
    Ok(())
}

/// The number of rows if they are few, else the largest rowid.
async fn rows(connection: &mut SqliteConnection, table: &str) -> Option<i64> {
    let quoted = format!("\"{}\"", table.replace('"', "\"\""));
    let counted = format!("SELECT count(*) FROM (SELECT 1 FROM {quoted} LIMIT {})", COUNTED + 1);
    let counted: i64 = sqlx::query_scalar(AssertSqlSafe(counted)).fetch_one(&mut *connection).await.ok()?;
    if counted <= COUNTED {
        return Some(counted);
    }
    let largest = format!("SELECT max(rowid) FROM {quoted}");
    sqlx::query_scalar(AssertSqlSafe(largest)).fetch_one(&mut *connection).await.ok()
}
