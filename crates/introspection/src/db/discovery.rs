//! Finds the database of a project that neither a request nor the settings name.
//!
//! A SQLite file that the project's own settings name is used, or the only one in the usual folders. A database *server*
//! that a file of the project names is told and never connected to: whoever may write that file would choose the server.

use super::Error;
use crate::env_file::{EnvFileVariable, read_env_files, read_settings_file};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::Read;
use std::path::Path;
use workspace::{PathKind, Workspace};

/// The folders in which frameworks put a SQLite file, beneath each root.
const USUAL_FOLDERS: [&str; 9] =
    [".", "data", "database", "db", "instance", "prisma", "storage", "tmp", "var"];
/// The folders that a relative name in a setting may start from, beside its root.
const RELATIVE_TO: [&str; 4] = ["", "prisma/", "instance/", "db/"];
/// The extensions of SQLite files.
const EXTENSIONS: [&str; 4] = ["db", "db3", "sqlite", "sqlite3"];
/// The first bytes of a SQLite file: <https://www.sqlite.org/fileformat.html#magic_header_string>.
const SQLITE_HEADER: &[u8; 16] = b"SQLite format 3\0";
/// The most entries of a folder that are looked at.
const MAX_ENTRIES: usize = 1000;
/// The most names that a message lists.
const MAX_LISTED: usize = 10;

/// A SQLite file of the project, and the setting or folder that led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DiscoveredFile {
    pub(super) path: String,
    pub(super) origin: String,
}

/// The settings of a project that concern databases.
#[derive(Debug, Default)]
struct NamedDatabases {
    files: Vec<DiscoveredFile>,
    /// The servers, each with the setting that names it, and without its URL.
    servers: Vec<String>,
}

/// Returns the database file of the project in the roots of `workspace`; `default_file` where it exists.
///
/// # Errors
/// [`Error::NotFound`] that lists what there is, where there is not exactly one.
pub(super) fn discover(workspace: &Workspace, default_file: &str) -> Result<DiscoveredFile, Error> {
    if is_file(workspace, Path::new(default_file)) {
        return Ok(DiscoveredFile { path: default_file.to_owned(), origin: String::new() });
    }
    let named = named_databases(workspace);
    if let Some(file) = named.files.into_iter().next() {
        return Ok(file);
    }
    let mut found = files_in_usual_folders(workspace);
    if found.len() == 1
        && named.servers.is_empty()
        && let Some(file) = found.pop()
    {
        return Ok(file);
    }
    let mut hint = String::new();
    if !found.is_empty() {
        hint = format!("; there are {}: give one as `database`", list(&found));
    }
    if !named.servers.is_empty() {
        let servers = named.servers.join("; ");
        let _ = write!(
            hint,
            "; {servers}: to use it, start the server with DB_URL or `databases.connections`, as a file of the project \
             cannot choose a server"
        );
    }
    if hint.is_empty() {
        hint = format!(
            "; nor is there a SQLite file in {}; set DB_PATH or DB_URL, or give `database`",
            USUAL_FOLDERS.join(", ")
        );
    }
    Err(Error::NotFound { path: default_file.to_owned(), hint })
}

/// Returns the SQLite files that the project's settings name, and those in the usual folders of all roots.
pub(super) fn project_files(workspace: &Workspace) -> Vec<DiscoveredFile> {
    let mut files = named_databases(workspace).files;
    for file in files_in_usual_folders(workspace) {
        if !files.iter().any(|known| known.path == file.path) {
            files.push(file);
        }
    }
    files
}

/// Returns the paths of `files` for a message, as many as it has room for.
pub(super) fn list(files: &[DiscoveredFile]) -> String {
    let names: Vec<&str> = files.iter().take(MAX_LISTED).map(|file| file.path.as_str()).collect();
    let more = if files.len() > MAX_LISTED { ", …" } else { "" };
    format!("{}{more}", names.join(", "))
}

fn is_file(workspace: &Workspace, path: &Path) -> bool {
    let metadata = workspace.locate(path).and_then(|path| path.metadata());
    metadata.is_ok_and(|metadata| metadata.kind == PathKind::File)
}

