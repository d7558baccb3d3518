//! What became of the files.

use crate::listing::Report;
use crate::{Amount, Aside};

/// What became of the files of a corpus, before any was chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All inputs that were there: contents, duplicates, oversized and unread ones.
    pub before: Amount,
    /// Files whose content another file has, too: all but one of each content.
    pub duplicates: Amount,
    /// Files longer than the greatest length.
    pub oversized: Aside,
    /// Files that could not be read.
    pub unread: Aside,
    /// Files that were listed and gone when they were to be read.
    pub vanished: Aside,
    /// What was met besides inputs.
    pub listing: Report,
}
