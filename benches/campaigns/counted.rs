//! The file in which a target counts its runs (`parsers/planted.c`), so that all tools are counted
//! alike, whatever they say of themselves.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The file.
pub struct Counted {
    path: PathBuf,
}

/// What stands in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Runs that have begun.
    pub runs: u64,
    /// In which of them the bug happened first, from 1; `None` while it has not.
    pub first: Option<u64>,
}

impl Counted {
    /// Makes it in `folder`, with no runs, for anybody to write: where ddfuzz is root, its targets
    /// are not. The folders above must let them pass.
    ///
    /// # Errors
    /// Those of writing.
    pub fn create(folder: &Path) -> io::Result<Counted> {
        let path = folder.join("runs");
        fs::write(&path, [0; 16])?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666))?;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
        Ok(Counted { path })
    }

    /// For the variable RUNS.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How far it is.
    ///
    /// # Errors
    /// Those of reading; a file that has become shorter.
    pub fn count(&self) -> io::Result<Count> {
        let bytes = fs::read(&self.path)?;
        let word = |at: usize| {
            let word = bytes.get(at..at + 8).and_then(|word| word.try_into().ok());
            word.map(u64::from_ne_bytes)
                .ok_or(io::ErrorKind::UnexpectedEof)
        };
        Ok(Count {
            runs: word(0)?,
            first: Some(word(8)?).filter(|first| *first > 0),
        })
    }
}
