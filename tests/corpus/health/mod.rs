//! Inputs that do not end well.

mod resumed;
mod slips;
mod sorted;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use ddfuzz::campaign::{Minimizing, Silent, When, new_campaign};
use ddfuzz::corpus::quarantine::{FailingInput, Quarantine, QuarantineSettings, quarantine};
use ddfuzz::exec::{Ended, Program, Target, Way, bundled};
use ddfuzz::minimize::log::ContentHash;
use ddfuzz::store::{Kind, KnownGroups, Reader, Store};

use crate::places::Place;

/// `crtplot` dies of it, and of its last byte alone.
pub const CRASH: &[u8] = b"xxxxxxxxxxxxxxxxt";

pub fn crtplot() -> Target {
    Target::new(Program::Bundled("crtplot".to_owned()))
}

pub fn ill(path: PathBuf, bytes: &[u8]) -> FailingInput {
    FailingInput {
        path,
        content: ContentHash::of(bytes),
        size: bytes.len() as u64,
        ended: Ended::Signal(11),
        passed_before: false,
    }
}

pub fn settings(target: &Target, way: Way) -> QuarantineSettings {
    QuarantineSettings {
        when: When::Inline,
        jobs: 2,
        minimizing: Minimizing::of_target(target.clone(), way, "full"),
        known: KnownGroups::default(),
    }
}

/// The output directory `out`, and its campaign.
pub fn store(place: &Place, out: &str, settings: &QuarantineSettings) -> (Mutex<Store>, String) {
    let minimizing = &settings.minimizing;
    let campaign = new_campaign(&minimizing.target, minimizing.way);
    let mut store = Store::create_or_resume(&place.path(out), campaign).unwrap();
    if let Program::Bundled(name) = &minimizing.target.program {
        let program = bundled::program(name).unwrap();
        store.install_program(name, program).unwrap();
    }
    let id = store.campaigns().current.as_ref().unwrap().id.clone();
    (Mutex::new(store), id)
}

/// Quarantines into `out`.
pub fn quarantined(
    place: &Place,
    out: &str,
    settings: &QuarantineSettings,
    ills: &[FailingInput],
) -> Quarantine {
    let (store, id) = store(place, out, settings);
    let stop = AtomicBool::new(false);
    quarantine(&store, &id, ills, settings, &mut Silent, &stop).unwrap()
}

/// All that was filed: kinds, entries, and what they were minimized to.
pub fn filed(place: &Place, out: &str) -> Vec<(Kind, String, Vec<u8>)> {
    let reader = Reader::open(&place.path(out)).unwrap();
    let mut filed = Vec::new();
    for kind in Kind::ALL {
        for group in reader.groups(kind).unwrap() {
            for entry in reader.entries(kind, &group.record.major.short()).unwrap() {
                let bytes = std::fs::read(entry.reproducer()).unwrap();
                filed.push((kind, entry.id.hash().to_owned(), bytes));
            }
        }
    }
    filed.sort();
    filed
}
