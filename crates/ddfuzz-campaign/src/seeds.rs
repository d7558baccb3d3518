//! Seeds: the inputs that a campaign mutates, read from the user's files.
//!
//! Seeds are ordered by the hash of their content, and each content is one seed, so that neither
//! file names nor the order of directories change a campaign.

use std::collections::{BTreeMap, HashSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ddfuzz_model::files::regular::{self, Unread};
use ddfuzz_store::hash_of;

/// Greatest total size of all seeds, in bytes. If there are more, the seeds with the greatest
/// hashes are left out.
const MOST_BYTES: u64 = 256 << 20;
/// Greatest number of seeds. If there are more, those with the greatest hashes are left out.
const MOST_SEEDS: usize = 1 << 18;

/// A seed: an input that the user gives, which the campaign runs and mutates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    /// The first 16 hex digits of the blake3 hash of the seed's content.
    pub hash: String,
    /// Content of the seed: the bytes of the input.
    pub bytes: Vec<u8>,
}

/// The seeds of a campaign, in the order of their hashes, each content once. Clones share the
/// contents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seeds(Arc<Vec<Seed>>);

/// Number of files and other paths that gave no seed, for each reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkippedSeeds {
    /// Number of files that gave no seed, because they are longer than the greatest length of an
    /// input.
    pub too_long: u64,
    /// Number of files that gave no seed, because a seed with the same content was read before.
    pub again: u64,
    /// Number of fifos, sockets, devices, broken links and vanished files in the directories of
    /// seeds.
    pub no_files: u64,
    /// Number of files that were left out because all seeds together would exceed 256 MiB or 2^18
    /// in number.
    pub too_many: u64,
}

/// Why seeds cannot be read from a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the seeds in {} cannot be read: {why}", path.display())]
pub struct SeedError {
    /// Path of the file or directory from which seeds cannot be read.
    pub path: PathBuf,
    /// Why the file or directory of seeds cannot be read.
    pub why: Unread,
}

impl Seeds {
    /// Reads the seeds of a campaign from files of at most `max_len` bytes: those at `paths`, and
    /// all files below directories. Links are followed, and each directory is entered once. Returns
    /// the seeds, and how many files gave none.
    ///
    /// # Errors
    /// When a path is neither a file nor a directory, or a file or directory cannot be read.
    pub fn read(paths: &[PathBuf], max_len: u64) -> Result<(Seeds, SkippedSeeds), SeedError> {
        let mut gathered = Gathered::new(max_len);
        for path in paths {
            let named = path.metadata().map_err(|error| refused(path, &error))?;
            if let (false, Some(kind)) = (named.is_dir(), regular::special(named.file_type())) {
                return Err(at(path, Unread::NotAFile(kind)));
            }
            gathered.below(path.clone(), &named)?;
        }
        Ok(gathered.end())
    }

    /// Makes seeds of contents in memory: sorts them by hash, and drops repeated ones.
    pub fn of<B: Into<Vec<u8>>>(contents: impl IntoIterator<Item = B>) -> Seeds {
        let mut gathered = Gathered::new(u64::MAX);
        for bytes in contents {
            gathered.add(bytes.into());
        }
        gathered.end().0
    }

    /// Returns the seeds, in the order of their hashes.
    pub fn all(&self) -> &[Seed] {
        &self.0
    }

    /// Returns the number of seeds.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are no seeds.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the index of the seed whose content has the hash `hash` among all seeds; `None` if
    /// there is no such seed.
    pub fn place_of(&self, hash: &str) -> Option<usize> {
        let place = self.0.binary_search_by(|seed| seed.hash.as_str().cmp(hash));
        place.ok()
    }

    /// Returns the blake3 hash, in hex, of the contents of all seeds; it depends on the set of
    /// contents only, not on the names and order of files.
    pub fn digest(&self) -> String {
        let contents = self.all().iter().map(|seed| &seed.bytes[..]);
        hash_all(b"ddfuzz-seeds-1", contents)
    }
}

