//! Builds the command line of a target, and creates the files that it names.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::{fs::Permissions, io, os::unix::fs::PermissionsExt};

use crate::{Channel, Program, Target, elf, elf::ElfFacts, input::Input, private_dir::PrivateDir};

/// Flags by which libFuzzer's `main` runs one input without signal handlers and without limits,
/// except the limit on the size of one allocation ([`FuzzerLimits::allocation`]).
const ONE_INPUT: [&str; 13] = [
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
    "-detect_leaks=0",
];

/// libFuzzer's default limit on resident memory, in MiB.
const RSS_LIMIT: u64 = 2048;

/// Memory limits that libFuzzer applies by its flags and, where a flag is missing, by its defaults;
/// in MiB, `None` means unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FuzzerLimits {
    /// Limit on the resident memory of the process, in MiB; `None` means unlimited.
    pub rss: Option<u64>,
    /// Limit on one allocation, in MiB; a larger allocation counts as out of memory, even if it is
    /// not used. `None` means unlimited.
    pub allocation: Option<u64>,
}

impl FuzzerLimits {
    /// Reads libFuzzer's memory limits from a target's arguments. The last of repeated flags wins.
    /// Without flags, resident memory is limited to 2048 MiB, and one allocation to the limit on
    /// resident memory.
    pub(crate) fn of(args: &[OsString]) -> FuzzerLimits {
        let flag = |name: &str| {
            let values = args.iter().rev();
            let mut values = values.filter_map(|arg| arg.to_str()?.strip_prefix(name));
            values.next().and_then(|value| value.parse().ok())
        };
        let rss: u64 = flag("-rss_limit_mb=").unwrap_or(RSS_LIMIT);
        let malloc = flag("-malloc_limit_mb=").filter(|limit| *limit > 0);
        let is_one = |limit: &u64| *limit > 0;
        FuzzerLimits {
            rss: Some(rss).filter(is_one),
            allocation: malloc.or(Some(rss)).filter(is_one),
        }
    }
}

impl Target {
    /// Returns the memory limits that libFuzzer applies to this target; `None` if libFuzzer is not
    /// linked into it, or its file cannot be read.
    pub fn fuzzer_limits(&self) -> Option<FuzzerLimits> {
        let Program::Path(path) = &self.program else {
            return None;
        };
        let facts = elf::facts(path)?;
        facts.fuzzer_main.then(|| FuzzerLimits::of(&self.args))
    }

    /// Returns this target with the arguments by which its `main` runs one input: for libFuzzer's
    /// `main`, its flags are added; for all others, the arguments stay.
    pub fn with_main_arguments(&self) -> Target {
        let facts = match &self.program {
            Program::Path(path) => elf::facts(path),
            Program::Bundled(_) => None,
        };
        let mut target = self.clone();
        target.args = CommandLine::for_main(self, facts.as_ref()).args;
        target
    }
}

/// The arguments of a target, without the program's name, and the input files whose paths replace
/// `@@` in them.
pub(crate) struct CommandLine {
    args: Vec<OsString>,
    files: InputFiles,
}

/// The files that the target's arguments refer to by `@@`, in whose place their paths are put.
#[derive(Clone, Debug, PartialEq, Eq)]
enum InputFiles {
    None,
    /// One input file: with this name, or with any name for `None`.
    Input(Option<OsString>),
    /// Two input files, one for each of the two parts into which an input is split.
    Parts,
    /// A file with the sample text that a target at a terminal edits; the input itself is typed as
    /// keys.
    Sample {
        /// Whether the target's arguments contain `@@`, which stands for the file with the sample
        /// text; if not, no such file is created.
        named: bool,
    },
}

impl CommandLine {
    /// Builds the command line of `target` with the arguments that the user gave, without
    /// libFuzzer's flags.
    pub(crate) fn of(target: &Target) -> CommandLine {
        let files = match &target.channel {
            Channel::Terminal(_) => InputFiles::Sample {
                named: target.names_file(),
            },
            _ if !target.takes_file() => InputFiles::None,
            Channel::Plain => InputFiles::Input(None),
            Channel::Named(name) => InputFiles::Input(Some(name.0.clone())),
            Channel::TwoFiles => InputFiles::Parts,
        };
        let args = target.args.clone();
        CommandLine { args, files }
    }

    /// Returns this command line with the same arguments, but without input files: `@@` stays in
    /// them.
    pub(crate) fn without_input(self) -> CommandLine {
        CommandLine {
            files: InputFiles::None,
            ..self
        }
    }

    /// Builds the command line by which the `main` of `target`, a program with these `facts`, runs
    /// one input.
    pub(crate) fn for_main(target: &Target, facts: Option<&ElfFacts>) -> CommandLine {
        let args = CommandLine::of(target);
        if matches!(args.files, InputFiles::Sample { .. }) {
            return args;
        }
        let in_file = args.files != InputFiles::None;
        match facts {
            Some(facts) if facts.is_fuzzer && !in_file => args.for_fuzzer(),
            Some(facts) if facts.fuzzer_main && in_file => args.with_fuzzer_flags(),
            _ => args,
        }
    }

