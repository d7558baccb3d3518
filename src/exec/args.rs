//! The arguments of a target, and where its input goes.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::elf::{self, Facts};
use super::input::Input;
use super::private_dir::PrivateDir;
use super::{Program, Target};

/// What tells the `main` of libFuzzer to run one input and to leave its ending as it is: by the
/// signals of the target, without limits of its own.
const ONE_INPUT: [&str; 14] = [
    "-handle_abrt=0",
    "-handle_bus=0",
    "-handle_fpe=0",
    "-handle_ill=0",
    "-handle_int=0",
    "-handle_segv=0",
    "-handle_term=0",
    "-handle_xfsz=0",
    "-handle_usr1=0",
    "-handle_usr2=0",
    "-timeout=0",
    "-rss_limit_mb=0",
    "-malloc_limit_mb=0",
    "-detect_leaks=0",
];

impl Target {
    /// The same target, with the arguments by which its `main` takes one input. They differ from
    /// its own where that `main` is libFuzzer's.
    pub fn by_main(&self) -> Target {
        let facts = match &self.program {
            Program::Path(path) => elf::facts(path),
            Program::Bundled(_) => None,
        };
        let mut target = self.clone();
        target.args = Args::for_main(self, facts.as_ref()).args;
        target
    }
}

/// Arguments, without the program's name; `@@` stands for a file holding the input.
pub(crate) struct Args {
    args: Vec<OsString>,
    in_file: bool,
}

impl Args {
    /// Those of `target`.
    pub(crate) fn of(target: &Target) -> Args {
        Args {
            args: target.args.clone(),
            in_file: target.takes_file(),
        }
    }

    /// The same, with no file whatever they say.
    pub(crate) fn without_input(self) -> Args {
        Args {
            in_file: false,
            ..self
        }
    }

    /// Those by which the `main` of `target`, a program with these `facts`, takes one input.
    pub(crate) fn for_main(target: &Target, facts: Option<&Facts>) -> Args {
        let args = Args::of(target);
        match facts {
            Some(facts) if facts.is_fuzzer && !args.in_file => args.for_fuzzer(),
            Some(facts) if facts.fuzzer_main && args.in_file => args.handled_by_nobody(),
            _ => args,
        }
    }

    /// The same for libFuzzer's `main`, which without a file to run would begin to fuzz.
    fn for_fuzzer(mut self) -> Args {
        self.args.extend(ONE_INPUT.map(OsString::from));
        self.args.push("@@".into());
        self.in_file = true;
        self
    }

    /// The same where the user says how libFuzzer's `main` is given its file. Its handlers would
    /// make each crash an exit status; of a flag given twice the later one holds, the user's.
    fn handled_by_nobody(mut self) -> Args {
        self.args.splice(0..0, ONE_INPUT.map(OsString::from));
        self
    }

    /// The input, in its place, and the whole command line.
    pub(crate) fn in_place(
        &self,
        program: &Path,
        private: &PrivateDir,
    ) -> io::Result<(Input, Vec<OsString>)> {
        let mut argv = vec![program.as_os_str().to_owned()];
        if !self.in_file {
            argv.extend(self.args.iter().cloned());
            return Ok((Input::on_stdin()?, argv));
        }
        let path = private.fresh("input");
        argv.extend(self.args.iter().map(|arg| with_path(arg, &path)));
        Ok((Input::in_file(&path)?, argv))
    }
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
