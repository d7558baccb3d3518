//! Corpus directories for libFuzzer: the user's, or a temporary copy without the inputs that crash
//! the harness.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::cli::cargo::project::libfuzzer_name;
use crate::exec::{lock_directory, lock_of_abandoned, temporary_directories};
use crate::files::{atomic, regular};

/// Maximum length of a corpus file that is read, in bytes; longer ones are skipped.
const LONGEST: u64 = 1 << 30;

/// The corpus directories of a campaign whose engine is libFuzzer.
///
/// libFuzzer first runs its whole corpus, and would crash on the same input after each restart.
/// After the first such crash, libFuzzer uses a copy without the crashing inputs; new inputs in the
/// copy are written back to the user's corpus.
pub struct Corpus {
    own: PathBuf,
    /// Further corpus directories of the campaign, which libFuzzer reads but does not write to.
    more: Vec<PathBuf>,
    copy: Option<CorpusCopy>,
}

/// A temporary copy of all corpus directories: each distinct input once, under the name that
/// libFuzzer gives it.
struct CorpusCopy {
    dir: Scratch,
    /// Names of files in the copy that need not be copied to the user's corpus: they came from it,
    /// or were copied to it before.
    known: HashSet<OsString>,
    /// Names of crashing inputs that were removed from the temporary copy of the corpus.
    deadly: HashSet<String>,
}

impl Corpus {
    /// Opens the corpus in `own`, to which libFuzzer writes, creating the directory if needed;
    /// `more` are further directories that it reads.
    pub fn open(own: PathBuf, more: Vec<PathBuf>) -> io::Result<Corpus> {
        std::fs::create_dir_all(&own)?;
        Ok(Corpus {
            own,
            more,
            copy: None,
        })
    }

    /// Returns the corpus directories to pass to libFuzzer, which writes new inputs to the first.
    pub fn dirs(&self) -> Vec<&Path> {
        match &self.copy {
            Some(copy) => vec![copy.dir.path()],
            None => {
                let more = self.more.iter().map(PathBuf::as_path);
                std::iter::once(self.own.as_path()).chain(more).collect()
            }
        }
    }

    /// Removes the crashing input `input` from the temporary copy of the corpus, which the first
    /// call creates; the user's corpus stays as it is. Returns true if this or an earlier call has
    /// removed it, so that a restarted libFuzzer gets further; false if the copy does not have it.
    pub fn leave_out(&mut self, input: &[u8]) -> io::Result<bool> {
        let copy = match &mut self.copy {
            Some(copy) => copy,
            none => none.insert(CorpusCopy::of(&self.own, &self.more)?),
        };
        copy.remove(input)
    }

    /// Copies the inputs that libFuzzer added to the temporary copy of the corpus to the user's
    /// corpus; does nothing if there is no copy.
    pub fn write_back(&mut self) -> io::Result<()> {
        let Some(copy) = &mut self.copy else {
            return Ok(());
        };
        for entry in std::fs::read_dir(copy.dir.path())? {
            let entry = entry?;
            let name = entry.file_name();
            // Known files are skipped early, because each write is synced and takes long.
            if copy.known.contains(&name) {
                continue;
            }
            let Ok(bytes) = regular::read(&entry.path(), LONGEST) else {
                continue;
            };
            if libfuzzer_name(&bytes).as_str() != name {
                continue; // It is being written.
            }
            match atomic::create_new(&self.own.join(&name), &bytes) {
                Err(error) if !error.is_existing() => {
                    return Err(io::Error::other(error.to_string()));
                }
                _ => copy.known.insert(name),
            };
        }
        Ok(())
    }
}

impl CorpusCopy {
    fn of(own: &Path, more: &[PathBuf]) -> io::Result<CorpusCopy> {
        let dir = Scratch::new()?;
        let mut known = HashSet::new();
        for from in std::iter::once(own).chain(more.iter().map(PathBuf::as_path)) {
            each(from, &mut |bytes| {
                let name = OsString::from(libfuzzer_name(bytes));
                let path = dir.path().join(&name);
                match known.insert(name) {
                    true => std::fs::write(path, bytes),
                    false => Ok(()),
                }
            })?;
        }
        Ok(CorpusCopy {
            dir,
            known,
            deadly: HashSet::new(),
        })
    }

    /// Removes the input `input` from the temporary copy. If no file has exactly this content,
    /// removes all files that begin with it, because with `-max_len` libFuzzer runs only the
    /// beginning of a longer file. Returns true if this call or an earlier one has removed a file,
    /// and false if there was none; always false for the empty input.
    fn remove(&mut self, input: &[u8]) -> io::Result<bool> {
        let name = libfuzzer_name(input);
        let path = self.dir.path().join(&name);
        if input.is_empty() {
            // libFuzzer begins with it, whether the corpus has it or not.
            return Ok(false);
        }
        if path.is_file() {
            std::fs::remove_file(path)?;
            self.deadly.insert(name);
            return Ok(true);
        }
        if self.deadly.contains(&name) {
            // Each of several processes that were started together crashes on this input.
            return Ok(true);
        }
        let mut found = false;
        for entry in std::fs::read_dir(self.dir.path())? {
            let path = entry?.path();
            let begins = |bytes: Vec<u8>| bytes.starts_with(input);
            if regular::read(&path, LONGEST).is_ok_and(begins) {
                std::fs::remove_file(path)?;
                found = true;
            }
        }
        if found {
            self.deadly.insert(name);
        }
        Ok(found)
    }
}

