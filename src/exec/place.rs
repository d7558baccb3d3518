//! Where and as whom a target runs: what all ways of execution prepare alike.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::cgroup::Cgroup;
use super::input::Input;
use super::launch::{Inject, Launch, Role};
use super::private_dir::PrivateDir;
use super::scratch::Scratch;
use super::{ExecError, Target, elf, environment, identity, resolve, script};

/// A target with its program found, and its directory and input in place.
pub(crate) struct Place {
    pub(crate) program: PathBuf,
    /// `None` where the program is not an ELF file of this machine.
    pub(crate) facts: Option<elf::Facts>,
    /// It has a sanitizer, or may start something that has one.
    sanitized: bool,
    pub(crate) input: Input,
    pub(crate) scratch: Scratch,
    private: Arc<PrivateDir>,
    identity: Option<identity::Identity>,
    argv: Vec<OsString>,
}

impl Place {
    /// Finds the program and makes its directory and input.
    pub(crate) fn prepare(target: &Target) -> Result<Place, ExecError> {
        let private = PrivateDir::get()?;
        let program = resolve::locate(&target.program, &private)?;
        let identity = identity::choose(&program, target.cwd.as_deref());
        Place::make(target, private, program, identity)
    }

    /// The same for a program of the user's own, which runs as whoever started us, and of which
    /// `name` in its directory is the only argument.
    pub(crate) fn offering(target: &Target, name: &OsStr) -> Result<(Place, PathBuf), ExecError> {
        let private = PrivateDir::get()?;
        let program = resolve::locate(&target.program, &private)?;
        let mut place = Place::make(target, private, program, None)?;
        let file = place.scratch.path().join(name);
        place.argv.push(file.clone().into_os_string());
        Ok((place, file))
    }

    fn make(
        target: &Target,
        private: Arc<PrivateDir>,
        program: PathBuf,
        identity: Option<identity::Identity>,
    ) -> Result<Place, ExecError> {
        let failed = |source| ExecError::System {
            what: format!("making the input and directory of {}", program.display()),
            source,
        };
        let scratch = Scratch::create(&private.fresh("scratch"), identity).map_err(failed)?;
        let (input, argv) = input_and_argv(target, &program, &private).map_err(failed)?;
        let facts = elf::facts(&program);
        Ok(Place {
            // What a script starts cannot be known.
            sanitized: facts.as_ref().is_none_or(|facts| facts.shadowed),
            facts,
            program,
            input,
            scratch,
            private,
            identity,
            argv,
        })
    }

    /// In the place of a script, what runs it; nothing changes where that is not understood.
    pub(crate) fn see_through_script(&mut self, target: &Target) {
        let path = environment::path(&target.env, target.env_only);
        if self.facts.is_none()
            && let Some(found) = script::interpreter(&self.program, &self.argv, path.as_deref())
        {
            self.facts = elf::facts(&found.program);
            self.program = found.program;
            self.argv = found.argv;
        }
    }

    /// The recipe for launching it in this role.
    pub(crate) fn launch(&self, target: &Target, role: Role, inject: Option<Inject>) -> Launch {
        let scratch = self.scratch.path().to_owned();
        Launch {
            private: Arc::clone(&self.private),
            role,
            inject,
            observed: None,
            program: self.program.clone(),
            sanitized: self.sanitized,
            argv: self.argv.clone(),
            env: target.env.clone(),
            env_only: target.env_only,
            cwd: target.cwd.clone().unwrap_or_else(|| scratch.clone()),
            scratch,
            limits: target.limits,
            identity: self.identity,
            cgroup: Cgroup::create(target.limits.processes),
        }
    }
}

fn input_and_argv(
    target: &Target,
    program: &Path,
    private: &PrivateDir,
) -> io::Result<(Input, Vec<OsString>)> {
    let mut argv = vec![program.as_os_str().to_owned()];
    if !target.takes_file() {
        argv.extend(target.args.iter().cloned());
        return Ok((Input::on_stdin()?, argv));
    }
    let path = private.fresh("input");
    argv.extend(target.args.iter().map(|arg| with_path(arg, &path)));
    Ok((Input::in_file(&path)?, argv))
}

/// `arg` with each `@@` replaced by `path`.
fn with_path(arg: &OsStr, path: &Path) -> OsString {
    let mut rest = arg.as_bytes();
    let mut text = Vec::new();
    while let Some(at) = rest.windows(2).position(|pair| pair == b"@@") {
        text.extend_from_slice(&rest[..at]);
        text.extend_from_slice(path.as_os_str().as_bytes());
        rest = &rest[at + 2..];
    }
    text.extend_from_slice(rest);
    OsString::from_vec(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_at_signs_becomes_the_path() {
        let text = with_path(OsStr::new("--in=@@:@@@"), Path::new("/x"));
        assert_eq!(text, "--in=/x:/x@");
    }
}
