//! Interestingness tests: programs to which the input is offered in three ways at once, as the
//! first argument, on stdin, and under a name in their fresh directory (interface.md).

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::launch::Role;
use super::place::Place;
use super::served::Served;
use super::{ExecError, Executor, Target, Way};

/// Whatever the umask is, the test may write into its copy of the input.
const MODE: u32 = 0o644;

/// Starts an interestingness test. `name` is what the input is called in the directory, which is
/// emptied after each run; the target's own arguments and directory are not used. The test runs as
/// the user who started ddfuzz: it is the user's own program, and may use whatever he may.
///
/// # Errors
/// When the program is missing or has no execute permission. Whether the system can execute it,
/// the first run shows: it is [`ExecError::NotExecutable`] where it cannot.
pub fn start_test(target: &Target, name: &OsStr) -> Result<Box<dyn Executor>, ExecError> {
    let (place, file) = Place::offering(target, name)?;
    let test = Served::offering(target, place, Some(file), Way::Command, Role::Serve, None)?;
    Ok(Box::new(test))
}

/// Puts the input where the test finds it.
pub(super) fn write(path: &Path, input: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.set_permissions(Permissions::from_mode(MODE))?;
    file.write_all(input)
}
