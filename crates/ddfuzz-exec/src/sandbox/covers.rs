//! Directories for temporary files that programs write to by fixed names: in a sandbox they are
//! the scratch directory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// Those of them that may be covered: nothing that a run needs stands in them. `paths` are needed;
/// of `texts` (arguments, variables) every part that begins so may be.
pub(crate) fn covers<'a>(
    paths: &[&Path],
    texts: impl Iterator<Item = &'a OsStr> + Clone,
) -> Vec<PathBuf> {
    let is_free = |directory: &&str| {
        let is_in = |path: &Path| path.starts_with(directory);
        let names = |text: &OsStr| {
            let mut parts = text.as_bytes().split(|byte| b":=,".contains(byte));
            parts.any(|part| is_in(Path::new(OsStr::from_bytes(part))))
        };
        !paths.iter().any(|path| is_in(path)) && !texts.clone().any(names)
    };
    let there = TEMPORARY.iter().filter(|one| Path::new(one).is_dir());
    there
        .filter(|one| is_free(one))
        .map(PathBuf::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covered(paths: &[&str], texts: &[&str]) -> Vec<PathBuf> {
        let paths: Vec<&Path> = paths.iter().map(Path::new).collect();
        covers(&paths, texts.iter().map(OsStr::new))
    }

    #[test]
    fn what_a_run_needs_is_not_covered() {
        let both: Vec<PathBuf> = TEMPORARY.map(PathBuf::from).into();
        assert_eq!(
            covered(&["/usr/bin/nvi", "/tmpfs/x"], &["-e", "/var"]),
            both
        );
        assert_eq!(covered(&["/tmp/program"], &[]), both[1..]);
        assert_eq!(covered(&[], &["--config=/var/tmp/x"]), both[..1]);
        assert_eq!(covered(&[], &["/bin:/tmp/bin"]), both[1..]);
    }
}
