//! Where databases are: what the settings name, and files beneath the roots.

use super::Error;
use crate::workspace::Workspace;
use std::fmt;
use std::sync::Arc;

/// The file that is used where nothing else is named.
const DEFAULT_FILE: &str = "app.db";

/// The databases that the settings name, and those beneath the roots of a workspace. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Databases {
    #[cfg_attr(not(feature = "sqlite"), allow(dead_code, reason = "a file is SQLite's"))]
    pub(super) workspace: Arc<Workspace>,
    path: Option<String>,
    url: Option<Secret>,
    named: Arc<[(String, Secret)]>,
}

/// What is not shown: a URL with a password.
#[derive(Clone)]
struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// One database, and the name that messages have for it.
#[derive(Debug)]
pub(super) enum Place<'a> {
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
        self.url = url.filter(|url| !url.is_empty()).map(Secret);
        self
    }

    /// Databases by name, each a URL or the path of a SQLite file.
    #[must_use]
    pub fn named(mut self, named: impl IntoIterator<Item = (String, String)>) -> Self {
        self.named = named.into_iter().map(|(name, url)| (name, Secret(url))).collect();
        self
    }

    /// The same, with files beneath the roots of `workspace`.
    #[must_use]
    pub fn within(&self, workspace: Arc<Workspace>) -> Self {
        Self { workspace, ..self.clone() }
    }

    /// The database that a request names.
    pub(super) fn place<'a>(&'a self, asked: Option<&'a str>) -> Result<Place<'a>, Error> {
        if let Some(asked) = asked {
            if let Some((name, Secret(url))) = self.named.iter().find(|(name, _)| name == asked) {
                return place(name, url);
            }
            if asked.contains("://") {
                return Err(Error::argument(
                    "database",
                    format!("give a name from the settings, not a URL{}", self.names()),
                ));
            }
            return Ok(Place::File(asked));
        }
        match (&self.path, &self.url) {
            (Some(path), _) => Ok(Place::File(path)),
            (None, Some(Secret(url))) => place("DB_URL", url),
            (None, None) => match self.named.first() {
                Some((name, Secret(url))) => place(name, url),
                None => Ok(Place::File(DEFAULT_FILE)),
            },
        }
    }

    /// What to do where a file is missing.
    #[cfg(feature = "sqlite")]
    pub(super) fn hint(&self, asked: Option<&str>) -> String {
        let names = self.named.iter().map(|(name, _)| name.as_str());
        match asked.and_then(|asked| crate::nearest::nearest(asked, names)) {
            Some(near) => format!("; did you mean `{near}`?"),
            None => format!("; set DB_PATH or DB_URL, or give `database`{}", self.names()),
        }
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.named.iter().map(|(name, _)| name.as_str()).collect();
        if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) }
    }
}

/// What `url` leads to; a path if it is none.
fn place<'a>(name: &'a str, url: &'a str) -> Result<Place<'a>, Error> {
    let Some((scheme, rest)) = url.split_once(':').filter(|(scheme, _)| scheme.len() > 1) else {
        return Ok(Place::File(url));
    };
    match scheme {
        "postgres" | "postgresql" => Ok(Place::Postgres { name, url }),
        "mysql" | "mariadb" => Ok(Place::MySql { name, url }),
        // `sqlite:app.db`, `sqlite://app.db`, `sqlite:///var/app.db`.
        "sqlite" => Ok(Place::File(rest.strip_prefix("//").unwrap_or(rest))),
        _ if rest.starts_with("//") => Err(Error::Setting {
            name: name.to_owned(),
            reason: "its URL begins with none of sqlite:, postgres:, postgresql:, mysql:, mariadb:"
                .to_owned(),
        }),
        _ => Ok(Place::File(url)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(databases: &Databases, asked: Option<&str>) -> String {
        match databases.place(asked) {
            Ok(Place::File(path)) => format!("file {path}"),
            Ok(Place::Postgres { name, .. }) => format!("postgres {name}"),
            Ok(Place::MySql { name, .. }) => format!("mysql {name}"),
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
        assert_eq!(shown(&plain, None), "file app.db");
        assert_eq!(shown(&named, None), "postgres main");
        assert_eq!(shown(&url, None), "mysql DB_URL");
        assert_eq!(shown(&url.path(Some("a.db".to_owned())), None), "file a.db");
        assert_eq!(shown(&named, Some("old")), "mysql old");
        assert_eq!(shown(&named, Some("file")), "file data/x.db");
        assert_eq!(shown(&named, Some("other.db")), "file other.db");
        assert!(
            shown(&named, Some("postgres://me:secret@h/d")).ends_with("not a URL (main, old, file, odd)")
        );
        assert!(shown(&named, Some("odd")).contains("its URL begins with none of"));
        assert!(!format!("{named:?}").contains("u:p"));
    }
}
