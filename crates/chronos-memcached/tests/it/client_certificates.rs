//! TLS with certificates of clients (`-o ssl_verify_mode`).

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use plimsoll_testing::eventually;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::common::server::Server;

/// A certificate and its key.
type ClientIdentity = (CertificateDer<'static>, PrivateKeyDer<'static>);

/// Makes an authority, whose certificate is written to `file`, and a client's identity that it has signed.
fn authority(file: &Path) -> ClientIdentity {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    std::fs::write(file, params.self_signed(&key).expect("a certificate").pem()).expect("a file");
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().expect("a key");
    let client = CertificateParams::new(vec!["client".to_owned()]).expect("a name");
    let client = client.signed_by(&key, &issuer).expect("a certificate");
    (client.der().clone(), PrivateKeyDer::try_from(key.serialize_der()).expect("a key"))
}

/// The answer to `request` by TLS, from a server with `certificate` to a client with `identity`; empty if the server
/// refuses the client.
fn ask(
    port: u16,
    certificate: &CertificateDer<'static>,
    identity: Option<&ClientIdentity>,
    request: &str,
) -> String {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    let config = match identity {
        Some((certificate, key)) => {
            config.with_client_auth_cert(vec![certificate.clone()], key.clone_key()).expect("an identity")
        }
        None => config.with_no_client_auth(),
    };
    let name = ServerName::try_from("localhost").expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a configuration");
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(plimsoll_testing::PATIENCE)).expect("a timeout");
    let mut stream = StreamOwned::new(connection, stream);
    let mut reply = Vec::new();
    // A refusal is an alert, which comes after the client's part of the handshake.
    if stream.write_all(format!("{request}\r\nquit\r\n").as_bytes()).is_ok() {
        drop(stream.read_to_end(&mut reply));
    }
    String::from_utf8(reply).expect("text")
}

/// A server's certificate, and the files of a server that verifies clients.
struct TlsFolder {
    folder: tempfile::TempDir,
    certificate: CertificateDer<'static>,
}

impl TlsFolder {
    fn new() -> TlsFolder {
        let folder = tempfile::tempdir().expect("a folder");
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        let pem = made.cert.pem() + &made.signing_key.serialize_pem();
        std::fs::write(folder.path().join("chain.pem"), pem).expect("a file");
        TlsFolder { certificate: made.cert.der().clone(), folder }
    }

    /// Makes an authority in `ca.pem`, and an identity that it has signed.
    fn authority(&self) -> ClientIdentity {
        authority(&self.folder.path().join("ca.pem"))
    }

    fn start(&self, mode: u32) -> Result<Server, String> {
        let folder = self.folder.path().display();
        let files =
            format!("ssl_chain_cert={folder}/chain.pem,ssl_ca_cert={folder}/ca.pem,ssl_verify_mode={mode}");
        Server::try_start(&["-Z", "-o", &files], &[])
    }
}

#[test]
fn clients_are_verified_as_the_mode_says() {
    let files = TlsFolder::new();
    let (other, known) = (files.authority(), files.authority());
    for (mode, without, wrong) in [(0, "MN\r\n", "MN\r\n"), (1, "MN\r\n", ""), (2, "", ""), (3, "", "")] {
        let server = files.start(mode).expect("good files");
        let asked = |identity| ask(server.tcp, &files.certificate, identity, "mn");
        assert_eq!(
            [asked(Some(&known)), asked(None), asked(Some(&other))],
            ["MN\r\n", without, wrong],
            "{mode}"
        );
    }
}

#[test]
fn authorities_are_read_again() {
    let files = TlsFolder::new();
    let error = files.start(2).err().expect("no authorities");
    assert!(error.contains("ca.pem: no certificate in PEM there"), "{error}");
    let first = files.authority();
    let server = files.start(2).expect("good files");
    let asked = |identity, request| ask(server.tcp, &files.certificate, Some(identity), request);
    let second = files.authority();
    assert_eq!(asked(&first, "refresh_certs"), "OK\r\n");
    assert_eq!([asked(&first, "mn"), asked(&second, "mn")], ["", "MN\r\n"]);
    let third = files.authority();
    server.signal("HUP");
    eventually("the third authority is known", || asked(&third, "mn") == "MN\r\n");
    std::fs::write(files.folder.path().join("ca.pem"), "nothing").expect("a file");
    assert!(asked(&third, "refresh_certs").contains("ca.pem: no certificate in PEM there"));
    assert_eq!(asked(&third, "mn"), "MN\r\n");
}
