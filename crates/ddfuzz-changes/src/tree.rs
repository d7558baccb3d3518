//! The files of a version of the program, in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Mode of a symbolic link in a tree of git.
pub const SYMLINK: u32 = 0o120000;
/// Mode of a submodule in a tree of git.
pub const SUBMODULE: u32 = 0o160000;
/// Mode of an executable file in a tree of git.
pub const EXECUTABLE: u32 = 0o100755;

/// The content of a file: an object of the repository, or bytes that no object has.
#[derive(Clone, Debug)]
pub enum Content {
    /// The id of an object, in hex digits.
    Object(Arc<str>),
    /// Bytes, with their blake3 hash.
    Bytes(Arc<[u8]>, [u8; 32]),
}

impl Content {
    /// Makes the content of bytes that no object of the repository is known to have.
    pub fn of(bytes: Vec<u8>) -> Content {
        let hash = *blake3::hash(&bytes).as_bytes();
        Content::Bytes(bytes.into(), hash)
    }
}

impl PartialEq for Content {
    fn eq(&self, other: &Content) -> bool {
        match (self, other) {
            (Content::Object(one), Content::Object(other)) => one == other,
            (Content::Bytes(_, one), Content::Bytes(_, other)) => one == other,
            _ => false,
        }
    }
}

impl Eq for Content {}

impl std::hash::Hash for Content {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        match self {
            Content::Object(id) => id.hash(state),
            Content::Bytes(_, hash) => hash.hash(state),
        }
    }
}

/// A file: its mode, as git writes it, and its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Type and permissions of the file, like 0o100644.
    pub mode: u32,
    /// The content; of a symbolic link its target, of a submodule its commit.
    pub content: Content,
}

/// All files of a version, by their paths relative to the root of the tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    entries: BTreeMap<Vec<u8>, Entry>,
}

impl Tree {
    /// Makes a tree of files with their paths.
    pub fn of(entries: impl Iterator<Item = (Vec<u8>, Entry)>) -> Tree {
        Tree {
            entries: entries.collect(),
        }
    }

    /// Returns the files in the order of their paths.
    pub fn entries(&self) -> impl Iterator<Item = (&Vec<u8>, &Entry)> {
        self.entries.iter()
    }

    /// Returns the file at `path`; `None` if there is none.
    pub fn get(&self, path: &[u8]) -> Option<&Entry> {
        self.entries.get(path)
    }

    /// Puts a file at `path`, or replaces the file there.
    pub fn put(&mut self, path: &[u8], entry: Entry) {
        self.entries.insert(path.to_vec(), entry);
    }

    /// Removes the file at `path`.
    pub fn remove(&mut self, path: &[u8]) {
        self.entries.remove(path);
    }

    /// Checks whether a file of the tree is where another needs a directory.
    pub fn is_contradictory(&self) -> bool {
        let is_below_file = |path: &Vec<u8>| {
            let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
            slashes
                .into_iter()
                .any(|(at, _)| self.entries.contains_key(&path[..at]))
        };
        self.entries.keys().any(is_below_file)
    }

    /// Returns a hash of the paths, modes and contents, by which equal trees are recognized. As in
    /// comparisons, an object and bytes are different contents even if the object has these bytes.
    pub fn key(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        for (path, entry) in &self.entries {
            hasher.update(&(path.len() as u64).to_le_bytes());
            hasher.update(path);
            hasher.update(&entry.mode.to_le_bytes());
            match &entry.content {
                Content::Object(id) => hasher.update(id.as_bytes()),
                Content::Bytes(_, hash) => hasher.update(b"bytes").update(hash),
            };
        }
        *hasher.finalize().as_bytes()
    }
}
