//! What the records of a journal hold for.

use ddfuzz_campaign::{CampaignError, identity};
use ddfuzz_exec::{Target, Way};

/// The version of what features are numbered by, and of the records; another one makes another
/// identity.
const VERSION: u32 = 1;

/// Names a target as far as what its runs reach depends on it: program, arguments, environment,
/// limits ([`identity`]), the way of execution and the number of instrumented places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalIdentity([u8; 32]);

impl JournalIdentity {
    /// That of `target` as `way` runs it, which tells of so many places; `None` where it tells no
    /// coverage.
    ///
    /// # Errors
    /// When the program cannot be read.
    pub fn of(
        target: &Target,
        way: Way,
        places: Option<usize>,
    ) -> Result<JournalIdentity, CampaignError> {
        let places = places.map_or("none".to_owned(), |places| places.to_string());
        let text = format!("{VERSION}\n{}\n{way}\n{places}", identity(target)?);
        Ok(JournalIdentity(*blake3::hash(text.as_bytes()).as_bytes()))
    }

    /// The one of these bytes.
    pub(super) fn from_bytes(bytes: [u8; 32]) -> JournalIdentity {
        JournalIdentity(bytes)
    }

    /// As bytes.
    pub(super) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}
