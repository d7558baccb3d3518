//! How much room there is on the file system of a path.

use nix::sys::statvfs::statvfs;
use std::path::Path;

use crate::files::folder;

/// Bytes that may still be written where `path` is, or would be; `None` where the system does not
/// say. A quota is not seen.
pub fn free(path: &Path) -> Option<u64> {
    let facts = statvfs(path)
        .or_else(|_| statvfs(folder::parent(path)))
        .ok()?;
    Some(facts.blocks_available() * facts.fragment_size())
}
