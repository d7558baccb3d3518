//! The output directory of a fuzz target.

use std::path::{Path, PathBuf};

use crate::exec::TargetRecord;
use crate::store::Reader;

/// Where results go unless the user says where.
const DEFAULT: &str = "ddfuzz-out";

/// The output directory: what the user names; else `ddfuzz-out`, or `ddfuzz-out-TARGET` where the
/// last campaign in `ddfuzz-out` was another target's.
pub fn choose(asked: &Path, name: &str, program: &Path) -> PathBuf {
    match asked == Path::new(DEFAULT) && is_of_another(asked, program) {
        true => PathBuf::from(format!("{DEFAULT}-{name}")),
        false => asked.to_owned(),
    }
}

fn is_of_another(out: &Path, program: &Path) -> bool {
    let record = last_target(out);
    let path = record.and_then(|record| record.program);
    // The profile or the machine it was built for may be another.
    path.is_some_and(|path| Path::new(&path.0).file_name() != program.file_name())
}

/// The target of the last campaign of an output directory.
pub fn last_target(out: &Path) -> Option<TargetRecord> {
    let campaigns = Reader::open(out).ok()?.campaigns().ok()?;
    campaigns.current?.target
}
