//! Files that the server reads again while it runs: users at SIGHUP, certificates at SIGHUP and by `refresh_certs`.

use std::path::{Path, PathBuf, absolute};

use crate::{Credentials, Settings};
use anyhow::{Context, Result};
use plimsoll_chronos::{Config, Listen, Tls};

/// What was read from which files.
#[derive(Clone, Debug, Default)]
pub struct Files {
    users: Option<(Credentials, PathBuf)>,
    certificates: Option<(Tls, PathBuf, PathBuf)>,
}

impl Files {
    /// The files behind `settings` and `config`; their names hold wherever the process goes.
    ///
    /// # Errors
    /// If there is no working directory to which a name belongs.
    pub fn new(users: Option<PathBuf>, settings: &Settings, config: &Config) -> Result<Files> {
        let whole = |path: &Path| absolute(path).with_context(|| path.display().to_string());
        let shown =
            |place: &Listen| if let Listen::Tls { tls, .. } = place { Some(tls.clone()) } else { None };
        let users = settings.credentials.clone().zip(users);
        let users = users.map(|(known, path)| whole(&path).map(|path| (known, path))).transpose()?;
        let tls = config.listen.iter().find_map(shown).zip(settings.tls.clone());
        let certificates =
            tls.map(|(tls, (chain, key))| Ok::<_, anyhow::Error>((tls, whole(&chain)?, whole(&key)?)));
        Ok(Files { users, certificates: certificates.transpose()? })
    }

    /// Whether there are certificates.
    pub fn have_certificates(&self) -> bool {
        self.certificates.is_some()
    }

    /// Reads the users again, if there are any.
    ///
    /// # Errors
    /// If the file does not do; the users stay as they are then.
    pub fn read_users(&self) -> Result<()> {
        if let Some((known, path)) = &self.users {
            known.replace(&Credentials::read(path)?);
        }
        Ok(())
    }

    /// Reads the certificates and their key again, if there are any.
    ///
    /// # Errors
    /// If the files do not do; what is shown stays as it is then.
    pub fn read_certificates(&self) -> Result<()> {
        if let Some((shown, chain, key)) = &self.certificates {
            shown.replace(&Tls::from_pem_files(chain, key)?);
        }
        Ok(())
    }
}
