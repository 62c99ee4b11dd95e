//! The service behind TLS.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use plimsoll_chronos::{Config, Listen, RunningServer, Tls};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::runtime::client::{any_port, backends, config, start};

pub fn tls_address(server: &RunningServer) -> SocketAddr {
    match server.bound() {
        [Listen::Tls { address, .. }] => *address,
        other => panic!("{other:?}"),
    }
}

/// Writes a certificate for `localhost` and its key into `folder`.
pub fn certificate(folder: &Path) -> Tls {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("certificate.pem"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    Tls::from_pem_files(&folder.join("certificate.pem"), &folder.join("key.pem")).unwrap()
}

pub fn connect(address: SocketAddr, folder: &Path) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder.join("certificate.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    StreamOwned::new(connection, TcpStream::connect(address).unwrap())
}

#[test]
fn requests_are_answered_behind_tls() {
    let folder = tempfile::tempdir().unwrap();
    let tls = certificate(folder.path());
    for io in backends() {
        let listen = vec![Listen::Tls { address: any_port(), tls: tls.clone() }];
        let (server, disorder) = start(&Config { io, listen, ..config(2) });
        for connection in 0..4 {
            let mut client = connect(tls_address(&server), folder.path());
            let puts = format!("put 0 {connection} 0\nput 1 {connection} 0\nget 31\nhello\n");
            client.write_all(puts.as_bytes()).unwrap();
            let expected = b"ok 0 0\nok 1 0\n0\nhello\n";
            let mut reply = vec![0; expected.len()];
            client.read_exact(&mut reply).unwrap();
            assert_eq!(reply, expected);
            let value: Vec<u8> = (0..1 << 20).map(|index: u32| (index % 251) as u8).collect();
            client.write_all(format!("echo 1 {}\n", value.len()).as_bytes()).unwrap();
            client.write_all(&value).unwrap();
            let mut reply = vec![0; value.len()];
            client.read_exact(&mut reply).unwrap();
            assert!(reply == value);
            client.write_all(b"sum\nquit\n").unwrap();
            let mut rest = String::new();
            // An end without TLS's close_notify would be an error.
            client.read_to_string(&mut rest).unwrap();
            assert_eq!(rest, format!("{}\n", 2 * (connection + 1)));
        }
        assert_eq!(disorder.load(std::sync::atomic::Ordering::Relaxed), 0);
        server.stop().unwrap();
    }
}

/// New connections get the new certificate; established ones keep working.
#[test]
fn a_certificate_is_replaced_while_the_server_runs() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let new = certificate(folders[1].path());
    for io in backends() {
        let shown = certificate(folders[0].path());
        let listen = vec![Listen::Tls { address: any_port(), tls: shown.clone() }];
        let (server, _) = start(&Config { io, listen, ..config(1) });
        let hello = |client: &mut StreamOwned<ClientConnection, TcpStream>| {
            let mut reply = [0; 6];
            client.write_all(b"hello\n").and_then(|()| client.read_exact(&mut reply))?;
            std::io::Result::Ok(reply)
        };
        let mut first = connect(tls_address(&server), folders[0].path());
        assert_eq!(hello(&mut first).unwrap(), *b"hello\n");
        shown.replace(&new);
        assert_eq!(
            hello(&mut connect(tls_address(&server), folders[1].path())).unwrap(),
            *b"hello\n",
            "{io:?}"
        );
        assert!(hello(&mut connect(tls_address(&server), folders[0].path())).is_err(), "the old is shown");
        assert_eq!(hello(&mut first).unwrap(), *b"hello\n");
        server.stop().unwrap();
    }
}

#[test]
fn who_does_not_speak_tls_is_told_so_and_sent_away() {
    let folder = tempfile::tempdir().unwrap();
    let tls = certificate(folder.path());
    for io in backends() {
        let listen = vec![Listen::Tls { address: any_port(), tls: tls.clone() }];
        let (server, _) = start(&Config { io, listen, ..config(1) });
        let mut client = TcpStream::connect(tls_address(&server)).unwrap();
        client.write_all(b"hello\nhello\nhello\n").unwrap();
        let mut reply = Vec::new();
        client.read_to_end(&mut reply).unwrap();
        // An alert record, and nothing in the clear.
        assert!(reply.first() == Some(&21) && !reply.starts_with(b"hello"), "{reply:?}");
        server.stop().unwrap();
    }
}

#[test]
fn a_missing_certificate_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere.pem");
    let error = Tls::from_pem_files(&nowhere, &nowhere).unwrap_err().to_string();
    assert!(error.contains("nowhere.pem: no certificate in PEM there"), "{error}");
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    certificate(folder.path());
    let error = Tls::from_pem_files(&empty, &folder.path().join("key.pem")).unwrap_err().to_string();
    assert!(error.contains("empty.pem: no certificate in PEM there"), "{error}");
    let error = Tls::from_pem_files(&folder.path().join("certificate.pem"), &empty).unwrap_err().to_string();
    assert!(error.contains("empty.pem: no private key in PEM there"), "{error}");
}
