//! The databases that a request may name: those of the settings, and files beneath the roots.

use super::Error;
use std::fmt;
use std::sync::Arc;
use workspace::Workspace;

/// The file that is used if neither the request nor the settings name a database, and it exists.
pub(super) const DEFAULT_FILE: &str = "app.db";

/// The databases that the settings name, and those beneath the roots of a workspace. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Databases {
    #[cfg_attr(not(feature = "sqlite"), allow(dead_code, reason = "a file is SQLite's"))]
    pub(super) workspace: Arc<Workspace>,
    path: Option<String>,
    url: Option<SecretUrl>,
    named: Arc<[(String, SecretUrl)]>,
}

/// A URL that may hold a password, and so is not shown by `Debug`.
#[derive(Clone)]
struct SecretUrl(String);

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// The location of one database. `name` is what messages call it.
#[derive(Debug)]
pub(super) enum DatabaseLocation<'a> {
    #[cfg_attr(not(feature = "sqlite"), allow(dead_code, reason = "its engine is off"))]
    File(&'a str),
    #[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "its engine is off"))]
    Postgres { name: &'a str, url: &'a str },
    #[cfg_attr(not(feature = "mysql"), allow(dead_code, reason = "its engine is off"))]
    MySql { name: &'a str, url: &'a str },
}

impl Databases {
    /// Databases beneath the roots of `workspace`; `app.db` where a request names none.
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace, path: None, url: None, named: Arc::default() }
    }

    /// The SQLite file that is used where a request names none: the value of `DB_PATH`. `app.db` by default.
    #[must_use]
    pub fn path(mut self, path: Option<String>) -> Self {
        self.path = path.filter(|path| !path.is_empty());
        self
    }

    /// The URL that is used where a request names none and no [`path`](Self::path) is set: the value of
    /// `DB_URL`, with `sqlite:`, `postgres:`, `postgresql:`, `mysql:` or `mariadb:`. None by default.
    #[must_use]
    pub fn url(mut self, url: Option<String>) -> Self {
        self.url = url.filter(|url| !url.is_empty()).map(SecretUrl);
        self
    }

    /// Databases by name, each a URL or the path of a SQLite file.
    #[must_use]
    pub fn named(mut self, named: impl IntoIterator<Item = (String, String)>) -> Self {
        self.named = named.into_iter().map(|(name, url)| (name, SecretUrl(url))).collect();
        self
    }

    /// A copy with files beneath the roots of `workspace`.
    #[must_use]
    pub fn within(&self, workspace: Arc<Workspace>) -> Self {
        Self { workspace, ..self.clone() }
    }

    /// Finds the database that a request names, or the default: the path, then the URL, then the first by name.
    pub(super) fn resolve<'a>(&'a self, requested: Option<&'a str>) -> Result<DatabaseLocation<'a>, Error> {
        if let Some(requested) = requested {
            // Names come first: a file cannot hide a database of the settings.
            if let Some((name, SecretUrl(url))) = self.named.iter().find(|(name, _)| name == requested) {
                return parse_location(name, url);
            }
            // A URL of the caller's would reach any server that this one can reach.
            if requested.contains("://") {
                return Err(Error::argument(
                    "database",
                    format!("give a name from the settings, not a URL{}", self.list_of_names()),
                ));
            }
            return Ok(DatabaseLocation::File(requested));
        }
        match (&self.path, &self.url) {
            (Some(path), _) => Ok(DatabaseLocation::File(path)),
            (None, Some(SecretUrl(url))) => parse_location("DB_URL", url),
            (None, None) => match self.named.first() {
                Some((name, SecretUrl(url))) => parse_location(name, url),
                None => Ok(DatabaseLocation::File(DEFAULT_FILE)),
            },
        }
    }

    /// Returns true if neither the request nor the settings name a database.
    #[cfg(feature = "sqlite")]
    pub(super) fn is_unnamed(&self, requested: Option<&str>) -> bool {
        requested.is_none() && self.path.is_none() && self.url.is_none() && self.named.is_empty()
    }

    /// Returns the advice for a missing file, to follow the error message.
    #[cfg(feature = "sqlite")]
    pub(super) fn not_found_hint(&self, requested: Option<&str>) -> String {
        let names = self.named.iter().map(|(name, _)| name.as_str());
        match requested.and_then(|requested| did_you_mean::nearest(requested, names)) {
            Some(near) => format!("; did you mean `{near}`?"),
            None => format!("; set DB_PATH or DB_URL, or give `database`{}", self.list_of_names()),
        }
    }

    fn list_of_names(&self) -> String {
        let names: Vec<&str> = self.named.iter().map(|(name, _)| name.as_str()).collect();
        if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) }
    }
}

/// Reads a value of the settings: a URL, or else the path of a file.
fn parse_location<'a>(name: &'a str, url: &'a str) -> Result<DatabaseLocation<'a>, Error> {
    // A scheme of one letter is the drive of a Windows path.
    let Some((scheme, rest)) = url.split_once(':').filter(|(scheme, _)| scheme.len() > 1) else {
        return Ok(DatabaseLocation::File(url));
    };
    match scheme {
        "postgres" | "postgresql" => Ok(DatabaseLocation::Postgres { name, url }),
        "mysql" | "mariadb" => Ok(DatabaseLocation::MySql { name, url }),
        // `sqlite:app.db`, `sqlite://app.db`, `sqlite:///var/app.db`.
        "sqlite" => Ok(DatabaseLocation::File(rest.strip_prefix("//").unwrap_or(rest))),
        _ if rest.starts_with("//") => Err(Error::InvalidSetting {
            name: name.to_owned(),
            reason: "its URL begins with none of sqlite:, postgres:, postgresql:, mysql:, mariadb:"
                .to_owned(),
        }),
        // The name of a file may hold a colon.
        _ => Ok(DatabaseLocation::File(url)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(databases: &Databases, requested: Option<&str>) -> String {
        match databases.resolve(requested) {
            Ok(DatabaseLocation::File(path)) => format!("file {path}"),
            Ok(DatabaseLocation::Postgres { name, .. }) => format!("postgres {name}"),
            Ok(DatabaseLocation::MySql { name, .. }) => format!("mysql {name}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_path_comes_before_a_url_and_that_before_names() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Arc::new(Workspace::new([folder.path()]).unwrap());
        let plain = Databases::new(workspace);
        let named = plain.clone().named([
            ("main".to_owned(), "postgres://u:p@h/d".to_owned()),
            ("old".to_owned(), "mariadb://u:p@h/d".to_owned()),
            ("file".to_owned(), "sqlite://data/x.db".to_owned()),
            ("odd".to_owned(), "oracle://u:p@h/d".to_owned()),
        ]);
        let url = named.clone().url(Some("mysql://u:p@h/d".to_owned()));
        assert_eq!(resolved(&plain, None), "file app.db");
        assert_eq!(resolved(&named, None), "postgres main");
        assert_eq!(resolved(&url, None), "mysql DB_URL");
        assert_eq!(resolved(&url.path(Some("a.db".to_owned())), None), "file a.db");
        assert_eq!(resolved(&named, Some("old")), "mysql old");
        assert_eq!(resolved(&named, Some("file")), "file data/x.db");
        assert_eq!(resolved(&named, Some("other.db")), "file other.db");
        assert!(
            resolved(&named, Some("postgres://me:secret@h/d")).ends_with("not a URL (main, old, file, odd)")
        );
        assert!(resolved(&named, Some("odd")).contains("its URL begins with none of"));
        assert!(!format!("{named:?}").contains("u:p"));
    }
}
