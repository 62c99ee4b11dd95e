//! [`MemoryFile`]: the items of a server that stops, for the server that follows it (`-e`).
//!
//! ```text
//! head (magic, version, cas?, last cas, date of a flush to come) | item | item | ... | end | checksum of all before it
//! item = head (cas, date of expiry, flags, lengths, state) | key | value
//! ```
//!
//! memcached maps its item memory to the file, and writes the rest of its state beside it when SIGUSR1 stops it. Here
//! the file is written at that time, item by item, so that the next server may have other threads, partitions and
//! sizes. It is written under another name and renamed when it is complete, and removed when it is read: a server that
//! is killed leaves no file from which an older value could come back.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, anyhow, bail, ensure};
use plimsoll_chronos::{KeyHash, PartitionId, Service};
use plimsoll_files::Origin;
use plimsoll_process::note;
use twox_hash::XxHash3_64;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::Partition;
use crate::clock::Clock;
use crate::server::Memcached;
use crate::store::{ItemState, Meta};

/// The first bytes of a file.
const MAGIC: [u8; 16] = *b"chronos-memcache";
/// The version of the format; a file of another version is not read.
const VERSION: u32 = 1;
/// Bytes of the longest value: the largest `-I`.
const VALUE_BYTES_MAX: u32 = 1 << 30;
/// The part of an item's state that is kept. The others describe its place in memory.
const STATE_KEPT: u8 = ItemState::FETCHED | ItemState::STALE | ItemState::TOKEN_SENT | ItemState::KEY_BINARY;
const BUFFER_BYTES: usize = 1 << 20;

/// The file of `-e`, and the state of its writing.
#[derive(Debug)]
pub struct MemoryFile {
    path: PathBuf,
    /// True once a stop that keeps the items has begun.
    is_wanted: AtomicBool,
    /// The number of items that were written, or the error.
    written: OnceLock<io::Result<u64>>,
}

/// The head of the file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct MemoryFileHead {
    magic: [u8; 16],
    version: U32,
    /// 1 if the items have cas values, 0 with `-C`.
    has_cas: U32,
    /// No cas value was greater.
    last_cas: U64,
    /// The date of a delayed flush_all that has not come, in seconds since 1970; 0 if there is none.
    flush_date: U64,
}

/// The head of an item; with `key_bytes` 0 it is the end of the items.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct SavedItem {
    cas: U64,
    /// The date of its expiry in seconds since 1970, 0 for never.
    expiry_date: U64,
    flags: U32,
    value_bytes: U32,
    key_bytes: u8,
    state: u8,
    padding: [u8; 6],
}

impl MemoryFile {
    /// Returns the file at `path`, which the server neither reads nor writes yet.
    pub fn new(path: PathBuf) -> Arc<MemoryFile> {
        Arc::new(MemoryFile { path, is_wanted: AtomicBool::new(false), written: OnceLock::new() })
    }