/// Returns the blake3 hash, in hex, of `texts` in their order, each hashed with its length.
/// `purpose` is hashed first, so that equal texts get different hashes for different uses.
pub(crate) fn hash_all<'a>(purpose: &[u8], texts: impl Iterator<Item = &'a [u8]>) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(purpose);
    for text in texts {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text);
    }
    hasher.finalize().to_hex().to_string()
}

/// What was read so far while the files of seeds are read: the seeds, and how many files gave none.
#[derive(Default)]
struct Gathered {
    max_len: u64,
    /// Contents of the seeds read so far, by hash.
    found: BTreeMap<String, Vec<u8>>,
    /// Total size, in bytes, of the seeds read so far.
    bytes: u64,
    /// The smallest hash of a seed that was left out because of the limits on size and number.
    /// Seeds with greater hashes are left out, too, so that the result does not depend on the order
    /// of reading. `None` while no seed was left out.
    end: Option<String>,
    left_out: SkippedSeeds,
}

impl Gathered {
    fn new(max_len: u64) -> Gathered {
        Gathered {
            max_len,
            ..Gathered::default()
        }
    }

    /// Adds the file at `path` as a seed; if `path` is a directory, adds all files below it.
    /// `named`: metadata of `path`, or if it is a link, of what it leads to.
    fn below(&mut self, path: PathBuf, named: &Metadata) -> Result<(), SeedError> {
        if !named.is_dir() {
            return self.file(&path);
        }
        let mut entered = HashSet::from([identity(named)]);
        let mut directories = vec![path];
        while let Some(directory) = directories.pop() {
            let entries = std::fs::read_dir(&directory);
            for entry in entries.map_err(|error| refused(&directory, &error))? {
                let entry = entry.map_err(|error| refused(&directory, &error))?;
                let path = entry.path();
                let facts = match path.metadata() {
                    Ok(facts) => facts,
                    // A broken or circular link, or a vanished file.
                    Err(_) if path.is_symlink() || !path.exists() => {
                        self.left_out.no_files += 1;
                        continue;
                    }
                    Err(error) => return Err(refused(&path, &error)),
                };
                if facts.is_file() {
                    self.file(&path)?;
                } else if !facts.is_dir() {
                    self.left_out.no_files += 1;
                } else if entered.insert(identity(&facts)) {
                    directories.push(path);
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path) -> Result<(), SeedError> {
        match regular::read(path, self.max_len.min(MOST_BYTES)) {
            Ok(bytes) => self.add(bytes),
            Err(Unread::TooLarge { .. }) => self.left_out.too_long += 1,
            Err(why) => return Err(at(path, why)),
        }
        Ok(())
    }

    fn add(&mut self, bytes: Vec<u8>) {
        let (hash, length) = (hash_of(&bytes), bytes.len() as u64);
        if self.found.contains_key(&hash) {
            self.left_out.again += 1;
            return;
        }
        if self.end.as_ref().is_some_and(|end| hash >= *end) {
            self.left_out.too_many += 1;
            return;
        }
        self.found.insert(hash, bytes);
        self.bytes += length;
        while (self.bytes > MOST_BYTES || self.found.len() > MOST_SEEDS)
            && let Some((hash, last)) = self.found.pop_last()
        {
            self.bytes -= last.len() as u64;
            self.end = Some(hash);
            self.left_out.too_many += 1;
        }
    }

    fn end(self) -> (Seeds, SkippedSeeds) {
        let seeds = self.found.into_iter();
        let seeds = seeds.map(|(hash, bytes)| Seed { hash, bytes });
        (Seeds(Arc::new(seeds.collect())), self.left_out)
    }
}

/// Returns the device number and inode number of a directory, which identify it.
fn identity(facts: &Metadata) -> (u64, u64) {
    (facts.dev(), facts.ino())
}

fn refused(path: &Path, error: &std::io::Error) -> SeedError {
    match error.kind() {
        std::io::ErrorKind::NotFound => at(path, Unread::Missing),
        _ => at(path, Unread::Refused(error.to_string())),
    }
}

fn at(path: &Path, why: Unread) -> SeedError {
    SeedError {
        path: path.to_owned(),
        why,
    }
}
