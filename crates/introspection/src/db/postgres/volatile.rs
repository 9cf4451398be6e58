//! Refuses statements that call functions which act.
//!
//! A read-only transaction does not stop a function that ends another connection, takes a lock, or writes to the log of
//! changes. The catalog marks all of them `VOLATILE`, and functions of the application as well unless their author said
//! otherwise. A function that is not volatile can itself run no statement but `SELECT`.
//!
//! Seen are: the functions and operators that the statement names, casts and domains that it names, and everything in the
//! views that it reads. Not seen are: what the body of a function calls that its author declared `STABLE`, and casts that
//! happen without being written. What a table's policies, defaults and triggers call belongs to the application.

use super::super::{DbAction, Error};
use super::tokens::StatementTokens;
use sqlx::postgres::PgConnection;

/// Functions of PostgreSQL that are volatile because their results vary, and do nothing else.
const HARMLESS: [&str; 60] = [
    "bernoulli",
    "clock_timestamp",
    "current_query",
    "currval",
    "gen_random_uuid",
    "lastval",
    "lo_get",
    "pg_blocking_pids",
    "pg_collation_actual_version",
    "pg_control_checkpoint",
    "pg_control_init",
    "pg_control_recovery",
    "pg_control_system",
    "pg_current_wal_flush_lsn",
    "pg_current_wal_insert_lsn",
    "pg_current_wal_lsn",
    "pg_database_collation_actual_version",
    "pg_database_size",
    "pg_get_multixact_members",
    "pg_get_wal_replay_pause_state",
    "pg_indexes_size",
    "pg_is_in_recovery",
    "pg_is_wal_replay_paused",
    "pg_jit_available",
    "pg_last_committed_xact",
    "pg_last_wal_receive_lsn",
    "pg_last_wal_replay_lsn",
    "pg_last_xact_replay_timestamp",
    "pg_lock_status",
    "pg_notification_queue_usage",
    "pg_partition_ancestors",
    "pg_partition_tree",
    "pg_prepared_xact",
    "pg_relation_size",
    "pg_safe_snapshot_blocking_pids",
    "pg_sequence_last_value",
    // It waits, within the time limit of the statement.
    "pg_sleep",
    "pg_sleep_for",
    "pg_sleep_until",
    "pg_stat_get_xact_blocks_fetched",
    "pg_stat_get_xact_blocks_hit",
    "pg_stat_get_xact_numscans",
    "pg_stat_get_xact_tuples_deleted",
    "pg_stat_get_xact_tuples_fetched",
    "pg_stat_get_xact_tuples_inserted",
    "pg_stat_get_xact_tuples_returned",
    "pg_stat_get_xact_tuples_updated",
    "pg_stat_have_stats",
    "pg_table_size",
    "pg_tablespace_size",
    "pg_total_relation_size",
    "pg_xact_commit_timestamp",
    "pg_xact_status",
    "random",
    "random_normal",
    "system",
    "timeofday",
    "txid_status",
    "uuidv4",
    "uuidv7",
];

/// Functions of extensions for which the same holds. They count only where an extension owns them.
const HARMLESS_OF_EXTENSIONS: [&str; 14] = [
    "gen_random_bytes",
    "gen_random_uuid",
    "gen_salt",
    "normal_rand",
    "pg_buffercache_pages",
    "pg_stat_statements",
    "pg_stat_statements_info",
    "pgp_pub_encrypt",
    "pgp_pub_encrypt_bytea",
    "pgp_sym_encrypt",
    "pgp_sym_encrypt_bytea",
    "uuid_generate_v1",
    "uuid_generate_v1mc",
    "uuid_generate_v4",
];

/// The functions that a seed may call beyond those: it changes rows, and so may take numbers for them.
const HARMLESS_IN_SEEDS: [&str; 2] = ["nextval", "setval"];