/// Reads the settings that frameworks have in files.
fn named_databases(workspace: &Workspace) -> NamedDatabases {
    let mut named = NamedDatabases::default();
    for EnvFileVariable { name, value, file, root } in read_env_files(workspace) {
        named.add(workspace, &root, &value, &format!("{name} in {file}"));
    }
    for root in workspace.roots() {
        let text = read_settings_file(workspace, &root.join("config/database.yml")).unwrap_or_default();
        for (section, key, value) in yaml_values(&text) {
            let origin = format!("config/database.yml ({section})");
            match (key, value) {
                ("adapter", "postgresql") => named.add_server("PostgreSQL", &origin),
                ("adapter", "mysql2" | "trilogy") => named.add_server("MySQL", &origin),
                ("database" | "url", value) => named.add(workspace, root, value, &origin),
                _ => {}
            }
        }
        let text = read_settings_file(workspace, &root.join("prisma/schema.prisma")).unwrap_or_default();
        let values = text.lines().filter_map(|line| line.trim().strip_prefix("url")?.split('"').nth(1));
        for value in values {
            named.add(workspace, root, value, "prisma/schema.prisma");
        }
    }
    named
}

impl NamedDatabases {
    /// Adds the database that the value of a setting in `root` names: a URL, or the name of a SQLite file.
    fn add(&mut self, workspace: &Workspace, root: &Path, value: &str, origin: &str) {
        let (scheme, rest) = value.split_once(':').unwrap_or(("", value));
        // SQLAlchemy names its driver too: `postgresql+asyncpg`.
        let file = match scheme.split('+').next().unwrap_or_default() {
            "postgres" | "postgresql" => return self.add_server("PostgreSQL", origin),
            "mysql" | "mysql2" | "mariadb" => return self.add_server("MySQL", origin),
            "sqlite" | "sqlite3" | "file" => rest.split('?').next().unwrap_or_default(),
            "" if has_extension(Path::new(value)) => value,
            _ => return,
        };
        // `sqlite:///app.db` is relative for SQLAlchemy and absolute for others.
        let relative = file.trim_start_matches('/').trim_start_matches("./");
        let absolute = file.starts_with('/').then(|| Path::new("/").join(relative));
        let in_folders = RELATIVE_TO.iter().map(|folder| root.join(folder).join(relative));
        let candidates = absolute.into_iter().chain(in_folders);
        let file = candidates.filter(|path| is_file(workspace, path)).find_map(|path| {
            // As other answers name it, without the place of a root.
            Some(workspace.locate(&path).ok()?.display_path())
        });
        if let Some(path) = file
            && !self.files.iter().any(|known| known.path == path)
        {
            self.files.push(DiscoveredFile { path, origin: origin.to_owned() });
        }
    }

    fn add_server(&mut self, engine: &str, origin: &str) {
        let server = format!("{origin} names a {engine} database");
        if !self.servers.contains(&server) {
            self.servers.push(server);
        }
    }
}

/// Returns section, key and value of the lines of Rails' `database.yml` that concern development, those of the section
/// itself before those of its default.
fn yaml_values(text: &str) -> Vec<(&str, &str, &str)> {
    let mut section = "";
    let mut values = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let Some((key, value)) = line.split_once(':') else { continue };
        if !line.starts_with([' ', '\t']) {
            section = key.trim();
        } else if matches!(section, "development" | "default") {
            values.push((section, key.trim(), value.trim().trim_matches(['"', '\''])));
        }
    }
    values.sort_by_key(|(section, _, _)| *section != "development");
    values
}

