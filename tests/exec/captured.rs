//! Runs of which is known what they wrote: to stdout and stderr, and into files of their directory.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ddfuzz::exec::{Ended, ExecError, Executor, Freshness, Target, Way, start};

use crate::programs::{Compiled, compile, open_directory};

/// Where stdout and stderr go, in the directory of the runs. Two files, so that the order in
/// which the processes of a run write to them is nobody's business.
const STREAMS: [&str; 2] = ["stdout", "stderr"];

/// The library that leads stdout and stderr into a file.
pub fn library() -> Compiled {
    compile("capture", &["-shared", "-fPIC"])
}

/// What a run came to: its ending, how far it read its stdin, and what it wrote, by file name.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub ended: Ended,
    pub read: Option<u64>,
    pub written: BTreeMap<OsString, Vec<u8>>,
}

/// An executor whose runs share a directory, emptied after each of them.
pub struct Captured {
    directory: tempfile::TempDir,
    executor: Box<dyn Executor>,
}

impl Captured {
    /// Starts `target` with that library preloaded.
    pub fn start(target: &Target, library: &Compiled, way: Way) -> Result<Captured, ExecError> {
        let directory = open_directory();
        let all = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
        all(directory.path(), 0o777).unwrap();
        for stream in STREAMS.map(|stream| directory.path().join(stream)) {
            File::create(&stream).unwrap();
            all(&stream, 0o666).unwrap(); // the target may be another user
        }
        let mut target = target.clone();
        target.cwd = Some(directory.path().to_owned());
        target.env.extend([
            ("LD_PRELOAD".into(), library.path.clone().into()),
            ("CAPTURE_TO".into(), directory.path().into()),
        ]);
        let executor = start(&target, Some(way), Freshness::Fresh)?.executor;
        Ok(Captured {
            directory,
            executor,
        })
    }

    pub fn run(&mut self, input: &[u8]) -> Outcome {
        let run = self.executor.run(input).unwrap();
        Outcome {
            ended: run.ended,
            read: run.read,
            written: self.take_files(),
        }
    }

    /// What the last run wrote; removes all of it.
    fn take_files(&self) -> BTreeMap<OsString, Vec<u8>> {
        let mut written = BTreeMap::new();
        for entry in fs::read_dir(self.directory.path()).unwrap().flatten() {
            written.insert(entry.file_name(), fs::read(entry.path()).unwrap());
            if STREAMS.iter().any(|stream| entry.file_name() == *stream) {
                let stream = File::options().write(true).open(entry.path()).unwrap();
                stream.set_len(0).unwrap(); // the server holds it open
            } else {
                fs::remove_file(entry.path()).unwrap();
            }
        }
        written
    }
}
