//! Free space of file systems.

use nix::sys::statvfs::statvfs;
use std::path::Path;

use crate::files::folder;

/// Returns the number of free bytes on the file system of `path` (of its parent folder if `path`
/// does not exist); `None` if the system does not tell. Quotas are not considered.
pub fn free(path: &Path) -> Option<u64> {
    let facts = statvfs(path)
        .or_else(|_| statvfs(folder::parent(path)))
        .ok()?;
    Some(facts.blocks_available() * facts.fragment_size())
}
