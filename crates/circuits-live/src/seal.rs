//! [`ControlKey`]: messages with an HMAC-SHA256 (RFC 2104) behind them, which both sides make with one key.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use plimsoll_circuits::{ControlMessage, MessageError};
use plimsoll_files::{Origin, open_to_read};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};

/// The shared key of a controller and its agents.
#[derive(Clone, Debug)]
pub struct ControlKey(hmac::Key);

/// The reason why a datagram was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DatagramError {
    /// The sender does not have the key, or the datagram was changed.
    #[error("the message is not authentic")]
    NotAuthentic,
    /// The sender has the key, and the bytes are no message.
    #[error(transparent)]
    Message(#[from] MessageError),
}

/// Bytes of the authentication behind each message.
const TAG_BYTES: usize = 32;
const KEY_BYTES: std::ops::RangeInclusive<usize> = 32..=4_096;

impl ControlKey {
    /// Returns the key of these bytes, which are 32 to 4,096.
    ///
    /// # Errors
    /// Returns an error if there are fewer or more.
    pub fn new(bytes: &[u8]) -> io::Result<ControlKey> {
        if !KEY_BYTES.contains(&bytes.len()) {
            let length = bytes.len();
            return Err(io::Error::other(format!("the key has {length} bytes; expected 32 to 4096")));
        }
        Ok(ControlKey(hmac::Key::new(hmac::HMAC_SHA256, bytes)))
    }

    /// Reads the key of a file that only its owner can access.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is accessible to others, or has fewer than 32 or more than 4,096
    /// bytes.
    pub fn read(path: &Path) -> io::Result<ControlKey> {
        let mode = open_to_read(path, Origin::Argument)?.metadata()?.mode();
        if mode & 0o077 != 0 {
            let message = format!("mode {:o}; expected 600 or 400, as it is a secret", mode & 0o7777);
            return Err(io::Error::other(message));
        }
        ControlKey::new(&plimsoll_files::read(path, Origin::Argument, *KEY_BYTES.end() as u64 + 1)?)
    }

    /// Returns the datagram of a message.
    pub fn seal(&self, message: &ControlMessage) -> Vec<u8> {
        let mut datagram = Vec::new();
        message.encode(&mut datagram);
        let tag = hmac::sign(&self.0, &datagram);
        datagram.extend(tag.as_ref());
        datagram
    }

    /// Returns the message of an authentic datagram.
    ///
    /// # Errors
    /// Returns an error if the datagram is not authentic, or no message.
    pub fn open(&self, datagram: &[u8]) -> Result<ControlMessage, DatagramError> {
        let length = datagram.len().checked_sub(TAG_BYTES).ok_or(DatagramError::NotAuthentic)?;
        let (message, tag) = datagram.split_at(length);
        hmac::verify(&self.0, message, tag).map_err(|_| DatagramError::NotAuthentic)?;
        Ok(ControlMessage::decode(message)?)
    }
}

/// Returns a random number, which no message of another session has.
///
/// # Errors
/// Returns an error if the system has none.
pub(crate) fn nonce() -> io::Result<u64> {
    let mut bytes = [0; 8];
    SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("no random numbers"))?;
    Ok(u64::from_ne_bytes(bytes))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use plimsoll_circuits::MessageBody;

    use super::*;

    #[test]
    fn only_an_unchanged_datagram_with_the_key_is_a_message() {
        let (key, other) = (ControlKey::new(&[7; 32]).unwrap(), ControlKey::new(&[8; 32]).unwrap());
        let message =
            ControlMessage { host: 1, agent: 2, controller: 3, sequence: 4, body: MessageBody::Challenge };
        let datagram = key.seal(&message);
        assert_eq!(key.open(&datagram), Ok(message));
        assert_eq!(other.open(&datagram), Err(DatagramError::NotAuthentic));
        for at in 0..datagram.len() {
            let mut changed = datagram.clone();
            changed[at] ^= 1;
            assert_eq!(key.open(&changed), Err(DatagramError::NotAuthentic), "byte {at}");
            assert_eq!(key.open(&datagram[..at]), Err(DatagramError::NotAuthentic), "{at} bytes");
        }
    }

    /// Test case 2 of RFC 4231, with a key that is padded to the length that we require: the padding of HMAC is zeros.
    #[test]
    fn the_tag_is_that_of_the_rfc() {
        let mut key = b"Jefe".to_vec();
        key.resize(32, 0);
        let tag = hmac::sign(&ControlKey::new(&key).unwrap().0, b"what do ya want for nothing?");
        assert_eq!(tag.as_ref()[..4], [0x5b, 0xdc, 0xc1, 0x46]);
    }

    #[test]
    fn a_key_is_long_and_secret() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        for (bytes, mode, problem) in [
            (31, 0o600, Some("the key has 31 bytes; expected 32 to 4096")),
            (32, 0o640, Some("mode 640; expected 600 or 400, as it is a secret")),
            (32, 0o600, None),
            (4_096, 0o400, None),
        ] {
            let _ = fs::remove_file(&path);
            fs::write(&path, vec![1; bytes]).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(ControlKey::read(&path).err().map(|error| error.to_string()).as_deref(), problem);
        }
    }
}
