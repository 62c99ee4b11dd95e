//! Files that the running program reads again: users and certificates; and its messages about clients.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::common::server::Server;
use plimsoll_testing::eventually;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

const PATIENCE: Duration = plimsoll_testing::PATIENCE;

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// Returns the first line of the answer.
fn line(mut stream: impl Read + Write, request: &str) -> String {
    stream.write_all(request.as_bytes()).expect("it takes requests");
    let mut line = Vec::new();
    let mut byte = [0];
    while !line.ends_with(b"\r\n") && stream.read(&mut byte).is_ok_and(|count| count == 1) {
        line.push(byte[0]);
    }
    String::from_utf8(line).expect("text").trim_end().to_owned()
}

fn login(port: u16, user: &str, password: &str) -> String {
    let pair = format!("{user} {password}");
    line(connect(port), &format!("set x 0 0 {}\r\n{pair}\r\n", pair.len()))
}

#[test]
fn users_are_read_again_at_sighup() {
    let folder = tempfile::tempdir().expect("a directory");
    let users = folder.path().join("users");
    std::fs::write(&users, "ann:old\n").expect("a file");
    let server = Server::start(&["-v", "-Y", users.to_str().expect("a path")], &[]);
    const FAILED: &str = "CLIENT_ERROR authentication failure";
    assert_eq!([login(server.tcp, "ann", "old"), login(server.tcp, "ann", "new")], ["STORED", FAILED]);
    std::fs::write(&users, "ann:new\n").expect("a file");
    server.signal("HUP");
    eventually("the new password is taken", || login(server.tcp, "ann", "new") == "STORED");
    assert_eq!(login(server.tcp, "ann", "old"), FAILED);
    // An invalid file changes nothing, and is named.
    std::fs::write(&users, "nobody\n").expect("a file");
    server.signal("HUP");
    eventually("it says what is wrong", || server.errors().contains("line 1 of the authentication file"));
    assert_eq!(login(server.tcp, "ann", "new"), "STORED");
    eventually("it tells of failed logins", || server.errors().contains("logins failed"));
}

/// Writes a certificate for `localhost` and its key, and returns the certificate.
fn certify(chain: &Path, key: &Path) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    std::fs::write(chain, made.cert.pem()).expect("a file");
    std::fs::write(key, made.signing_key.serialize_pem()).expect("a file");
    made.cert.der().clone()
}

/// The answer to `request` over TLS from a server with `certificate`; empty if it has another.
fn ask(port: u16, certificate: &CertificateDer<'static>, request: &str) -> String {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a configuration");
    let mut stream = StreamOwned::new(connection, connect(port));
    match stream.conn.complete_io(&mut stream.sock) {
        Ok(_) => line(stream, request),
        Err(_) => String::new(),
    }
}

#[test]
fn certificates_are_read_again_at_sighup_and_by_command() {
    let folder = tempfile::tempdir().expect("a directory");
    let (chain, key) = (folder.path().join("chain.pem"), folder.path().join("key.pem"));
    let first = certify(&chain, &key);
    let files = format!("ssl_chain_cert={},ssl_key={}", chain.display(), key.display());
    let server = Server::start(&["-Z", "-o", &files], &[]);
    assert_eq!(ask(server.tcp, &first, "mn\r\n"), "MN");
    let second = certify(&chain, &key);
    assert_eq!(ask(server.tcp, &first, "refresh_certs\r\n"), "OK");
    assert_eq!([ask(server.tcp, &second, "mn\r\n"), ask(server.tcp, &first, "mn\r\n")], ["MN", ""]);
    let third = certify(&chain, &key);
    server.signal("HUP");
    eventually("the third certificate is shown", || ask(server.tcp, &third, "mn\r\n") == "MN");
    // Invalid files change nothing, and are named.
    std::fs::write(&chain, "nothing").expect("a file");
    let refusal = ask(server.tcp, &third, "refresh_certs\r\n");
    assert!(refusal.starts_with("Error ") && refusal.contains("chain.pem"), "{refusal}");
    server.signal("HUP");
    eventually("it says what is wrong", || server.errors().contains("chain.pem"));
    assert_eq!(ask(server.tcp, &third, "mn\r\n"), "MN");
}

#[test]
fn refused_connections_are_told_where_that_is_asked_for() {
    for (options, command) in [(&["-c", "1", "-v"][..], "mn\r\n"), (&["-c", "1"], "verbosity 1\r\n")] {
        let server = Server::start(options, &[]);
        let kept = connect(server.tcp);
        assert!(["MN", "OK"].contains(&&*line(&kept, command)));
        eventually("it tells of refused connections", || {
            let _ = connect(server.tcp).read(&mut [0; 64]);
            server.errors().contains("connections refused, since there are as many as -c allows")
        });
    }
}
