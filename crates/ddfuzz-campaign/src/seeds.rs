//! Seeds: the inputs that a campaign mutates, read from files of the user's, which are only read.
//!
//! What counts is what the files hold: seeds are ordered by the hash of their content, and each
//! content is one seed, so that neither names nor the order of directories change a campaign.

use std::collections::{BTreeMap, HashSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ddfuzz_model::files::regular::{self, Unread};
use ddfuzz_store::hash_of;

/// Most bytes of all seeds together, and most seeds; of more, those with the greatest hashes are
/// left out.
const MOST_BYTES: u64 = 256 << 20;
const MOST_SEEDS: usize = 1 << 18;

/// One seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    /// The name of its content: the first 16 hex digits of its blake3.
    pub hash: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// The seeds of a campaign, by hash, each content once. A copy shares them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seeds(Arc<Vec<Seed>>);

/// Files that gave no seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkippedSeeds {
    /// Longer than the greatest length.
    pub too_long: u64,
    /// Of a content that another file has, too.
    pub again: u64,
    /// Fifos, sockets, devices, and links that lead nowhere, below a directory.
    pub no_files: u64,
    /// Beyond 256 MiB or 2^18 seeds.
    pub too_many: u64,
}

/// A path that gives no seeds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the seeds in {} cannot be read: {why}", path.display())]
pub struct SeedError {
    /// Which.
    pub path: PathBuf,
    /// What keeps them away.
    pub why: Unread,
}

impl Seeds {
    /// Reads the files at `paths` of at most `max_len` bytes, and those in directories, however
    /// deep. Links are followed, and each directory is entered once.
    ///
    /// # Errors
    /// When a path that is named is neither a file nor a directory, or anything below one cannot
    /// be read.
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

    /// Seeds that are in memory already.
    pub fn of<B: Into<Vec<u8>>>(contents: impl IntoIterator<Item = B>) -> Seeds {
        let mut gathered = Gathered::new(u64::MAX);
        for bytes in contents {
            gathered.add(bytes.into());
        }
        gathered.end().0
    }

    /// The seeds, by hash.
    pub fn all(&self) -> &[Seed] {
        &self.0
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The place of the seed whose content has this name.
    pub fn place_of(&self, hash: &str) -> Option<usize> {
        let place = self.0.binary_search_by(|seed| seed.hash.as_str().cmp(hash));
        place.ok()
    }

    /// The name of this set of seeds: a blake3, in hex, over their contents in order.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"ddfuzz-seeds-1");
        for seed in self.all() {
            hasher.update(&(seed.bytes.len() as u64).to_le_bytes());
            hasher.update(&seed.bytes);
        }
        hasher.finalize().to_hex().to_string()
    }
}

/// Seeds while they are read.
struct Gathered {
    max_len: u64,
    found: BTreeMap<String, Vec<u8>>,
    bytes: u64,
    /// The least hash that was left out for want of room: none from there on is taken any more, or
    /// the order of reading would decide.
    end: Option<String>,
    left_out: SkippedSeeds,
}

impl Gathered {
    fn new(max_len: u64) -> Gathered {
        Gathered {
            max_len,
            found: BTreeMap::new(),
            bytes: 0,
            end: None,
            left_out: SkippedSeeds::default(),
        }
    }

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
                    // A link that leads nowhere or round in a circle, or what has vanished.
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

/// The identity of a directory, by whatever name it was reached.
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
