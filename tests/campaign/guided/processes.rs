//! The processes of a campaign, found by their parents, and what they hold.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::ddfuzz::Desk;

/// What has not happened for so long does not happen.
const LONGEST: Duration = Duration::from_secs(90);

/// A campaign that runs while the test does something to it. It is killed with the test.
pub struct Running {
    child: Child,
    name: String,
}

impl Running {
    /// Starts ddfuzz with these words in a process group of its own; what it says goes to the
    /// desk's files `NAME.out` and `NAME.err`.
    pub fn start(desk: &Desk, name: &str, words: &str) -> Running {
        let file = |ending: &str| File::create(desk.file(&format!("{name}.{ending}"))).unwrap();
        let mut command = desk.command(env!("CARGO_BIN_EXE_ddfuzz"));
        command
            .args(words.split_whitespace())
            .stdin(Stdio::null())
            .stdout(file("out"))
            .stderr(file("err"))
            .process_group(0);
        Running {
            child: command.spawn().unwrap(),
            name: name.to_owned(),
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has said on standard error.
    pub fn said(&self, desk: &Desk) -> String {
        let said = desk.read(&format!("{}.err", self.name));
        String::from_utf8_lossy(&said).into_owned()
    }

    /// Its result.
    #[track_caller]
    pub fn result(&self, desk: &Desk) -> serde_json::Value {
        let out = desk.read(&format!("{}.out", self.name));
        serde_json::from_slice(&out).unwrap_or_else(|error| panic!("{error}: {}", self.said(desk)))
    }

    /// Waits until it has said this.
    #[track_caller]
    pub fn says(&mut self, desk: &Desk, text: &str) {
        self.until(desk, text, |desk, running| {
            running.said(desk).contains(text)
        });
    }

    /// Waits until something is so; it must not end before.
    #[track_caller]
    pub fn until(&mut self, desk: &Desk, what: &str, is_so: impl Fn(&Desk, &Running) -> bool) {
        let began = Instant::now();
        while !is_so(desk, self) {
            let ended = self.child.try_wait().unwrap();
            // What it did last counts.
            if ended.is_some() && is_so(desk, self) {
                return;
            }
            assert!(
                ended.is_none(),
                "{ended:?}, not {what}: {}",
                self.said(desk)
            );
            assert!(began.elapsed() < LONGEST, "not {what}: {}", self.said(desk));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end, and gives its exit code.
    #[track_caller]
    pub fn ends(&mut self, desk: &Desk) -> Option<i32> {
        self.ends_within(desk, LONGEST).code()
    }

    /// Waits for its end, for so long at most.
    #[track_caller]
    pub fn ends_within(&mut self, desk: &Desk, time: Duration) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(
                began.elapsed() < time,
                "it does not end: {}",
                self.said(desk)
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends a signal to it alone.
    pub fn signal(&self, signal: libc::c_int) {
        kill(self.id(), signal);
    }

    /// Sends a signal to its process group, as a terminal does.
    pub fn signal_group(&self, signal: libc::c_int) {
        // SAFETY: a plain system call; the child is not reaped, so that its id is its own.
        unsafe { libc::kill(-(self.id() as libc::pid_t), signal) };
    }

    /// The processes above workers.
    pub fn aboves(&self) -> Vec<u32> {
        own_children(self.id())
    }

    /// The workers.
    pub fn workers(&self) -> Vec<u32> {
        self.aboves().into_iter().flat_map(own_children).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to one process of this test's.
pub fn kill(process: u32, signal: libc::c_int) {
    // SAFETY: a plain system call.
    unsafe { libc::kill(process as libc::pid_t, signal) };
}

/// The parent of a process, by its folder in `/proc`.
fn parent(process: &Path) -> Option<u32> {
    let stat = std::fs::read_to_string(process.join("stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// All processes, each with its parent.
fn parents() -> Vec<(u32, u32)> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        Some((id, parent(&entry.path())?))
    })
    .collect()
}

/// The children of a process.
pub fn children(process: u32) -> Vec<u32> {
    let of_it = |(id, parent)| (parent == process).then_some(id);
    parents().into_iter().filter_map(of_it).collect()
}

/// Those that are ddfuzz itself, and no target of it.
fn own_children(process: u32) -> Vec<u32> {
    let own = Path::new(env!("CARGO_BIN_EXE_ddfuzz"))
        .canonicalize()
        .unwrap();
    let is_own =
        |id: &u32| std::fs::read_link(format!("/proc/{id}/exe")).is_ok_and(|exe| exe == own);
    children(process).into_iter().filter(is_own).collect()
}

/// All who descend from a process, and itself.
pub fn family(process: u32) -> BTreeSet<u32> {
    let parents = parents();
    let mut all = BTreeSet::new();
    let mut next = vec![process];
    while let Some(one) = next.pop() {
        if all.insert(one) {
            let children = parents.iter().filter(|(_, parent)| *parent == one);
            next.extend(children.map(|(id, _)| *id));
        }
    }
    all
}

/// The System V segments of shared memory: id, who made it, and who used it last.
pub fn segments() -> Vec<(i64, u32, u32)> {
    let text = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let rows = text.lines().skip(1).filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (id, made, used) = (words.get(1)?, words.get(4)?, words.get(5)?);
        Some((id.parse().ok()?, made.parse().ok()?, used.parse().ok()?))
    });
    rows.collect()
}

/// Fails when a segment that was not there `before` and belongs to one of `processes`, which are
/// dead, stays for long.
#[track_caller]
pub fn assert_no_segment(before: &[(i64, u32, u32)], processes: &BTreeSet<u32>) {
    let left = || -> Vec<(i64, u32, u32)> {
        let now = segments().into_iter();
        now.filter(|(id, made, used)| {
            let is_ours = processes.contains(made) || processes.contains(used);
            is_ours && before.iter().all(|(old, ..)| old != id)
        })
        .collect()
    };
    let began = Instant::now();
    while !left().is_empty() {
        assert!(began.elapsed() < LONGEST, "{:?}", left());
        std::thread::sleep(Duration::from_millis(20));
    }
}
