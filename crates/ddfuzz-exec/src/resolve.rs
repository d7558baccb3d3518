//! From what the user named to a program that can be executed.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::private_dir::PrivateDir;
use super::{ExecError, Program, bundled};

/// Finds a program as a shell would: a name with a slash is a path, any other is looked for in
/// PATH. The result is absolute.
///
/// # Errors
/// [`ExecError::Missing`] and [`ExecError::NotExecutable`].
pub fn find_program(name: &Path) -> Result<PathBuf, ExecError> {
    if name.components().count() > 1 || name.is_absolute() {
        return checked(name);
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
    let found: Vec<PathBuf> = std::env::split_paths(&path)
        .map(|dir| dir.join(name))
        .filter(|file| file.is_file())
        .collect();
    match found.iter().find_map(|file| checked(file).ok()) {
        Some(program) => Ok(program),
        None if found.is_empty() => Err(ExecError::Missing {
            path: name.to_owned(),
        }),
        None => checked(&found[0]),
    }
}

fn checked(path: &Path) -> Result<PathBuf, ExecError> {
    let unfit = |why: &str| ExecError::NotExecutable {
        path: path.to_owned(),
        why: why.to_owned(),
    };
    let facts = match std::fs::metadata(path) {
        Ok(facts) => facts,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(ExecError::Missing {
                path: path.to_owned(),
            });
        }
        Err(error) => return Err(unfit(&error.to_string())),
    };
    if facts.is_dir() {
        return Err(unfit("it is a directory"));
    }
    if facts.permissions().mode() & 0o111 == 0 {
        return Err(unfit("it has no execute permission"));
    }
    std::path::absolute(path).map_err(|error| unfit(&error.to_string()))
}

/// The file to execute for `program`; a bundled one is unpacked first.
pub(crate) fn locate(program: &Program, private: &PrivateDir) -> Result<PathBuf, ExecError> {
    match program {
        Program::Path(path) => find_program(path),
        Program::Bundled(name) => {
            let bytes = bundled::program(name).ok_or_else(|| ExecError::UnknownBundled {
                name: name.clone(),
                known: bundled::names().join(", "),
            })?;
            private
                .unpack(name, bytes)
                .map_err(|source| ExecError::System {
                    what: format!("unpacking the bundled target {name}"),
                    source,
                })
        }
    }
}