/// Lists functions that act and that the statement calls: the signature, whether PostgreSQL brought it along, the part
/// by which the statement calls it. An aggregate is as volatile as the functions that it is made of.
///
/// Parsing the statement has locked the views that it reads, also those within views, until the transaction ends.
const ACTING_FUNCTIONS: &str = "
WITH unstable AS (
  SELECT oid FROM pg_catalog.pg_proc WHERE provolatile = 'v'
), acting AS (
  SELECT p.oid, p.proname::text AS name, n.nspname::text AS schema, n.nspname = 'pg_catalog' AS builtin,
    coalesce((SELECT t.typtype IN ('c', 'd', 'p') FROM pg_catalog.pg_type t WHERE t.oid = p.proargtypes[0]), false) AS takes_row
  FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
  WHERE p.oid IN (SELECT oid FROM unstable UNION ALL
      SELECT a.aggfnoid FROM pg_catalog.pg_aggregate a CROSS JOIN LATERAL (VALUES (a.aggtransfn), (a.aggfinalfn),
        (a.aggcombinefn), (a.aggserialfn), (a.aggdeserialfn), (a.aggmtransfn), (a.aggminvtransfn), (a.aggmfinalfn)) part (oid)
      WHERE part.oid IN (SELECT oid FROM unstable))
    AND NOT (n.nspname = 'pg_catalog' AND p.proname::text = ANY ($1))
    AND NOT (p.proname::text = ANY ($2) AND EXISTS (SELECT FROM pg_catalog.pg_depend d
      WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objid = p.oid AND d.deptype = 'e'))
), views AS (
  SELECT DISTINCT c.oid FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_class c ON c.oid = l.relation
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE l.pid = pg_catalog.pg_backend_pid() AND l.locktype = 'relation' AND c.relkind = 'v'
    AND n.nspname NOT IN ('pg_catalog', 'information_schema')
), calls AS (
  SELECT oid, '' AS part FROM acting
  WHERE (name = ANY ($3) OR name = ANY ($4) AND takes_row)
    AND (pg_catalog.pg_function_is_visible(oid) OR schema = ANY ($5))
  UNION SELECT a.oid, 'the operator ' || o.oprname FROM acting a JOIN pg_catalog.pg_operator o ON o.oprcode = a.oid
  WHERE EXISTS (SELECT FROM pg_catalog.unnest($6) run WHERE pg_catalog.strpos(run, o.oprname::text) > 0)
  UNION SELECT a.oid, 'a cast to ' || pg_catalog.format_type(t.oid, NULL) FROM acting a
    JOIN pg_catalog.pg_cast c ON c.castfunc = a.oid JOIN pg_catalog.pg_type t ON t.oid = c.casttarget
  WHERE t.typname::text = ANY ($5)
  UNION SELECT a.oid, 'the domain ' || pg_catalog.format_type(t.oid, NULL)
  FROM pg_catalog.pg_type t JOIN pg_catalog.pg_constraint k ON k.contypid = t.oid
    CROSS JOIN LATERAL pg_catalog.regexp_matches(k.conbin::text, ':(?:funcid|opfuncid) (\\d+)', 'g') m
    JOIN acting a ON a.oid = m[1]::pg_catalog.oid
  WHERE t.typname::text = ANY ($5)
  UNION SELECT a.oid, 'the view ' || v.oid::pg_catalog.regclass::text
  FROM views v JOIN pg_catalog.pg_rewrite r ON r.ev_class = v.oid
    CROSS JOIN LATERAL pg_catalog.regexp_matches(r.ev_action::text, ':(?:funcid|opfuncid|aggfnoid|winfnoid) (\\d+)', 'g') m
    JOIN acting a ON a.oid = m[1]::pg_catalog.oid
)
SELECT calls.oid::pg_catalog.regprocedure::text, acting.builtin, calls.part
FROM calls JOIN acting ON acting.oid = calls.oid ORDER BY 3, 1 LIMIT 1";

/// Refuses `statement`, which the server has parsed in this transaction, if it calls a function that acts.
///
/// # Errors
/// [`Error::NotPermitted`] with the name of the function; an error of the server.
pub(super) async fn refuse_acting_functions(
    connection: &mut PgConnection,
    statement: &str,
    action: DbAction,
) -> Result<(), Error> {
    let tokens = StatementTokens::read(statement);
    let refused = |reason: String| Err(Error::NotPermitted { action, reason });
    // Only the server would decode the name, and the comparison with the catalog needs it now.
    if tokens.has_escaped_name {
        return refused("a name with Unicode escapes (U&\"…\"); write its characters".to_owned());
    }
    // The lists go as parameters, so that the query has one plan and no text of the caller.
    let mut harmless: Vec<&str> = HARMLESS.to_vec();
    if action == DbAction::Seed {
        harmless.extend(HARMLESS_IN_SEEDS);
    }
    let found: Option<(String, bool, String)> = sqlx::query_as(ACTING_FUNCTIONS)
        .bind(harmless)
        .bind(HARMLESS_OF_EXTENSIONS.to_vec())
        .bind(tokens.called)
        .bind(tokens.attributes)
        .bind(tokens.names)
        .bind(tokens.operators)
        .fetch_optional(connection)
        .await
        .map_err(Error::engine)?;
    let Some((function, is_builtin, part)) = found else { return Ok(()) };
    let by = if part.is_empty() { String::new() } else { format!(", which {part} calls,") };
    if is_builtin {
        return refused(format!(
            "{function}{by} is VOLATILE: it may do more than read, and no transaction takes that back; use the \
             application's own tools for it"
        ));
    }
    refused(format!(
        "{function}{by} is declared VOLATILE, the default, so it may do anything; if it only reads, declare that: ALTER \
         FUNCTION {function} STABLE"
    ))
}
