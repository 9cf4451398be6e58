//! PostgreSQL and MariaDB, started for one test on a temporary folder, and ended with it.

use integration_tests::{require, wait_until};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long a server may take to start on a busy machine.
const START: Duration = Duration::from_secs(90);

/// A password that no message may show.
pub(crate) const PASSWORD: &str = "s3cr3t-Passw0rd-x9";

/// A server in a folder of its own, heard on a socket there.
pub(crate) struct TestDatabase {
    folder: tempfile::TempDir,
    child: Child,
    client: PathBuf,
    kind: DatabaseKind,
    port: u16,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DatabaseKind {
    Postgres,
    MariaDb,
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        // Nothing of it is kept.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `program` to be run by `user`, as these servers refuse to be run by root; it dies with this thread.
fn command(user: &str, program: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", user, "--regid", user, "--clear-groups", "--pdeathsig", "KILL"]).arg(program);
    command
}

/// Runs what must succeed.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A program in one of these folders.
fn program(folders: impl IntoIterator<Item = PathBuf>, name: &str) -> Option<PathBuf> {
    folders.into_iter().map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// A folder that `user` may use.
fn folder(user: &str) -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("ct-db-").tempdir_in("/tmp").unwrap();
    if rustix::process::geteuid().is_root() {
        run(Command::new("chown").arg(user).arg(folder.path()));
    }
    folder
}

/// PostgreSQL, with the superuser `boss`, and the database `shop`.
pub(crate) fn postgres() -> Option<TestDatabase> {
    postgres_with(5432, |_| vec!["listen_addresses=".to_owned()])
}

/// The same on a port too, where it speaks to nobody without TLS; its certificate is `cert.pem` in its folder.
pub(crate) fn postgres_over_tls(port: u16, certificate: impl FnOnce(&Path)) -> Option<TestDatabase> {
    postgres_with(port, |folder| {
        certificate(folder);
        give(folder, "postgres");
        let rules = folder.join("rules");
        std::fs::write(&rules, "local all all scram-sha-256\nhostssl all all all scram-sha-256\n").unwrap();
        vec![
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={port}"),
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", folder.join("cert.pem").display()),
            format!("ssl_key_file={}", folder.join("key.pem").display()),
            format!("hba_file={}", rules.display()),
        ]
    })
}

/// Certificate and key become those of `user`, and the key nobody else's.
fn give(folder: &Path, user: &str) {
    use std::os::unix::fs::PermissionsExt;
    for file in ["cert.pem", "key.pem"] {
        let file = folder.join(file);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        if rustix::process::geteuid().is_root() {
            run(Command::new("chown").arg(user).arg(&file));
        }
    }
}

fn postgres_with(port: u16, settings: impl FnOnce(&Path) -> Vec<String>) -> Option<TestDatabase> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|versions| versions.flatten().map(|version| version.path().join("bin")).collect())
        .unwrap_or_default();
    folders.sort();
    folders.reverse();
    let bin = program(folders, "initdb").and_then(|initdb| Some(initdb.parent()?.to_owned()));
    let bin = require(bin, "no PostgreSQL in /usr/lib/postgresql; install it: apt install postgresql")?;
    let folder = folder("postgres");
    let data = folder.path().join("data");
    let password = folder.path().join("password");
    std::fs::write(&password, PASSWORD).unwrap();
    run(command("postgres", &bin.join("initdb"))
        .args(["--username=boss", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync"])
        .arg(format!("--pwfile={}", password.display()))
        .arg("-D")
        .arg(&data));
    let child = command("postgres", &bin.join("postgres"))
        .arg("-D")
        .arg(&data)
        .arg("-k")
        .arg(folder.path())
        .args(settings(folder.path()).iter().flat_map(|setting| ["-c", setting]))
        .args(["-c", "fsync=off", "-c", "max_connections=20", "-c", "dynamic_shared_memory_type=mmap"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let server = TestDatabase { folder, child, client: bin.join("psql"), kind: DatabaseKind::Postgres, port };
    wait_until(START, "PostgreSQL answers", || server.try_sql("postgres", "SELECT 1").is_some());
    server.try_sql("postgres", "CREATE DATABASE shop").unwrap();
    Some(server)
}

/// MariaDB, with the superuser `boss`, and the database `shop`.
pub(crate) fn mariadb() -> Option<TestDatabase> {
    mariadb_with(|_| vec!["--skip-networking".to_owned()])
}

/// The same on a port too, where it speaks to nobody without TLS; its certificate is `cert.pem` in its folder.
pub(crate) fn mariadb_over_tls(port: u16, certificate: impl FnOnce(&Path)) -> Option<TestDatabase> {
    mariadb_with(|folder| {
        certificate(folder);
        give(folder, "mysql");
        vec![
            "--bind-address=127.0.0.1".to_owned(),
            format!("--port={port}"),
            "--require-secure-transport=ON".to_owned(),
            format!("--ssl-cert={}", folder.join("cert.pem").display()),
            format!("--ssl-key={}", folder.join("key.pem").display()),
        ]
    })
}

fn mariadb_with(settings: impl FnOnce(&Path) -> Vec<String>) -> Option<TestDatabase> {
    let folders = || ["/usr/sbin", "/usr/bin", "/usr/local/bin"].map(PathBuf::from);
    let programs = || {
        Some((
            program(folders(), "mariadbd")?,
            program(folders(), "mariadb-install-db")?,
            program(folders(), "mariadb")?,
        ))
    };
    let (server, install, client) =
        require(programs(), "no MariaDB; install it: apt install mariadb-server")?;
    let folder = folder("mysql");
    let data = folder.path().join("data");
    run(command("mysql", &install)
        .args([
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--skip-name-resolve",
        ])
        .arg(format!("--datadir={}", data.display()))
        // Two that are made at once would meet in /tmp.
        .env("TMPDIR", folder.path())
        .arg(format!("--tmpdir={}", folder.path().display()))
        .current_dir(folder.path()));
    let child = command("mysql", &server)
        .args(["--no-defaults", "--innodb-flush-method=nosync", "--innodb-buffer-pool-size=16M"])
        .args(settings(folder.path()))
        .arg(format!("--datadir={}", data.display()))
        .arg(format!("--socket={}", folder.path().join("socket").display()))
        .arg(format!("--tmpdir={}", folder.path().display()))
        .arg(format!("--pid-file={}", folder.path().join("pid").display()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let server = TestDatabase { folder, child, client, kind: DatabaseKind::MariaDb, port: 0 };
    wait_until(START, "MariaDB answers", || server.try_sql("mysql", "SELECT 1").is_some());
    server.try_sql("mysql", "CREATE DATABASE shop CHARACTER SET utf8mb4").unwrap();
    Some(server)
}

impl TestDatabase {
    /// Its folder, which it may write to.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The URL for `user`.
    pub(crate) fn url(&self, user: &str) -> String {
        let folder = self.folder().display();
        match self.kind {
            DatabaseKind::Postgres => format!("postgres://{user}:{PASSWORD}@localhost/shop?host={folder}"),
            DatabaseKind::MariaDb => {
                format!("mysql://{user}:{PASSWORD}@localhost/shop?socket={folder}/socket")
            }
        }
    }

    /// Returns what its own client prints for `sql`, run by the user who may do everything.
    pub(crate) fn sql(&self, sql: &str) -> String {
        self.try_sql("shop", sql).unwrap_or_else(|| panic!("failed: {sql}"))
    }

    fn try_sql(&self, database: &str, sql: &str) -> Option<String> {
        let mut command = Command::new(&self.client);
        match self.kind {
            DatabaseKind::Postgres => command
                .env("PGPASSWORD", PASSWORD)
                .env("PGPORT", self.port.to_string())
                .args([
                    "-X",
                    "-A",
                    "-t",
                    "-q",
                    "-v",
                    "ON_ERROR_STOP=1",
                    "-U",
                    "boss",
                    "-d",
                    database,
                    "-c",
                    sql,
                ])
                .arg("-h")
                .arg(self.folder()),
            DatabaseKind::MariaDb => command
                .args([
                    "--no-defaults",
                    "--default-character-set=utf8mb4",
                    "-N",
                    "-B",
                    "-u",
                    "root",
                    "-D",
                    database,
                    "-e",
                    sql,
                ])
                .arg(format!("--socket={}", self.folder().join("socket").display())),
        };
        let output = command.output().ok()?;
        if !output.status.success() {
            #[allow(clippy::print_stderr, reason = "what a test waits for in vain is to be seen")]
            {
                eprintln!("{}", String::from_utf8_lossy(&output.stderr));
            }
            return None;
        }
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}
