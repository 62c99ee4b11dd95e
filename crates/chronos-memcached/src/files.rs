//! Files that the server reads again while it runs: users at SIGHUP, certificates at SIGHUP and by `refresh_certs`.

use std::path::{Path, PathBuf, absolute};

use crate::{Credentials, MemcachedSettings};
use anyhow::{Context, Result};
use plimsoll_chronos::{ClientVerification, Config, Listen, Tls, TlsFiles};

/// The files, and the objects that were read from them.
#[derive(Clone, Debug, Default)]
pub struct ReadFiles {
    users: Option<(Credentials, PathBuf)>,
    certificates: Option<(Tls, TlsFiles)>,
}

impl ReadFiles {
    /// Makes the names of the files behind `settings` and `config` absolute, so that they hold after a change of the
    /// working directory.
    ///
    /// # Errors
    /// If a name is relative, and the process has no working directory.
    pub fn new(users: Option<PathBuf>, settings: &MemcachedSettings, config: &Config) -> Result<ReadFiles> {
        let whole = |path: &Path| absolute(path).with_context(|| path.display().to_string());
        let shown =
            |place: &Listen| if let Listen::Tls { tls, .. } = place { Some(tls.clone()) } else { None };
        let users = settings.credentials.clone().zip(users);
        let users = users.map(|(known, path)| whole(&path).map(|path| (known, path))).transpose()?;
        let tls = config.listen.iter().find_map(shown).zip(settings.tls.clone());
        let certificates = tls.map(|(tls, TlsFiles { chain, key, clients })| {
            let verification = |ClientVerification { authorities, required }| {
                Ok::<_, anyhow::Error>(ClientVerification { authorities: whole(&authorities)?, required })
            };
            let clients = clients.map(verification).transpose()?;
            Ok::<_, anyhow::Error>((tls, TlsFiles { chain: whole(&chain)?, key: whole(&key)?, clients }))
        });
        Ok(ReadFiles { users, certificates: certificates.transpose()? })
    }

    /// Reports whether there are certificates.
    pub fn have_certificates(&self) -> bool {
        self.certificates.is_some()
    }

    /// Reads the users again, if there are any.
    ///
    /// # Errors
    /// If the file is not valid; the users then stay as they are.
    pub fn read_users(&self) -> Result<()> {
        if let Some((known, path)) = &self.users {
            known.replace(&Credentials::read(path)?);
        }
        Ok(())
    }

    /// Reads the certificates and their key again, if there are any.
    ///
    /// # Errors
    /// If the files are not valid; the certificates in use then stay as they are.
    pub fn read_certificates(&self) -> Result<()> {
        if let Some((shown, files)) = &self.certificates {
            shown.replace(&files.read()?);
        }
        Ok(())
    }
}
