//! Watching what another fuzzer drops. The fuzzer is a script of steps, one at each time that it is
//! asked whether more may come; between two looks at its files it is asked at least once.

mod ends;
mod files;
mod places;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use ddfuzz::campaign::watch::{Producer, Producing, WatchSettings, watch};
use ddfuzz::campaign::{
    CampaignError, Deadline, Minimizing, Progress, Screen, Summary, When, new_campaign,
};
use ddfuzz::exec::{Program, Target, Way, bundled};
use ddfuzz::report::GroupView;
use ddfuzz::store::{Kind, KnownGroups, Reader, Store};

/// `crtplot` dies of it, and of its last byte alone.
pub const CRASH: &[u8] = b"xxxxxxxxxxxxxxxxt";

/// One step: `true` when it is done.
type Step = Box<dyn FnMut(&Room) -> bool>;

/// A directory with files that are dropped (`in`) and an output directory (`out`).
pub struct Room(tempfile::TempDir);

impl Room {
    pub fn new() -> Room {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        Room(dir.unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, and the directories above it.
    pub fn drop_file(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// The contents that were run, as their hashes.
    pub fn examined(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("out/triage.jsonl")).unwrap_or_default();
        let input = |line: &str| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            line["input"].as_str().unwrap().to_owned()
        };
        let whole = text
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'));
        whole.map(input).collect()
    }

    /// How often each group was seen, by kind.
    pub fn seen(&self, kind: Kind) -> Vec<u64> {
        let groups = Reader::open(&self.path("out")).unwrap().groups(kind);
        let seen = |group: &ddfuzz::store::Group| group.record.seen.values().sum();
        groups.unwrap().iter().map(seen).collect()
    }

    /// What the reproducers of all groups of crashes are.
    pub fn reproducers(&self) -> Vec<Vec<u8>> {
        reproducers(&self.path("out"))
    }
}

/// The best inputs known of all groups of crashes whose minimization has ended.
fn reproducers(out: &Path) -> Vec<Vec<u8>> {
    let Ok(reader) = Reader::open(out) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for group in reader.groups(Kind::Crash).unwrap() {
        let entries = reader.entries(Kind::Crash, &group.record.major.short());
        let ended = entries
            .unwrap()
            .into_iter()
            .find(|one| one.minimized.is_some());
        found.extend(ended.map(|entry| std::fs::read(entry.reproducer()).unwrap()));
    }
    found
}

/// The hash of a content, as the journal writes it.
pub fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// A fuzzer that does its steps, one after the other, and ends.
pub struct Steps {
    room: Rc<Room>,
    steps: VecDeque<Step>,
    began: Instant,
    /// What it says of its runs.
    pub runs: u64,
}

impl Steps {
    pub fn new(room: &Rc<Room>) -> Steps {
        Steps {
            room: room.clone(),
            steps: VecDeque::new(),
            began: Instant::now(),
            runs: 0,
        }
    }

    /// Then does this.
    #[must_use]
    pub fn then(mut self, mut step: impl FnMut(&Room) + 'static) -> Steps {
        self.steps.push_back(Box::new(move |room| {
            step(room);
            true
        }));
        self
    }

    /// Then waits for this.
    #[must_use]
    pub fn until(mut self, step: impl FnMut(&Room) -> bool + 'static) -> Steps {
        self.steps.push_back(Box::new(step));
        self
    }
}

impl Producer for Steps {
    fn poll(&mut self) -> Result<Producing, CampaignError> {
        assert!(
            self.began.elapsed() < Duration::from_secs(100),
            "a step waits in vain"
        );
        if let Some(step) = self.steps.front_mut()
            && step(&self.room)
        {
            self.steps.pop_front();
        }
        Ok(match self.steps.is_empty() {
            true => Producing::Ended,
            false => Producing::Running,
        })
    }

    fn runs(&self) -> u64 {
        self.runs
    }
}

/// A screen that keeps what it is told.
#[derive(Default)]
pub struct Told {
    pub notes: Vec<String>,
    pub groups: usize,
    pub minimized: usize,
}

impl Screen for Told {
    fn progress(&mut self, _: &Progress) {}

    fn group(&mut self, _: &GroupView) {
        self.groups += 1;
    }

    fn minimized(&mut self, _: &GroupView) {
        self.minimized += 1;
    }

    fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }
}

/// Watches `in`, of a bundled program.
pub fn settings(room: &Room, program: &str) -> WatchSettings {
    let target = Target::new(Program::Bundled(program.to_owned()));
    WatchSettings {
        sources: vec![room.path("in")],
        max_len: 1 << 20,
        leaks: false,
        time: None,
        deadline: Deadline::default(),
        until: Vec::new(),
        when: When::Inline,
        jobs: 2,
        minimizing: Minimizing::of_target(target, Way::Harness, "full"),
        known: KnownGroups::default(),
        waits_for_room: true,
    }
}

/// Watches with these settings, in a new campaign.
pub fn watched(
    room: &Room,
    settings: &WatchSettings,
    producer: &mut dyn Producer,
) -> (Result<Summary, CampaignError>, Told) {
    let minimizing = &settings.minimizing;
    let campaign = new_campaign(&minimizing.target, minimizing.way);
    let id = campaign.id.clone();
    let mut store = Store::create_or_resume(&room.path("out"), campaign.clone()).unwrap();
    if store.resumed() {
        store.begin(campaign).unwrap();
    }
    if let Program::Bundled(name) = &minimizing.target.program {
        let program = bundled::program(name).unwrap();
        store.install_program(name, program).unwrap();
    }
    let (store, mut told, stop) = (Mutex::new(store), Told::default(), AtomicBool::new(false));
    let summary = watch(&store, &id, settings, producer, &mut told, &stop);
    (summary, told)
}
