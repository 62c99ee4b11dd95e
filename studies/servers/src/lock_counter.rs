//! [`LockCounter`] counts how often the threads of a program find a mutex taken, as mutrace does (`lock_counter.c`).
//!
//! Tracepoints see a lock only where a thread sleeps at it. A program that is linked dynamically, as memcached is,
//! calls the C library for every acquisition, so a library that is loaded before it counts them all.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, ensure};
use tempfile::TempDir;

/// The library, and the file of its counts.
pub(crate) struct LockCounter(TempDir);

/// The counts of all threads of a program so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct MutexCounts {
    /// The acquisitions by `pthread_mutex_lock`; `pthread_mutex_trylock`, which never waits, is not counted.
    pub(crate) acquired: u64,
    /// The acquisitions among them that found the mutex taken.
    pub(crate) contended: u64,
    /// The time from then until they had it, in ns.
    pub(crate) waited_ns: u64,
}

impl LockCounter {
    /// Compiles the library.
    ///
    /// # Errors
    /// Returns an error if the C compiler does not run, or a file cannot be written.
    pub(crate) fn build() -> anyhow::Result<LockCounter> {
        let counter = LockCounter(tempfile::tempdir().context("cannot make a folder for the lock counter")?);
        let (source, counts) = (counter.file("lock_counter.c"), counter.file(COUNTS));
        fs::write(&source, SOURCE).with_context(|| format!("cannot write {}", source.display()))?;
        let made = File::create(&counts).and_then(|file| file.set_len((THREADS * WORDS * 8) as u64));
        made.with_context(|| format!("cannot make {}", counts.display()))?;
        let output = Command::new(COMPILER)
            .args(["-O2", "-shared", "-fPIC", "-o"])
            .args([counter.file(LIBRARY), source])
            .output()
            .with_context(|| format!("cannot run {COMPILER}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{COMPILER} does not compile lock_counter.c: {}", said.trim());
        Ok(counter)
    }

    /// Returns the words in front of the command that is to be counted; one program at a time.
    pub(crate) fn prefix(&self) -> [String; 3] {
        let library = format!("LD_PRELOAD={}", self.file(LIBRARY).display());
        let counts = format!("PLIMSOLL_LOCK_COUNTS={}", self.file(COUNTS).display());
        ["env".to_owned(), library, counts]
    }

    /// Reads the counts of the program, which may run on meanwhile.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub(crate) fn read(&self) -> anyhow::Result<MutexCounts> {
        let bytes = fs::read(self.file(COUNTS)).context("cannot read the lock counts")?;
        let words: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        Ok(words.chunks(WORDS).fold(MutexCounts::default(), |sum, thread| MutexCounts {
            acquired: sum.acquired + thread[0],
            contended: sum.contended + thread[1],
            waited_ns: sum.waited_ns + thread[2],
        }))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

impl MutexCounts {
    /// Returns the counts since `earlier`.
    pub(crate) fn since(self, earlier: MutexCounts) -> MutexCounts {
        MutexCounts {
            acquired: self.acquired - earlier.acquired,
            contended: self.contended - earlier.contended,
            waited_ns: self.waited_ns - earlier.waited_ns,
        }
    }
}

/// The C compiler, which Rust needs as well, to link.
pub(crate) const COMPILER: &str = "cc";
const SOURCE: &str = include_str!("lock_counter.c");
const LIBRARY: &str = "lock_counter.so";
const COUNTS: &str = "counts";
/// The threads and the words of each, as lock_counter.c has them.
const THREADS: usize = 256;
const WORDS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds a mutex until the counts say that another thread found it taken.
    const CONTENDED: &str = r#"
        #include <fcntl.h>
        #include <pthread.h>
        #include <stdint.h>
        #include <stdlib.h>
        #include <unistd.h>
        static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        static void *other(void *unused) {
            pthread_mutex_lock(&mutex);
            pthread_mutex_unlock(&mutex);
            return unused;
        }
        int main(void) {
            int file = open(getenv("PLIMSOLL_LOCK_COUNTS"), O_RDONLY);
            uint64_t first = 0, second = 0;
            pthread_t thread;
            for (int times = 0; times < 1000; times++) {
                pthread_mutex_lock(&mutex);
                pthread_mutex_unlock(&mutex);
            }
            pthread_mutex_lock(&mutex);
            pthread_create(&thread, NULL, other, NULL);
            while (first + second == 0) {
                pread(file, &first, 8, 8);
                pread(file, &second, 8, 64 + 8);
            }
            pthread_mutex_unlock(&mutex);
            return pthread_join(thread, NULL);
        }
    "#;

    #[test]
    fn every_acquisition_is_counted_and_those_that_find_the_mutex_taken() {
        let counter = match LockCounter::build() {
            Ok(counter) => counter,
            Err(error) if format!("{error:#}").contains("cannot run") => {
                return plimsoll_testing::skipped!("{error:#}");
            }
            Err(error) => panic!("{error:#}"),
        };
        let (source, program) = (counter.file("contended.c"), counter.file("contended"));
        fs::write(&source, CONTENDED).expect("a temporary folder can be written to");
        let built = Command::new(COMPILER).arg("-pthread").arg("-o").args([&program, &source]).output();
        let built = built.expect("it ran a moment ago");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let [env, library, counts] = counter.prefix();
        let ran = Command::new(env).args([library, counts]).arg(&program).status().expect("env runs");
        assert!(ran.success(), "{ran}");
        let counts = counter.read().expect("the counts are there");
        assert_eq!((counts.acquired, counts.contended), (1_002, 1));
        assert!(counts.waited_ns > 0, "{counts:?}");
        assert_eq!(counts.since(counts), MutexCounts::default());
    }
}
