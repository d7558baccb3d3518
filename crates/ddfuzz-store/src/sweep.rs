//! Removing what killed writers left.

use std::fs;
use std::path::Path;

use ddfuzz_model::files::atomic;

/// Removes all temporary files below `root`, which the caller has locked. Links are not followed.
/// What cannot be listed or removed stays: it is in nobody's way.
pub(super) fn sweep(root: &Path) {
    let Ok(entries) = fs::read_dir(root) else {
        return;
    };
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => sweep(&entry.path()),
            Ok(kind) if kind.is_file() && atomic::is_temporary(&entry.file_name()) => {
                let _ = fs::remove_file(entry.path());
            }
            _ => {}
        }
    }
}
