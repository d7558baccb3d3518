//! Opens an output directory for a fuzzer that is not ours.

use std::path::Path;
use std::time::SystemTime;

use super::local_desk::LocalDesk;
use crate::error::CampaignError;
use ddfuzz_exec::{Limits, Program, Target, TargetRecord, Way, bundled};
use ddfuzz_model::files::OsText;
use ddfuzz_store::{Campaign, Store, hash_of, rfc3339};

impl LocalDesk<Store> {
    /// The desk of an output directory, which is made where there is none; one of the same target
    /// is gone on with.
    ///
    /// # Errors
    /// A directory of something else, of another target, or in use by another process; one that
    /// cannot be read or written. Nothing in it is changed then.
    pub fn open(root: &Path, target: &Target, way: Way) -> Result<LocalDesk<Store>, CampaignError> {
        let mut store = Store::create_or_resume(root, new_campaign(target, way))?;
        let campaign = match &store.campaigns().current {
            Some(campaign) => campaign.clone(),
            // Made so just now.
            None => new_campaign(target, way),
        };
        let now = TargetRecord::new(target, way);
        let same = |record: &TargetRecord| now.same_target(record);
        if !campaign.target.as_ref().is_none_or(same) {
            return Err(CampaignError::OtherTarget {
                path: root.to_owned(),
            });
        }
        if let Program::Bundled(name) = &target.program
            && let Some(program) = bundled::program(name)
        {
            store.install_program(name, program)?;
        }
        Ok(LocalDesk::new(store, &campaign.id)?)
    }
}

/// A new campaign of this process on this target, with an id that no other has.
pub fn new_campaign(target: &Target, way: Way) -> Campaign {
    Campaign {
        target: Some(TargetRecord::new(target, way)),
        ways: vec![way],
        ..new_study(target.limits)
    }
}

/// A new campaign of this process on many targets, with an id that no other has.
pub fn new_study(limits: Limits) -> Campaign {
    let now = SystemTime::now();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim().to_owned();
    let moment = now.duration_since(SystemTime::UNIX_EPOCH);
    let moment = moment.unwrap_or_default().as_nanos();
    let unique = format!("{host} {} {moment}", std::process::id());
    Campaign {
        id: hash_of(unique.as_bytes()),
        command_line: std::env::args_os().map(OsText).collect(),
        target: None,
        limits: Some(limits),
        ways: Vec::new(),
        builds: Vec::new(),
        settings: None,
        seed: None,
        started: rfc3339(now),
        host,
    }
}
