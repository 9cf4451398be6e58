//! The settings of the application's sessions that sqlx replaces when it connects: the time zone and the order of dates.

use crate::db::Error;
use sqlx::PgConnection;

/// The settings of the role and the database, the strongest last.
const ROLE_SETTINGS: &str = "
SELECT split_part(s, '=', 1), substr(s, strpos(s, '=') + 1)
FROM pg_catalog.pg_db_role_setting r, unnest(r.setconfig) s
WHERE r.setdatabase IN (0, (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()))
  AND r.setrole IN (0, (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = session_user))
  AND lower(split_part(s, '=', 1)) IN ('timezone', 'datestyle')
ORDER BY r.setrole <> 0, r.setdatabase <> 0";

/// The settings in the server's files.
const FILE_SETTINGS: &str = "SELECT name, setting FROM pg_catalog.pg_file_settings \
    WHERE applied AND setting IS NOT NULL AND lower(name) IN ('timezone', 'datestyle')";

/// True for a role that may read [`FILE_SETTINGS`].
const MAY_READ_FILES: &str = "SELECT has_table_privilege('pg_catalog.pg_file_settings', 'SELECT') \
    AND has_function_privilege('pg_catalog.pg_show_all_file_settings()', 'EXECUTE')";

/// Gives the transaction the time zone and the order of dates that the application's sessions have. Returns a note if the
/// time zone may be another one.
/// `options` are those of the URL (`-c name=value`), which are stronger than all others.
pub(super) async fn restore_settings(
    connection: &mut PgConnection,
    options: &str,
) -> Result<Option<String>, Error> {
    let mut settings: Vec<(String, String)> = Vec::new();
    let may_read: bool =
        sqlx::query_scalar(MAY_READ_FILES).fetch_one(&mut *connection).await.map_err(Error::engine)?;
    for source in may_read.then_some(FILE_SETTINGS).into_iter().chain([ROLE_SETTINGS]) {
        let found: Vec<(String, String)> =
            sqlx::query_as(source).fetch_all(&mut *connection).await.map_err(Error::engine)?;
        settings.extend(found);
    }
    settings.extend(named_in_options(options));
    for (name, value) in &settings {
        sqlx::query("SELECT set_config($1, $2, true)")
            .bind(name)
            .bind(value)
            .execute(&mut *connection)
            .await
            .map_err(Error::engine)?;
    }
    if settings.iter().any(|(name, _)| name.eq_ignore_ascii_case("timezone")) {
        return Ok(None);
    }
    // The server does not show its own time zone to a session that was given another. That of its log is the same unless
    // somebody has changed one of them.
    let log_zone: String =
        sqlx::query_scalar("SHOW log_timezone").fetch_one(connection).await.map_err(Error::engine)?;
    let is_utc =
        ["utc", "gmt", "etc/utc", "etc/gmt", "zulu", "uct"].contains(&log_zone.to_ascii_lowercase().as_str());
    Ok((!is_utc).then(|| {
        format!(
            "times and dates are in UTC; the sessions of the application may be in another time zone (the server's log \
             is in {log_zone}): write AT TIME ZONE where that matters"
        )
    }))
}

/// Returns the settings of `options` that sqlx replaces.
fn named_in_options(options: &str) -> impl Iterator<Item = (String, String)> {
    let named = options.split_whitespace().filter_map(|word| {
        let word = word.strip_prefix("-c").or_else(|| word.strip_prefix("--")).unwrap_or(word);
        let (name, value) = word.split_once('=')?;
        Some((name.to_ascii_lowercase(), value.to_owned()))
    });
    named.filter(|(name, _)| matches!(name.as_str(), "timezone" | "datestyle"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_url_may_name_the_time_zone() {
        let found: Vec<_> =
            named_in_options("-c TimeZone=Asia/Kolkata -cdatestyle=German --timezone=UTC -c work_mem=1MB")
                .collect();
        let expected = [("timezone", "Asia/Kolkata"), ("datestyle", "German"), ("timezone", "UTC")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}
