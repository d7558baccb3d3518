//! `cargo ddfuzz` as its user calls it, in a project of cargo-fuzz.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::ddfuzz::{Desk, Said};
use crate::projects::{Project, Workshop, as_user};

/// A build, and a campaign that ends as soon as it has found what it looks for.
const LONGEST: Duration = Duration::from_secs(900);

/// A fresh copy of a project, for one test alone.
pub struct Checkout {
    pub desk: Desk,
    pub dir: PathBuf,
    _workshop: Workshop,
}

impl Checkout {
    /// A copy of the project; `None`, and said so, where the machine cannot build it.
    pub fn of(project: Project) -> Option<Checkout> {
        let checkout = Checkout::empty()?;
        project.copy_to(&checkout.dir);
        Some(checkout)
    }

    /// A directory for a project.
    pub fn empty() -> Option<Checkout> {
        let (workshop, desk) = (Workshop::enter()?, Desk::new());
        let dir = desk.file("project");
        std::fs::create_dir(&dir).unwrap();
        Some(Checkout {
            desk,
            dir,
            _workshop: workshop,
        })
    }

    /// Calls `cargo ddfuzz` with these words, as cargo does.
    pub fn call(&self, words: &str) -> Said {
        let mut command = self.command(env!("CARGO_BIN_EXE_cargo-ddfuzz"));
        command.arg("ddfuzz").args(words.split_whitespace());
        run(command)
    }

    /// Calls `ddfuzz` with these words.
    pub fn ddfuzz(&self, words: &str) -> Said {
        let mut command = self.command(env!("CARGO_BIN_EXE_ddfuzz"));
        command.args(words.split_whitespace());
        run(command)
    }

    /// A program in the project.
    pub fn command(&self, program: &str) -> Command {
        let mut command = self.desk.command(program);
        as_user(&mut command).current_dir(&self.dir);
        command
    }

    /// All files of the project with their contents, but for what cargo builds.
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        collect(&self.dir, &self.dir, &mut files);
        files
    }
}

/// Runs it to its end.
pub fn run(command: Command) -> Said {
    let output = assert_cmd::Command::from_std(command)
        .timeout(LONGEST)
        .output()
        .unwrap();
    Said {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn collect(root: &Path, dir: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            let name = path.strip_prefix(root).unwrap().to_owned();
            files.insert(name, std::fs::read(&path).unwrap());
        }
    }
}
