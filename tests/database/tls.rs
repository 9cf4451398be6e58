//! Databases that speak to nobody without TLS.

use super::*;
use crate::servers::{self, PASSWORD};
use integration_tests::{certificate, unused_port};

/// Returns the answer to a query over `url`, or the reason why there is none.
fn asked(url: &str, sql: &str) -> Result<Value, String> {
    let project = Project::empty();
    let mut wire = serve(&project, &[("DB_URL", url)]);
    let (answer, failed) = bridge(&mut wire, json!({"action": "query", "payload": sql}));
    match failed {
        false => Ok(answer["rows"].clone()),
        true => {
            let said = answer["error"].as_str().unwrap().to_owned();
            assert!(!said.contains(PASSWORD), "{said}");
            Err(said)
        }
    }
}

/// Another authority than the server's.
fn other() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    certificate(folder.path()).unwrap();
    let file = folder.path().join("cert.pem").display().to_string();
    (folder, file)
}

#[test]
fn postgresql_is_asked_over_tls_and_its_certificate_is_checked_where_the_url_says_so() {
    let port = unused_port();
    let Some(server) = servers::postgres_over_tls(port, |folder| certificate(folder).unwrap()) else {
        return;
    };
    let authority = server.folder().join("cert.pem");
    let (_other, stranger) = other();
    server.sql(&format!("CREATE USER far PASSWORD '{PASSWORD}'"));
    let url = |options: &str| format!("postgres://far:{PASSWORD}@localhost:{port}/shop?{options}");
    let sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    for options in
        ["", "sslmode=require", &format!("sslmode=verify-full&sslrootcert={}", authority.display())]
    {
        assert_eq!(asked(&url(options), sql).unwrap(), json!([{"ssl": true}]), "{options}");
    }
    // Of an authority that nobody knows, of another, and by another name than its own.
    for options in ["sslmode=verify-full".to_owned(), format!("sslmode=verify-full&sslrootcert={stranger}")] {
        let said = asked(&url(&options), sql).unwrap_err();
        assert!(said.contains("TLS") && said.contains("certificate"), "{options}: {said}");
    }
    let elsewhere = url(&format!("sslmode=verify-full&sslrootcert={}", authority.display()))
        .replace("@localhost", "@127.0.0.1");
    assert!(asked(&elsewhere, sql).unwrap_err().contains("another name"));
    let said = asked(&url("sslmode=disable"), sql).unwrap_err();
    assert!(said.contains("refuse"), "{said}");
}

#[test]
fn mariadb_is_asked_over_tls_and_its_certificate_is_checked_where_the_url_says_so() {
    let port = unused_port();
    let Some(server) = servers::mariadb_over_tls(port, |folder| certificate(folder).unwrap()) else { return };
    let authority = server.folder().join("cert.pem");
    let (_other, stranger) = other();
    server
        .sql("CREATE USER 'far'@'%' IDENTIFIED BY 's3cr3t-Passw0rd-x9'; GRANT SELECT ON shop.* TO 'far'@'%'");
    let url = |options: &str| format!("mysql://far:{PASSWORD}@localhost:{port}/shop?{options}");
    let sql = "SELECT variable_value <> '' AS encrypted FROM information_schema.session_status \
               WHERE variable_name = 'Ssl_cipher'";
    for options in
        ["", "ssl-mode=REQUIRED", &format!("ssl-mode=VERIFY_IDENTITY&ssl-ca={}", authority.display())]
    {
        assert_eq!(asked(&url(options), sql).unwrap(), json!([{"encrypted": 1}]), "{options}");
    }
    for options in
        ["ssl-mode=VERIFY_IDENTITY".to_owned(), format!("ssl-mode=VERIFY_IDENTITY&ssl-ca={stranger}")]
    {
        let said = asked(&url(&options), sql).unwrap_err();
        assert!(said.contains("TLS") && said.contains("certificate"), "{options}: {said}");
    }
    assert!(asked(&url("ssl-mode=DISABLED"), sql).is_err());
}
