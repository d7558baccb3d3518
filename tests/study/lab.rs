//! A directory with utilities that fail in known ways.

use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::compiled;
use crate::ddfuzz::{Desk, LONGEST, Said};

const SOURCE: &str = include_str!("programs/odd.c");

/// A user's directory, whose utilities are found first.
pub struct Lab {
    pub desk: Desk,
}

impl Lab {
    /// A directory with these utilities, which `programs/odd.c` knows.
    pub fn with(utilities: &[&str]) -> Lab {
        let desk = Desk::new();
        std::fs::create_dir(desk.file("bin")).unwrap();
        std::fs::set_permissions(desk.file("bin"), Permissions::from_mode(0o755)).unwrap();
        let odd = odd();
        for name in utilities {
            let path = desk.file("bin").join(name);
            std::fs::copy(&odd, &path).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        }
        Lab { desk }
    }

    /// The path of a utility.
    pub fn path(&self, name: &str) -> PathBuf {
        self.desk.file("bin").join(name)
    }

    /// Calls `ddfuzz revisit` with these words.
    pub fn revisit(&self, words: &str) -> Said {
        let mut command = self.command();
        command.args(words.split_whitespace());
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

    /// `ddfuzz revisit`, to be started.
    pub fn command(&self) -> Command {
        let mut command = self.desk.command(env!("CARGO_BIN_EXE_ddfuzz"));
        command.arg("revisit").env("PATH", self.path_variable());
        command
    }

    fn path_variable(&self) -> OsString {
        let mut path = self.desk.file("bin").into_os_string();
        path.push(":/usr/bin:/bin");
        path
    }
}

/// The compiled program.
fn odd() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    compiled::once(folder, "odd", SOURCE, |own| {
        let (source, program) = (own.join("odd.c"), own.join("odd"));
        std::fs::write(&source, SOURCE).unwrap();
        let mut compiler = Command::new("cc");
        compiled::run(compiler.args(["-O1", "-o"]).arg(&program).arg(&source));
        program
    })
}

/// What the result says of a utility.
#[track_caller]
pub fn utility<'a>(result: &'a Value, name: &str) -> &'a Value {
    let all = result["utilities"].as_array().expect("utilities");
    let named = all.iter().find(|utility| utility["utility"] == name);
    named.unwrap_or_else(|| panic!("{name} is not in {result}"))
}

/// The groups of a utility.
pub fn groups<'a>(result: &'a Value, name: &str) -> Vec<&'a Value> {
    let all = result["groups"].as_array().expect("groups").iter();
    all.filter(|group| group["utility"] == name).collect()
}
