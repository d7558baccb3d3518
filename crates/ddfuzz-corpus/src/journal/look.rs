//! A journal that is only looked into, whoever's it is.

use std::collections::HashMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{Place, Seen, read_whole, scan};
use crate::ContentId;
use ddfuzz_model::files::FileError;

/// What a journal says of the first runs of contents. Nothing in it is changed.
#[derive(Debug)]
pub struct Look {
    path: PathBuf,
    file: File,
    places: HashMap<ContentId, Place>,
}

impl Look {
    /// Looks into the journal at `path`; `None` where there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn into(path: &Path) -> Result<Option<Look>, FileError> {
        let file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file.map_err(FileError::at("open", path))?,
        };
        let read = || FileError::at("read", path);
        let Some(identity) = scan::identity_of(&file).map_err(read())? else {
            return Ok(None);
        };
        let again = File::open(path).map_err(FileError::at("open", path))?;
        let mut places = HashMap::new();
        let each = &mut |place, head: super::Head| {
            if head.round == 0 {
                places.insert(head.content, place);
            }
        };
        scan::scan(&again, &identity, each).map_err(read())?;
        Ok(Some(Look {
            path: path.to_owned(),
            file,
            places,
        }))
    }

    /// What was seen of this content; `None` where it was not run.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn seen(&self, content: &ContentId) -> Result<Option<Seen>, FileError> {
        let Some(place) = self.places.get(content) else {
            return Ok(None);
        };
        let seen = read_whole(&self.file, *place).map_err(FileError::at("read", &self.path))?;
        Ok(Some(seen.1))
    }
}
