//! TLS: a connection's bytes are decrypted before the service sees them, and its replies encrypted before they are
//! sent.
//!
//! ```text
//! kernel ──> TlsStream::receive ──> Service ... Output ──> TlsStream::seal ──> another Output ──> kernel
//! ```

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use plimsoll_files::Origin;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};

use crate::buffers::Buffers;
use crate::output::Output;

/// The certificate and the settings of a TLS socket. Clones share them: [`Tls::replace`] reaches the sockets that have
/// them.
#[derive(Clone, Debug)]
pub struct Tls(Arc<RwLock<Arc<ServerConfig>>>);

/// The reason that a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be parsed.
    #[error("{file}: no {expected} in PEM there: {source}")]
    File {
        /// The path of the file.
        file: String,
        /// A certificate or a private key.
        expected: &'static str,
        /// The error that the parser found.
        source: pem::Error,
    },
    /// The certificate and the key do not belong together, or are of a kind that is not supported.
    #[error("certificate and private key: {0}")]
    Unusable(#[from] rustls::Error),
    /// The certificates of authorities cannot be used to verify clients.
    #[error("{file}: no certificate there can verify clients: {reason}")]
    Authorities {
        /// The path of the file.
        file: String,
        /// The reason that the certificates are refused.
        reason: String,
    },
}

/// The PEM files of a TLS socket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// The certificate chain of the server.
    pub chain: PathBuf,
    /// The private key of the chain's first certificate.
    pub key: PathBuf,
    /// The verification of clients; None asks them for no certificate.
    pub clients: Option<ClientVerification>,
}

/// The verification of the certificates that clients show.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientVerification {
    /// Certificates of the authorities that may have signed the clients' certificates.
    pub authorities: PathBuf,
    /// True if a client without a certificate is refused; a certificate that is not valid always is.
    pub required: bool,
}

impl PartialEq for Tls {
    fn eq(&self, other: &Tls) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Tls {}

impl From<Arc<ServerConfig>> for Tls {
    /// For settings that [`TlsFiles`] does not offer: other versions or ciphers.
    fn from(config: Arc<ServerConfig>) -> Tls {
        Tls(Arc::new(RwLock::new(config)))
    }
}

/// The most bytes of a file of certificates or keys; a longer one is refused.
const PEM_BYTES_MAX: u64 = 1 << 20;

impl Tls {
    /// Returns TLS 1.2 and 1.3 with the certificate chain and the private key in these files, and without client
    /// certificates.
    ///
    /// # Errors
    /// If a file cannot be read, has none, or the two do not belong together.
    pub fn from_pem_files(certificates: &Path, key: &Path) -> Result<Tls, TlsError> {
        TlsFiles { chain: certificates.to_owned(), key: key.to_owned(), clients: None }.read()
    }

    /// Replaces the certificate and settings, taking them from `other`. New connections use them; established ones keep
    /// theirs.
    pub fn replace(&self, other: &Tls) {
        let config = other.config();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = config;
    }

    fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl TlsFiles {
    /// Reads the files: TLS 1.2 and 1.3.
    ///
    /// # Errors
    /// If a file cannot be read or has no certificate or key, or if the chain and the key do not belong together.
    pub fn read(&self) -> Result<Tls, TlsError> {
        let chain = read_certificates(&self.chain)?;
        let key = read_pem(&self.key)
            .and_then(|text| PrivateKeyDer::from_pem_slice(&text))
            .map_err(|source| TlsError::file(&self.key, "private key", source))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = match &self.clients {
            None => WebPkiClientVerifier::no_client_auth(),
            Some(ClientVerification { authorities, required }) => {
                let refused = |reason: String| TlsError::Authorities {
                    file: authorities.display().to_string(),
                    reason,
                };
                let mut roots = RootCertStore::empty();
                for certificate in read_certificates(authorities)? {
                    roots.add(certificate).map_err(|error| refused(error.to_string()))?;
                }
                let builder =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
                let builder = if *required { builder } else { builder.allow_unauthenticated() };
                builder.build().map_err(|error| refused(error.to_string()))?
            }
        };
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)?;
        Ok(Tls::from(Arc::new(config)))
    }
}

impl TlsError {
    fn file(path: &Path, expected: &'static str, source: pem::Error) -> TlsError {
        TlsError::File { file: path.display().to_string(), expected, source }
    }
}

/// Reads a file of certificates or keys. A thread that waits for signals does so: a pipe in its place would block it.
fn read_pem(path: &Path) -> Result<Vec<u8>, pem::Error> {
    plimsoll_files::read(path, Origin::Name, PEM_BYTES_MAX).map_err(pem::Error::Io)
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    read_pem(path)
        .and_then(|text| CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>())
        .and_then(|chain| if chain.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(chain) })
        .map_err(|source| TlsError::file(path, "certificate", source))
}

/// One connection's TLS.
pub(crate) struct TlsStream {
    connection: ServerConnection,
    /// Encrypted bytes that are to be sent to the client.
    pub(crate) wire: Output,
    has_said_goodbye: bool,
}

/// Bytes of plain text read at once.
const PLAIN_BYTES: usize = 16 * 1024;
/// Slices of plain text encrypted at once.
const SLICES: usize = 16;

impl TlsStream {
    pub(crate) fn new(tls: &Tls) -> Result<TlsStream, rustls::Error> {
        let mut connection = ServerConnection::new(tls.config())?;
        // The bytes that wait are bounded by the connection's limits.
        connection.set_buffer_limit(None);
        Ok(TlsStream { connection, wire: Output::default(), has_said_goodbye: false })
    }

    /// Decrypts bytes from the client, and appends the plain text to `plain`. True if the client will send no more.
    pub(crate) fn receive(&mut self, mut bytes: &[u8], plain: &mut Vec<u8>) -> Result<bool, rustls::Error> {
        let mut has_ended = false;
        while !bytes.is_empty() && !has_ended {
            let taken = self.connection.read_tls(&mut bytes);
            self.connection.process_new_packets()?;
            loop {
                let start = plain.len();
                plain.resize(start + PLAIN_BYTES, 0);
                let read = self.connection.reader().read(&mut plain[start..]);
                plain.truncate(start + *read.as_ref().unwrap_or(&0));
                match read {
                    Ok(0) => {
                        has_ended = true;
                        break;
                    }
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(_) => return Err(rustls::Error::General("the stream is broken".to_owned())),
                }
            }
            if taken.is_err() {
                return Err(rustls::Error::General("more than a record was expected to be".to_owned()));
            }
        }
        Ok(has_ended)
    }

    /// Encrypts the bytes that `output` has ready; ends the TLS session after the last of them.
    pub(crate) fn seal(&mut self, output: &mut Output, is_last: bool, buffers: &mut Buffers) {
        // Bytes written before the end of the handshake wait in the TLS connection.
        let writes = "a Vec takes every byte";
        loop {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = output.ready(&mut slices);
            if count == 0 {
                break;
            }
            let mut size = 0;
            for slice in &slices[..count] {
                self.connection.writer().write_all(slice).expect("there is no limit");
                size += slice.len();
            }
            output.advance(size, buffers);
            self.wire.prepare(buffers);
            while self.connection.wants_write() {
                self.connection.write_tls(self.wire.tail()).expect(writes);
            }
        }
        if is_last && output.is_done() && !self.has_said_goodbye {
            self.has_said_goodbye = true;
            self.connection.send_close_notify();
        }
        if self.connection.wants_write() {
            self.wire.prepare(buffers);
            while self.connection.wants_write() {
                self.connection.write_tls(self.wire.tail()).expect(writes);
            }
        }
    }
}
