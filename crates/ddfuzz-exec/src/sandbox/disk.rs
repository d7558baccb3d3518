//! What a target has put into its scratch directory, where no mount bounds it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::walls::{DISK, FILES};

/// Whether what stands below `directory` takes more room than a target may have. What is open
/// without a name is not seen, nor what lies deeper than a path can say.
pub(crate) fn is_overfull(directory: &Path) -> bool {
    let (mut bytes, mut files) = (0u64, 0u64);
    let mut left: Vec<PathBuf> = vec![directory.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            files += 1;
            if let Ok(facts) = entry.metadata() {
                bytes = bytes.saturating_add(facts.blocks().saturating_mul(512));
                if facts.is_dir() {
                    left.push(entry.path());
                }
            }
            if bytes > DISK || files > FILES {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::super::private_dir::PrivateDir;
    use super::*;

    #[test]
    fn many_files_are_too_many_and_holes_take_no_room() {
        let private = PrivateDir::get().unwrap();
        let top = private.fresh("test");
        let below = top.join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        let file = std::fs::File::create(below.join("hole")).unwrap();
        file.set_len(2 * DISK).unwrap();
        std::os::unix::fs::symlink("/", below.join("everything")).unwrap();
        assert!(!is_overfull(&top));
        for number in 0..=FILES {
            std::fs::File::create(below.join(number.to_string())).unwrap();
        }
        assert!(is_overfull(&top));
    }
}
