//! The files of a version of the program, in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

/// File mode that marks a symbolic link in git's trees.
pub const SYMLINK: u32 = 0o120000;
/// File mode that marks a submodule in git's trees.
pub const SUBMODULE: u32 = 0o160000;
/// File mode that marks an executable file in git's trees.
pub const EXECUTABLE: u32 = 0o100755;

/// The content of a file in a version: an object of the git repository, or bytes that are not an
/// object (the file with some changes applied).
#[derive(Clone, Debug)]
pub enum Content {
    /// The content is the git object with this id, in hex digits.
    Object(Arc<str>),
    /// The content is these bytes, which come with their blake3 hash.
    Bytes(Arc<[u8]>, [u8; 32]),
}

impl Content {
    /// Makes the content of a file from bytes that are not stored as an object of the git
    /// repository.
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

/// An entry of a tree: the mode and the content of one file, symbolic link or submodule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Type and permissions of the file, as one number in git's format, such as 0o100644.
    pub mode: u32,
    /// The content of the file; of a symbolic link its target, of a submodule the id of its commit.
    pub content: Content,
}

/// All files of one version of the program: for each path, relative to the top directory, mode and
/// content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    entries: BTreeMap<Vec<u8>, Entry>,
}

impl Tree {
    /// Makes a tree from the paths and entries of all its files.
    pub fn of(entries: impl Iterator<Item = (Vec<u8>, Entry)>) -> Tree {
        Tree {
            entries: entries.collect(),
        }
    }

    /// Returns all files of the tree, each with path and entry, in the order of their paths.
    pub fn entries(&self) -> impl Iterator<Item = (&Vec<u8>, &Entry)> {
        self.entries.iter()
    }

    /// Returns the entry (mode and content) of the file at `path`; `None` if the tree has no such
    /// file.
    pub fn get(&self, path: &[u8]) -> Option<&Entry> {
        self.entries.get(path)
    }

    /// Puts a file with the mode and content of `entry` at `path` into the tree; an existing file
    /// at this path is replaced.
    pub fn put(&mut self, path: &[u8], entry: Entry) {
        self.entries.insert(path.to_vec(), entry);
    }

    /// Removes the file at `path` from the tree; does nothing if there is no such file.
    pub fn remove(&mut self, path: &[u8]) {
        self.entries.remove(path);
    }

    /// Returns a path below which the tree has files although it has a file at the path itself, so
    /// that it cannot be written to a disk; `None` if there is no such path.
    pub fn file_as_directory(&self) -> Option<&[u8]> {
        let of_file = |path: &'_ [u8]| self.entries.contains_key(path);
        self.entries.keys().find_map(|path| {
            let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
            slashes
                .map(|(at, _)| &path[..at])
                .find(|above| of_file(above))
        })
    }

    /// Returns a hash of the paths, modes and contents of all files, which is equal for versions
    /// with the same files. A git object and bytes count as different contents, even if the object
    /// consists of the same bytes.
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