    /// Gives `server` the items of the file, if there is one, and removes the file. A file that does not match or is
    /// damaged is reported, and the server is empty. `unix_seconds` is the time.
    ///
    /// # Errors
    /// If the file is not one of this program and of this user, or the folder cannot be written.
    pub fn restore(self: &Arc<MemoryFile>, server: Memcached, unix_seconds: u64) -> Result<Memcached> {
        let path = self.path.display();
        let mut server = match plimsoll_files::open_to_read(&self.path, Origin::Name) {
            Ok(file) => {
                self.check_owner(&file).with_context(|| format!("-e {path}"))?;
                let settings = server.settings().clone();
                let read = read(file, server, Clock { unix_seconds, ..Clock::AT_START });
                // Not before it is read, and before the first request changes an item that it has.
                fs::remove_file(&self.path).with_context(|| format!("-e {path}: cannot remove it"))?;
                match read {
                    Ok((server, report)) => {
                        note!("-e {path}: {report}");
                        server
                    }
                    Err(error) => {
                        note!("-e {path}: {error:#}; the cache is empty");
                        Memcached::new(settings)?
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                note!("-e {path}: there is no such file yet; the cache is empty");
                server
            }
            Err(error) => return Err(error).with_context(|| format!("-e {path}")),
        };
        self.create().with_context(|| format!("-e {path}: cannot write there"))?;
        fs::remove_file(self.unfinished()).with_context(|| format!("-e {path}"))?;
        server.memory_file = Some(Arc::clone(self));
        Ok(server)
    }

    /// Has the stop that follows keep the items.
    pub fn want(&self) {
        self.is_wanted.store(true, Ordering::Relaxed);
    }

    /// Reports the result of the stop: None if the items were not to be kept, else their number.
    ///
    /// # Errors
    /// If the file could not be written.
    pub fn kept(&self) -> Result<Option<u64>> {
        let path = self.path.display();
        match self.written.get() {
            Some(Ok(items)) => Ok(Some(*items)),
            Some(Err(error)) => bail!("-e {path}: cannot keep the items: {error}"),
            None if self.is_wanted.load(Ordering::Relaxed) => bail!("-e {path}: the items were not kept"),
            None => Ok(None),
        }
    }

    /// Writes the items of `partitions`, if the stop is to keep them. Frees the memory of each partition behind it.
    pub(crate) fn keep(&self, partitions: Vec<Partition>, has_cas: bool, clock: Clock) {
        if self.is_wanted.load(Ordering::Relaxed) {
            let written = self.write(partitions, has_cas, clock).inspect_err(|_| {
                // A part of the items is of no use, and it may fill the memory of a tmpfs.
                let _ = fs::remove_file(self.unfinished());
            });
            // A server ends once.
            let _ = self.written.set(written);
        }
    }

    /// Refuses a file that this program must not remove.
    fn check_owner(&self, mut file: &File) -> Result<()> {
        let user = rustix::process::geteuid().as_raw();
        let owner = file.metadata()?.uid();
        ensure!(owner == user, "it belongs to user {owner}, and the server runs as user {user}");
        let mut first = Vec::new();
        file.take(MAGIC.len() as u64).read_to_end(&mut first)?;
        ensure!(
            MAGIC.starts_with(&first),
            "it is no file of chronos-memcached; remove it, or name another one (memcached's own cannot be read)"
        );
        io::Seek::rewind(&mut file)?;
        Ok(())
    }

    fn unfinished(&self) -> PathBuf {
        let mut path = self.path.as_os_str().to_owned();
        path.push(".tmp");
        PathBuf::from(path)
    }

    /// Creates the file under the name that it has until it is complete.
    fn create(&self) -> io::Result<File> {
        let path = self.unfinished();
        // A server that was killed may have left one.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
    }

    fn write(&self, partitions: Vec<Partition>, has_cas: bool, clock: Clock) -> io::Result<u64> {
        let date = |second: u32| if second == 0 { 0 } else { clock.date(second).max(1) as u64 };
        let stores = || partitions.iter().map(|partition| &partition.store);
        let head = MemoryFileHead {
            magic: MAGIC,
            version: VERSION.into(),
            has_cas: u32::from(has_cas).into(),
            last_cas: stores().map(|store| store.last_cas()).max().unwrap_or(0).into(),
            flush_date: date(stores().map(|store| store.flush_to_come(clock.second)).max().unwrap_or(0))
                .into(),
        };
        let mut out = Summed { stream: BufWriter::with_capacity(BUFFER_BYTES, self.create()?), sum: 0 };
        out.put(head.as_bytes())?;
        let mut items = 0;
        for mut partition in partitions {
            partition.store.for_each_live(clock.second, |header, key, value| {
                let item = SavedItem {
                    cas: header.cas,
                    expiry_date: date(header.expiry.get()).into(),
                    flags: header.flags,
                    value_bytes: header.value_bytes,
                    key_bytes: header.key_bytes,
                    state: header.state & STATE_KEPT,
                    padding: [0; 6],
                };
                items += 1;
                [item.as_bytes(), key, value].into_iter().try_for_each(|piece| out.put(piece))
            })?;
        }
        out.put(SavedItem::default().as_bytes())?;
        let sum = out.sum;
        out.put(&sum.to_le_bytes())?;
        let file = out.stream.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        fs::rename(self.unfinished(), &self.path)?;
        Ok(items)
    }
}

/// Reads a file into `server`, whose time is `clock`. Returns the server and a report of the items.
fn read(file: File, mut server: Memcached, clock: Clock) -> Result<(Memcached, String)> {
    let mut input = Summed { stream: BufReader::with_capacity(BUFFER_BYTES, file), sum: 0 };
    let head: MemoryFileHead = input.get()?;
    let (version, has_cas) = (head.version.get(), head.has_cas.get() == 1);
    ensure!(version == VERSION, "its format is version {version}, and this program reads version {VERSION}");
    let (theirs, ours) = if has_cas { ("without", "with") } else { ("with", "without") };
    ensure!(
        has_cas == server.settings().cas,
        "it was written {theirs} -C, and the server was started {ours} -C"
    );
    // The second of a date, which is later than now.
    let second = |date: u64| {
        let later = date.checked_sub(clock.unix_seconds).filter(|seconds| *seconds > 0)?;
        Some(u32::try_from(later).unwrap_or(u32::MAX).saturating_add(clock.second))
    };
    let flush = Some(head.flush_date.get()).filter(|date| *date > 0).map(second);
    let is_flushed = flush == Some(None);
    let number = server.settings().partitions;
    let mut partitions: Vec<Partition> = (0..number).map(|id| server.partition(PartitionId(id))).collect();
    let (mut expired, mut left_out) = (0_u64, 0_u64);
    let (mut key, mut value) = (Vec::new(), Vec::new());
    loop {
        let item: SavedItem = input.get()?;
        if item.key_bytes == 0 {
            break;
        }
        let value_bytes = item.value_bytes.get();
        ensure!(value_bytes <= VALUE_BYTES_MAX, "it is damaged: a value has {value_bytes} bytes");
        input.take(usize::from(item.key_bytes), &mut key)?;
        input.take(value_bytes as usize, &mut value)?;
        let expiry = match item.expiry_date.get() {
            0 => Some(0),
            date => second(date),
        };
        let Some(expiry) = expiry.filter(|_| !is_flushed) else {
            expired += 1;
            continue;
        };
        let hash = server.hash.hash(&key);
        let partition = &mut partitions[KeyHash::partition(hash, number).0 as usize];
        let (flags, state) = (item.flags.get(), item.state & STATE_KEPT);
        let is_put = !server.is_too_large(key.len(), flags, value.len())
            && partition
                .store
                .put(hash, &key, [&value, b""], Meta { flags, expiry, state }, clock.second)
                .map(|place| partition.store.header_mut(place).cas = item.cas)
                .is_ok();
        partition.store.settle();
        left_out += u64::from(!is_put);
    }
    let expected = input.sum;
    let sum: U64 = input.get()?;
    ensure!(sum.get() == expected, "it is damaged: its checksum is wrong");
    ensure!(input.stream.read(&mut [0])? == 0, "it is damaged: bytes follow its end");
    let mut items = 0;
    for partition in &mut partitions {
        items += partition.store.count_items();
        partition.store.resume(head.last_cas.get(), flush.flatten().unwrap_or(0));
    }
    server
        .restored
        .get_mut()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .extend(partitions.into_iter().map(Some));
    Ok((server, format!("{items} items are back; {expired} have expired, {left_out} have no room")))
}

/// A stream, and the checksum of the pieces that it has carried.
struct Summed<T> {
    stream: T,
    sum: u64,
}

impl<T: Write> Summed<T> {
    fn put(&mut self, piece: &[u8]) -> io::Result<()> {
        self.sum = XxHash3_64::oneshot_with_seed(self.sum, piece);
        self.stream.write_all(piece)
    }
}

impl<T: Read> Summed<T> {
    /// Reads a piece of `length` bytes. Takes no more memory than the file has bytes.
    fn take(&mut self, length: usize, piece: &mut Vec<u8>) -> Result<()> {
        piece.clear();
        (&mut self.stream).take(length as u64).read_to_end(piece)?;
        ensure!(piece.len() == length, "it is damaged: it ends too early");
        self.sum = XxHash3_64::oneshot_with_seed(self.sum, piece);
        Ok(())
    }

    /// Reads a piece of fixed length.
    fn get<P: FromBytes>(&mut self) -> Result<P> {
        let mut piece = Vec::new();
        self.take(size_of::<P>(), &mut piece)?;
        P::read_from_bytes(&piece).map_err(|_| anyhow!("it is damaged: it ends too early"))
    }
}

#[cfg(test)]
mod tests;
