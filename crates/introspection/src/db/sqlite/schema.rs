//! The tables of a SQLite database.

use super::super::Error;
use super::super::schema::{
    DatabaseSchema, ForeignKey, TableColumn, TableIndex, TableSchema, key_action, matches_pattern,
};
use super::definition::{TableDefinition, index_predicate};
use sqlx::AssertSqlSafe;
use sqlx::sqlite::SqliteConnection;

/// The most rows that are counted one by one; counting a large table would read all of it.
const MAX_COUNTED_ROWS: i64 = 10_000;

/// Describes the tables and views that `pattern` selects.
pub(super) async fn schema(
    connection: &mut SqliteConnection,
    pattern: &str,
) -> Result<DatabaseSchema, Error> {
    let mut tables: Vec<(String, String)> = sqlx::query_as(
        "SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
         ORDER BY name",
    )
    .fetch_all(&mut *connection)
    .await
    .map_err(Error::engine)?;
    tables.retain(|(name, _)| matches_pattern(pattern, name));
    let mut schema = DatabaseSchema::new("sqlite", tables.iter().map(|(name, _)| name.clone()).collect());
    let mut bytes = 0;
    for (name, kind) in tables {
        let mut table = TableSchema { name, kind, ..TableSchema::default() };
        if let Err(error) = describe(connection, &mut table).await {
            // A view over a table that was dropped. The other tables are still described.
            table.error = Some(Error::engine(error).to_string());
        }
        if !schema.push_table(table, &mut bytes) {
            break;
        }
    }
    Ok(schema)
}

/// Fills in the columns, indexes, foreign keys and row estimate of `table`.
async fn describe(connection: &mut SqliteConnection, table: &mut TableSchema) -> Result<(), sqlx::Error> {
    // Name, type, default, NOT NULL, position in the primary key (0 if it is no part of it). Hidden columns are those of
    // virtual tables.
    let columns: Vec<(String, String, Option<String>, bool, i64, i64)> = sqlx::query_as(
        "SELECT name, type, dflt_value, \"notnull\", pk, hidden FROM pragma_table_xinfo(?) WHERE hidden <> 1 ORDER BY cid",
    )
    .bind(&table.name)
    .fetch_all(&mut *connection)
    .await?;
    let sql: Option<String> =
        sqlx::query_scalar("SELECT sql FROM sqlite_schema WHERE name = ? AND type IN ('table', 'view')")
            .bind(&table.name)
            .fetch_optional(&mut *connection)
            .await?
            .flatten();
    let definition = TableDefinition::parse(sql.as_deref().unwrap_or_default());
    table.columns = columns
        .into_iter()
        .map(|(name, kind, default, not_null, key, hidden)| {
            // Only the one column of the primary key may be declared so.
            let is_numbered = key > 0 && definition.autoincrement;
            TableColumn {
                nullable: !not_null,
                default,
                primary_key: key > 0,
                generated: match hidden {
                    2 | 3 => {
                        let kept = if hidden == 3 { "stored" } else { "virtual" };
                        let expression = definition.generated(&name);
                        Some(expression.map_or(kept.to_owned(), |expression| format!("{kept} {expression}")))
                    }
                    _ => None,
                },
                identity: is_numbered.then(|| "autoincrement".to_owned()),
                name,
                kind,
            }
        })
        .collect();
    table.checks = definition.checks;
    let indexes: Vec<(String, bool, Option<String>)> = sqlx::query_as(
        "SELECT l.name, l.\"unique\", s.sql FROM pragma_index_list(?) l \
         LEFT JOIN sqlite_schema s ON s.type = 'index' AND s.name = l.name AND l.partial ORDER BY l.seq",
    )
    .bind(&table.name)
    .fetch_all(&mut *connection)
    .await?;
    for (name, unique, partial) in indexes {
        let predicate = partial.as_deref().and_then(index_predicate);
        let columns = sqlx::query_scalar(
            "SELECT coalesce(name, '(expression)') FROM pragma_index_info(?) ORDER BY seqno",
        )
        .bind(&name)
        .fetch_all(&mut *connection)
        .await?;
        table.indexes.push(TableIndex { name, columns, unique, predicate });
    }
    type KeyRow = (i64, String, String, Option<String>, String, String);
    let keys: Vec<KeyRow> = sqlx::query_as(
        "SELECT id, \"table\", \"from\", \"to\", on_delete, on_update FROM pragma_foreign_key_list(?) ORDER BY id, seq",
    )
    .bind(&table.name)
    .fetch_all(&mut *connection)
    .await?;
    // A row for each column of a key; rows of one key follow each other.
    let mut last = None;
    for (id, referenced_table, from, to, on_delete, on_update) in keys {
        if last.replace(id) != Some(id) {
            table.foreign_keys.push(ForeignKey {
                table: referenced_table,
                on_delete: key_action(&on_delete),
                on_update: key_action(&on_update),
                ..ForeignKey::default()
            });
        }
        if let Some(key) = table.foreign_keys.last_mut() {
            key.columns.push(from);
            // NULL if the key refers to the primary key without naming it.
            key.references.extend(to);
        }
    }
    if table.kind == "table" {
        // A view is not counted: it would have to be computed.
        table.row_estimate = estimate_rows(connection, &table.name).await;
    }
    Ok(())
}

/// Returns the number of rows if there are at most [`MAX_COUNTED_ROWS`], else the largest rowid, which is found without
/// reading the table.
async fn estimate_rows(connection: &mut SqliteConnection, table: &str) -> Option<i64> {
    let quoted = format!("\"{}\"", table.replace('"', "\"\""));
    // The inner LIMIT bounds the work: `count(*)` alone reads the whole table.
    let count = format!("SELECT count(*) FROM (SELECT 1 FROM {quoted} LIMIT {})", MAX_COUNTED_ROWS + 1);
    let counted: i64 = sqlx::query_scalar(AssertSqlSafe(count)).fetch_one(&mut *connection).await.ok()?;
    if counted <= MAX_COUNTED_ROWS {
        return Some(counted);
    }
    let largest = format!("SELECT max(rowid) FROM {quoted}");
    sqlx::query_scalar(AssertSqlSafe(largest)).fetch_one(&mut *connection).await.ok()
}