fn has_extension(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

/// Returns the SQLite files in the usual folders, in the order of the folders and of their names.
fn files_in_usual_folders(workspace: &Workspace) -> Vec<DiscoveredFile> {
    let mut found = Vec::new();
    let roots: Vec<_> = workspace.roots().map(Path::to_owned).collect();
    let folders = roots.iter().flat_map(|root| USUAL_FOLDERS.iter().map(|name| root.join(name)));
    for base in folders.filter_map(|folder| workspace.locate(&folder).ok()) {
        let Ok(folder) = base.open_folder() else { continue };
        let entries = folder.entries().into_iter().flatten().flatten().take(MAX_ENTRIES);
        let files =
            entries.filter(|entry| entry.kind == PathKind::File && has_extension(Path::new(&entry.name)));
        let mut files: Vec<_> = files.filter_map(|entry| base.join(&entry.name).ok()).collect();
        files.sort_by_key(workspace::ConfinedPath::display_path);
        for file in files {
            let mut start = [0; SQLITE_HEADER.len()];
            let is_sqlite = file
                .open_read()
                .is_ok_and(|(mut file, _)| file.read_exact(&mut start).is_ok() && start == *SQLITE_HEADER);
            if is_sqlite {
                let origin = "the only SQLite file in the usual folders".to_owned();
                found.push(DiscoveredFile { path: file.display_path(), origin });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test makes its files itself")]
    use super::*;

    fn found(files: &[(&str, &str)]) -> Result<(String, String), String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content.replace("SQLITE", "SQLite format 3\0")).unwrap();
        }
        let workspace = Workspace::new([folder.path()]).unwrap();
        let file = discover(&workspace, "app.db").map_err(|error| error.to_string())?;
        Ok((file.path, file.origin))
    }

    #[test]
    fn the_database_of_a_project_is_found_where_frameworks_name_it() {
        for (files, path, origin) in [
            (vec![("app.db", ""), (".env", "DATABASE_URL=sqlite:x.db"), ("x.db", "")], "app.db", ""),
            (vec![(".env", "DATABASE_URL=sqlite:///x.db"), ("x.db", "")], "x.db", "DATABASE_URL in .env"),
            (
                vec![(".env", "DB_FILE=data/x.sqlite"), ("data/x.sqlite", "")],
                "data/x.sqlite",
                "DB_FILE in .env",
            ),
            (
                vec![(".env", "DATABASE_URL=\"file:./dev.db?mode=rw\""), ("prisma/dev.db", "")],
                "prisma/dev.db",
                "DATABASE_URL in .env",
            ),
            (
                vec![
                    (
                        "config/database.yml",
                        "default: &default\n  adapter: sqlite3\ntest:\n  database: storage/test.sqlite3\n\
                         development:\n  <<: *default\n  database: storage/development.sqlite3\n",
                    ),
                    ("storage/test.sqlite3", "SQLITE"),
                    ("storage/development.sqlite3", "SQLITE"),
                ],
                "storage/development.sqlite3",
                "config/database.yml (development)",
            ),
            (
                vec![("db.sqlite3", "SQLITE"), ("thumbs.db", "no database")],
                "db.sqlite3",
                "the only SQLite file in the usual folders",
            ),
        ] {
            assert_eq!(found(&files), Ok((path.to_owned(), origin.to_owned())), "{files:?}");
        }
    }

    #[test]
    fn all_roots_are_searched() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir(second.path().join("data")).unwrap();
        std::fs::write(second.path().join("data/shop.db"), "SQLite format 3\0").unwrap();
        let workspace = Workspace::new([first.path(), second.path()]).unwrap();
        let expected = format!("{}:data/shop.db", second.path().file_name().unwrap().to_str().unwrap());
        assert_eq!(discover(&workspace, "app.db").unwrap().path, expected);
        assert_eq!(list(&project_files(&workspace)), expected);
    }

    #[test]
    fn what_cannot_be_used_is_listed_without_its_url() {
        let several = found(&[("a.db", "SQLITE"), ("data/b.db", "SQLITE")]).unwrap_err();
        assert!(several.ends_with("; there are a.db, data/b.db: give one as `database`"), "{several}");
        let url = "DATABASE_URL=postgres://zoe77:s3cr3t@h0st/shop";
        let server = found(&[(".env", url), ("a.db", "SQLITE")]).unwrap_err();
        assert!(server.contains("DATABASE_URL in .env names a PostgreSQL database: to use it"), "{server}");
        assert!(server.contains("there are a.db"), "{server}");
        assert!(["zoe77", "s3cr3t", "h0st"].iter().all(|secret| !server.contains(secret)), "{server}");
        let nothing = found(&[]).unwrap_err();
        assert!(nothing.contains("nor is there a SQLite file in ., data"), "{nothing}");
    }
}
