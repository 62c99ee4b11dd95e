//! The users of the cache: `-Y` for the text protocol, SASL PLAIN for the binary one.

use std::path::Path;

use plimsoll_files::Origin;
use std::sync::{Arc, PoisonError, RwLock};

use subtle::{Choice, ConstantTimeEq};

/// Users and their passwords. Clones share them: [`Credentials::replace`] reaches the server that has one of them.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    pairs: Arc<RwLock<Pairs>>,
}

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// A file of credentials that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The file cannot be read.
    #[error("cannot read the authentication file {path}: {error}")]
    Unreadable {
        /// The path of the file.
        path: String,
        /// The error that the kernel returned.
        error: std::io::Error,
    },
    /// A line is not user:password.
    #[error("line {line} of the authentication file {path} has no ':'; each line is user:password")]
    NoColon {
        /// The path of the file.
        path: String,
        /// The number of the line, from 1.
        line: usize,
    },
    /// A user or a password is empty, or longer than any login can be.
    #[error(
        "line {line} of the authentication file {path}: the {field} has {bytes} bytes; \
         expected 1 to {FIELD_BYTES_MAX}, as in user:password"
    )]
    Length {
        /// The path of the file.
        path: String,
        /// The number of the line, from 1.
        line: usize,
        /// The field: `user` or `password`.
        field: &'static str,
        /// The length of the field.
        bytes: usize,
    },
    /// The file has no user, so that all logins would fail.
    #[error("the authentication file {path} names no user; each line is user:password")]
    Empty {
        /// The path of the file.
        path: String,
    },
}

/// The most bytes of a file of users; a longer one is refused.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Bytes of a user's name or password; memcached's limit.
const FIELD_BYTES_MAX: usize = 256;

impl Credentials {
    /// Reads a file of lines `user:password`.
    pub fn read(path: &Path) -> Result<Credentials, CredentialsError> {
        let name = path.display().to_string();
        match plimsoll_files::read(path, Origin::Name, FILE_BYTES_MAX) {
            Ok(text) => Credentials::parse(&name, &text),
            Err(error) => Err(CredentialsError::Unreadable { path: name, error }),
        }
    }

    /// Parses the contents of such a file.
    pub fn parse(path: &str, text: &[u8]) -> Result<Credentials, CredentialsError> {
        let mut pairs = Vec::new();
        for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            let Some(colon) = memchr::memchr(b':', line) else {
                return Err(CredentialsError::NoColon { path: path.to_owned(), line: index + 1 });
            };
            let (user, password) = (&line[..colon], &line[colon + 1..]);
            for (field, value) in [("user", user), ("password", password)] {
                // An empty field would accept a login that sends nothing; a longer one could never log in.
                if !(1..=FIELD_BYTES_MAX).contains(&value.len()) {
                    let (path, line, bytes) = (path.to_owned(), index + 1, value.len());
                    return Err(CredentialsError::Length { path, line, field, bytes });
                }
            }
            pairs.push((user.to_vec(), password.to_vec()));
        }
        if pairs.is_empty() {
            return Err(CredentialsError::Empty { path: path.to_owned() });
        }
        Ok(Credentials { pairs: Arc::new(RwLock::new(pairs)) })
    }

    /// Takes over the users of `other`, for logins from now on.
    pub fn replace(&self, other: &Credentials) {
        let pairs = other.pairs.read().unwrap_or_else(PoisonError::into_inner).clone();
        *self.pairs.write().unwrap_or_else(PoisonError::into_inner) = pairs;
    }

    /// True if `user` has `password`. The time of the call depends on the lengths of names and passwords only, not on
    /// their contents.
    pub fn accept(&self, user: &[u8], password: &[u8]) -> bool {
        let mut accepted = Choice::from(0);
        let pairs = self.pairs.read().unwrap_or_else(PoisonError::into_inner);
        for (name, secret) in pairs.iter() {
            accepted |= padded(name).ct_eq(&padded(user)) & padded(secret).ct_eq(&padded(password));
        }
        bool::from(accepted) && user.len() <= FIELD_BYTES_MAX && password.len() <= FIELD_BYTES_MAX
    }
}

/// Returns a field with its length, in an array of one size for all.
fn padded(field: &[u8]) -> [u8; FIELD_BYTES_MAX + 8] {
    let mut place = [0; FIELD_BYTES_MAX + 8];
    let bytes = field.len().min(FIELD_BYTES_MAX);
    place[..bytes].copy_from_slice(&field[..bytes]);
    place[FIELD_BYTES_MAX..].copy_from_slice(&(field.len() as u64).to_le_bytes());
    place
}

/// Returns user and password of a SASL PLAIN message: `[authorization] NUL user NUL password`.
pub fn plain(message: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut fields = message.splitn(3, |&byte| byte == 0);
    let (_, user, password) = (fields.next()?, fields.next()?, fields.next()?);
    Some((user, password))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file is read again at SIGHUP, by the thread that waits for the signals that end the server, so an endless
    /// file must be refused.
    #[test]
    fn what_would_never_end_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("it runs");
        assert!(made.success());
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).expect("a link");
        for path in [pipe, link, folder.path().to_owned()] {
            let error = Credentials::read(&path).expect_err("it is no file");
            assert!(error.to_string().starts_with("cannot read the authentication file"), "{error}");
        }
    }

    #[test]
    fn only_the_right_pair_is_accepted() {
        let credentials = Credentials::parse("users", b"ann:secret\nbob:a:b\r\n\n").expect("a good file");
        for (user, password, accepted) in [
            ("ann", "secret", true),
            ("bob", "a:b", true),
            ("ann", "a:b", false),
            ("ann", "secre", false),
            ("", "", false),
        ] {
            assert_eq!(
                credentials.accept(user.as_bytes(), password.as_bytes()),
                accepted,
                "{user} {password}"
            );
        }
        let shared = credentials.clone();
        credentials.replace(&Credentials::parse("users", b"ann:new").expect("a good file"));
        assert!(shared.accept(b"ann", b"new") && !shared.accept(b"ann", b"secret"));
        assert_eq!(plain(b"\0ann\0secret"), Some((&b"ann"[..], &b"secret"[..])));
        assert_eq!(plain(b"ann"), None);
    }

    #[test]
    fn accounts_without_a_name_or_a_password_are_refused() {
        let long = "x".repeat(FIELD_BYTES_MAX + 1);
        for (account, field, bytes) in [
            (":secret", "user", 0),
            ("ann:", "password", 0),
            ("ann:\r", "password", 0),
            (":", "user", 0),
            (&format!("{long}:secret"), "user", 257),
            (&format!("ann:{long}"), "password", 257),
        ] {
            let text = format!("bob:x\n{account}\n");
            let error = Credentials::parse("users", text.as_bytes()).expect_err(account).to_string();
            let expected = format!(
                "line 2 of the authentication file users: the {field} has {bytes} bytes; \
                 expected 1 to 256, as in user:password"
            );
            assert_eq!(error, expected);
        }
        let longest = "x".repeat(FIELD_BYTES_MAX);
        let accounts = Credentials::parse("users", format!("ann:{longest}").as_bytes()).expect("a good file");
        assert!(accounts.accept(b"ann", longest.as_bytes()));
    }

    #[test]
    fn a_bad_file_is_named_with_its_line() {
        let error = Credentials::parse("users", b"ann:x\nnobody\n").expect_err("no colon");
        assert_eq!(
            error.to_string(),
            "line 2 of the authentication file users has no ':'; each line is user:password"
        );
        assert!(Credentials::parse("users", b"\n").is_err());
    }
}
