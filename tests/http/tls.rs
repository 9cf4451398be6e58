//! TLS from files that change.

use crate::SOON;
use integration_tests::{Era, Http, HttpServer, Project, Reply, read_reply, wait_until};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::json;
use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

pub(crate) use integration_tests::certificate;

fn ask(address: SocketAddr, certificate: &Path, bytes: &[u8]) -> Result<Reply, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(certificate).unwrap() {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let mut stream = StreamOwned::new(connection, stream);
    stream.write_all(bytes).map_err(|error| error.to_string())?;
    read_reply(&mut stream).map_err(|error| error.to_string())
}

#[test]
fn tls_is_spoken_and_a_changed_certificate_is_used_at_once() {
    let (project, outside) = (Project::empty(), Project::empty());
    let Some(()) = certificate(outside.path()) else { return };
    let (cert, key) = (outside.join("cert.pem"), outside.join("key.pem"));
    let tls = ["--tls-certificate", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
    let arguments = [&["--listen", "0.0.0.0:0", "--hosts", "localhost"], &tls[..]].concat();
    let server = HttpServer::start_with(&project, &arguments, |_| {});
    assert!(server.log().contains("serving https://"), "{}", server.log());
    let address = SocketAddr::from(([127, 0, 0, 1], server.address().port()));
    let health = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert_eq!(ask(address, &cert, health).unwrap().status, 200);
    // Without TLS there is no answer.
    let mut plain = TcpStream::connect(address).unwrap();
    let _ = plain.write_all(health);
    assert!(Reply::try_from(&mut plain).is_err());
    // A call, with a token.
    let made = server.tokens(&["new", "--name", "ada", "--role", "dev"]);
    let token = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let mut client = Http::silent(address, Some(&token), Era::Modern);
    let message = client.message("tools/list", json!({}));
    let bytes = client.request_bytes(&message);
    wait_until(SOON, "the token is known", || ask(address, &cert, &bytes).unwrap().status == 200);
    // Another certificate: the old one is trusted no more, and the new one is.
    let old = outside.join("old.pem");
    fs::copy(&cert, &old).unwrap();
    let next = Project::empty();
    certificate(next.path()).unwrap();
    fs::copy(next.join("key.pem"), &key).unwrap();
    fs::copy(next.join("cert.pem"), &cert).unwrap();
    wait_until(SOON, "the new certificate is used", || ask(address, &cert, health).is_ok());
    assert!(ask(address, &old, health).is_err());
    // A bad one changes nothing.
    fs::write(&cert, "no certificate").unwrap();
    wait_until(SOON, "it is refused", || server.log().contains("certificate is not used"));
    assert_eq!(ask(address, &next.join("cert.pem"), health).unwrap().status, 200);
}