/// Calls `what` with the content of each file, below the directory `dir`, that libFuzzer would read
/// as an input. Skips hidden directories, and files that are unreadable or longer than 1 GiB.
fn each(dir: &Path, what: &mut impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        // Links to directories may lead in circles.
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_dir && !entry.file_name().as_encoded_bytes().starts_with(b".") {
            // A directory that vanishes meanwhile is no part of the corpus any more.
            let _ = std::fs::read_dir(&path).and_then(|_| each(&path, what));
        } else if !is_dir && let Ok(bytes) = regular::read(&path, LONGEST) {
            what(&bytes)?;
        }
    }
    Ok(())
}

impl Drop for Corpus {
    fn drop(&mut self) {
        // Inputs that cannot be written back are not lost: crashing ones are in the output
        // directory, and others will be found again.
        let _ = self.write_back();
    }
}

const PREFIX: &str = "ddfuzz-corpus-";
const INPUTS: &str = "inputs";

/// A temporary directory for inputs, removed on drop. Directories of this kind that killed
/// processes have left are removed when the next one is created.
pub struct Scratch {
    inputs: PathBuf,
    // Removed while it is still locked.
    _dir: TempDir,
    _lock: File,
}

impl Scratch {
    /// Creates a directory for inputs below the system's temporary directory.
    pub fn new() -> io::Result<Scratch> {
        Scratch::within(&std::env::temp_dir())
    }

    /// Creates a locked temporary directory for inputs in the directory `root`, and removes other
    /// such directories there that killed processes have left.
    pub fn within(root: &Path) -> io::Result<Scratch> {
        remove_stale(root);
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir_in(root)?;
        let lock = lock_directory(dir.path())?;
        let inputs = dir.path().join(INPUTS);
        std::fs::create_dir(&inputs)?;
        Ok(Scratch {
            inputs,
            _dir: dir,
            _lock: lock,
        })
    }

    pub fn path(&self) -> &Path {
        &self.inputs
    }
}

fn remove_stale(root: &Path) {
    for entry in temporary_directories(root, PREFIX) {
        if let Some(_lock) = lock_of_abandoned(&entry.path()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(dir: &Path) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        each(dir, &mut |bytes| {
            all.push(bytes.to_vec());
            Ok(())
        })
        .unwrap();
        all.sort();
        all
    }

    #[test]
    fn the_copy_has_what_stands_in_folders_and_lacks_each_input_that_is_deadly() {
        let (own, more) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir(own.path().join("deep")).unwrap();
        for (path, bytes) in [("a", "good"), ("deep/b", "bad"), ("c", "long and more")] {
            std::fs::write(own.path().join(path), bytes).unwrap();
        }
        std::os::unix::fs::symlink("nowhere", own.path().join("link")).unwrap();
        std::fs::write(more.path().join("d"), "seed").unwrap();
        let more_dirs = vec![more.path().to_owned()];
        let mut corpus = Corpus::open(own.path().to_owned(), more_dirs).unwrap();
        assert_eq!(corpus.dirs(), [own.path(), more.path()]);
        assert!(corpus.leave_out(b"bad").unwrap());
        let copy = corpus.dirs()[0].to_owned();
        assert_eq!(inputs(&copy), [&b"good"[..], b"long and more", b"seed"]);
        // With `-max_len`, only the beginning of the file was run.
        assert!(corpus.leave_out(b"long").unwrap());
        // Each of several processes that were started together crashes on this input.
        assert!(corpus.leave_out(b"bad").unwrap());
        assert!(!corpus.leave_out(b"mutated").unwrap());
        assert!(!corpus.leave_out(b"").unwrap());
        assert_eq!(corpus.dirs(), [copy.as_path()]);
        assert_eq!(inputs(&copy), [&b"good"[..], b"seed"]);
        drop(corpus);
        assert!(!copy.exists());
        assert_eq!(inputs(own.path()).len(), 3);
    }

    #[test]
    fn what_is_new_in_the_copy_is_handed_back_once_it_is_whole() {
        let own = tempfile::tempdir().unwrap();
        std::fs::write(own.path().join("a"), "deadly").unwrap();
        let mut corpus = Corpus::open(own.path().to_owned(), Vec::new()).unwrap();
        corpus.leave_out(b"deadly").unwrap();
        let copy = corpus.dirs()[0].to_owned();
        std::fs::write(copy.join(libfuzzer_name(b"new")), "n").unwrap();
        corpus.write_back().unwrap();
        assert_eq!(inputs(own.path()), [b"deadly"]);
        std::fs::write(copy.join(libfuzzer_name(b"new")), "new").unwrap();
        corpus.write_back().unwrap();
        assert_eq!(inputs(own.path()), [&b"deadly"[..], b"new"]);
        assert!(own.path().join(libfuzzer_name(b"new")).is_file());
    }

    #[test]
    fn what_a_killed_ddfuzz_left_is_removed_and_what_is_in_use_is_not() {
        let root = tempfile::tempdir().unwrap();
        let left = root.path().join("ddfuzz-corpus-left00");
        std::fs::create_dir_all(left.join(INPUTS)).unwrap();
        drop(lock_directory(&left).unwrap());
        let users = root.path().join("ddfuzz-corpus-mine00");
        std::fs::create_dir_all(&users).unwrap();
        std::fs::write(users.join("lock"), "").unwrap();
        let one = Scratch::within(root.path()).unwrap();
        let other = Scratch::within(root.path()).unwrap();
        assert!(!left.exists() && one.path().is_dir() && other.path().is_dir());
        drop((one, other));
        std::fs::remove_dir_all(users).unwrap();
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
    }
}
