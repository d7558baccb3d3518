//! How inputs reach a server: one a request, or many.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use super::input::Input;
use super::inputs::Inputs;
use super::offered;

/// Where inputs are put.
pub(crate) enum Feed {
    /// One is in place at a time.
    One {
        /// Its place.
        input: Input,
        /// Where each run finds it as a file of its own, besides.
        offered: Option<PathBuf>,
    },
    /// Many, for a loop.
    Many(Inputs),
}

impl Feed {
    /// Puts the first of `inputs` in place, and as many of the others as one request takes.
    pub(crate) fn put(&mut self, inputs: &[&[u8]]) -> io::Result<()> {
        match self {
            Feed::One { input, offered } => {
                let bytes = inputs.first().copied().unwrap_or_default();
                if let Some(path) = offered {
                    offered::write(path, bytes)?;
                    input.distrust()?;
                }
                input.write(bytes)
            }
            Feed::Many(many) => many.write(inputs),
        }
    }

    /// Lets go of the files, which somebody may still hold open, for new ones.
    pub(crate) fn renew(&mut self) -> io::Result<()> {
        match self {
            Feed::One { input, .. } => input.renew()?,
            Feed::Many(many) => *many = Inputs::create()?,
        }
        Ok(())
    }

    /// What the server is born with.
    pub(crate) fn file(&self) -> &File {
        match self {
            Feed::One { input, .. } => input.stdin(),
            Feed::Many(many) => many.reader(),
        }
    }

    /// How far the last run read its stdin, in bytes; `None` where that cannot be told.
    pub(crate) fn read_so_far(&self) -> Option<u64> {
        match self {
            Feed::One { input, .. } => input.read_so_far(),
            Feed::Many(_) => None,
        }
    }
}
