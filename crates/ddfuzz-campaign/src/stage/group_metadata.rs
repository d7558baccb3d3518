//! What a testcase of LibAFL says of its group.

use serde::{Deserialize, Serialize};

use ddfuzz_store::EntryId;
use ddfuzz_triage::{Class, Keys};

/// Of a solution: what it is, and where it is filed. By it the stage knows that it was handed in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupMetadata {
    /// Its entry in the output directory.
    pub id: EntryId,
    /// What kind of death.
    pub class: Class,
    /// Which bug, and which way into it.
    pub keys: Keys,
}

libafl_bolts::impl_serdeany!(GroupMetadata);