    /// Returns the flags with which libFuzzer's `main` is to run one input: fixed ones
    /// ([`ONE_INPUT`]), and the limit on the size of one allocation that the user's own flags set
    /// or imply.
    fn flags(&self) -> Vec<OsString> {
        let allocation = FuzzerLimits::of(&self.args).allocation.unwrap_or(0);
        let allocation = format!("-malloc_limit_mb={allocation}");
        let flags = ONE_INPUT.into_iter().map(OsString::from);
        flags.chain([allocation.into()]).collect()
    }

    /// Returns this command line with libFuzzer's flags for running one input, and with an input
    /// file (`@@`) as the last argument: without a file, libFuzzer's `main` would start fuzzing.
    fn for_fuzzer(mut self) -> CommandLine {
        let flags = self.flags();
        self.args.extend(flags);
        self.args.push("@@".into());
        self.files = InputFiles::Input(None);
        self
    }

    /// Returns this command line with flags for libFuzzer's `main` before the user's, which take
    /// precedence. Without the flags, libFuzzer's signal handlers turn crashes into exit statuses.
    fn with_fuzzer_flags(mut self) -> CommandLine {
        let flags = self.flags();
        self.args.splice(0..0, flags);
        self
    }

    /// Creates the files through which a target reads its inputs, in ddfuzz's private directory.
    /// Returns the input channel to which each run's input is written, and the arguments of the
    /// target: the path of `program`, and its arguments with `@@` replaced by the paths of the
    /// files.
    pub(crate) fn in_place(
        &self,
        program: &Path,
        private: &PrivateDir,
    ) -> io::Result<(Input, Vec<OsString>)> {
        let (input, paths) = match &self.files {
            InputFiles::None => (Input::on_stdin()?, Vec::new()),
            InputFiles::Input(name) => {
                let path = place(private, name.as_deref())?;
                (Input::in_file(&path)?, vec![path])
            }
            InputFiles::Parts => {
                let [first, second] = [private.fresh("input"), private.fresh("input")];
                (Input::in_two_files(&first, &second)?, vec![first, second])
            }
            InputFiles::Sample { named } => {
                let path = named.then(|| private.fresh("sample"));
                let input = Input::at_terminal(path.as_deref())?;
                (input, path.into_iter().collect())
            }
        };
        let mut argv = vec![program.as_os_str().to_owned()];
        let mut named = 0;
        argv.extend(
            self.args
                .iter()
                .map(|arg| with_paths(arg, &paths, &mut named)),
        );
        Ok((input, argv))
    }
}

/// Returns a new path for an input file in the private directory. For a file with a given name,
/// creates a new directory for it, in which the target's user cannot write. Fails if `name` is a
/// path with directories.
fn place(private: &PrivateDir, name: Option<&OsStr>) -> io::Result<PathBuf> {
    let fresh = private.fresh("input");
    let Some(name) = name else {
        return Ok(fresh);
    };
    if Path::new(name).file_name() != Some(name) {
        let why = format!("{name:?} is not the name of a file");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    std::fs::create_dir(&fresh)?;
    std::fs::set_permissions(&fresh, Permissions::from_mode(0o755))?; // whatever the umask
    Ok(fresh.join(name))
}

/// Returns the argument `arg` with each `@@` replaced by one of `paths`: the first `@@` of all
/// arguments by the first path, the second by the second, and all further ones by the last path.
/// `named` counts the `@@` in the arguments so far.
fn with_paths(arg: &OsStr, paths: &[PathBuf], named: &mut usize) -> OsString {
    let Some(last) = paths.last() else {
        return arg.to_owned();
    };
    let mut rest = arg.as_bytes();
    let mut text = Vec::new();
    while let Some(at) = rest.windows(2).position(|pair| pair == b"@@") {
        text.extend_from_slice(&rest[..at]);
        let path = paths.get(*named).unwrap_or(last);
        text.extend_from_slice(path.as_os_str().as_bytes());
        *named += 1;
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
        let text = with_paths(OsStr::new("--in=@@:@@@"), &["/x".into()], &mut 0);
        assert_eq!(text, "--in=/x:/x@");
    }

    #[test]
    fn the_first_of_two_paths_is_named_once() {
        let (paths, mut named) = (["/x".into(), "/y".into()], 0);
        let mut text = |arg| with_paths(OsStr::new(arg), &paths, &mut named);
        assert_eq!(text("-i@@"), "-i/x");
        assert_eq!(text("-s"), "-s");
        assert_eq!(text("@@:@@"), "/y:/y");
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_refused() {
        let private = PrivateDir::get().unwrap();
        for wrong in ["", "..", "a/b", "/etc/passwd", "a/"] {
            assert!(place(&private, Some(OsStr::new(wrong))).is_err(), "{wrong}");
        }
        let path = place(&private, Some(OsStr::new("t.c"))).unwrap();
        assert_eq!(path.file_name(), Some(OsStr::new("t.c")));
    }
}
