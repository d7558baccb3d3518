//! Finds the program that the user named, and the interpreter of a script.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::{fs::File, io::Read, os::unix::ffi::OsStrExt, os::unix::fs::PermissionsExt};

use object::elf::{FileHeader64, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadCache};

use crate::{ExecError, NotExecuted, Program, bundled, private_dir::PrivateDir};

/// Finds a program as a shell does: a name with a slash is a path, any other name is looked for in
/// PATH. Returns an absolute path. Errors: [`ExecError::Missing`] and [`ExecError::NotExecutable`].
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
        why: NotExecuted::Other(why.to_owned()),
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
    if let Some(end) = missing_end(path, facts.len()) {
        return Err(unfit(&format!(
            "it is incomplete: it has {} bytes of {end}, and the kernel kills it as it starts",
            facts.len()
        )));
    }
    std::path::absolute(path).map_err(|error| unfit(&error.to_string()))
}

/// Size of a page in bytes. The kernel loads files in whole pages, and fills the rest of a file's
/// last page with zeros.
const PAGE: u64 = 4096;

/// Returns the size that the ELF file at `path` needs to contain all of its loaded segments, if its
/// actual size `length`, rounded up to a whole page, is smaller, as after an incomplete copy.
/// `None` for a complete file, and for a file that is not a 64-bit ELF file.
fn missing_end(path: &Path, length: u64) -> Option<u64> {
    let file = ReadCache::new(File::open(path).ok()?);
    let header = FileHeader64::<Endianness>::parse(&file).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, &file).ok()?;
    let loaded = segments
        .iter()
        .filter(|segment| segment.p_type(endian) == PT_LOAD && segment.p_filesz(endian) > 0);
    let ends = loaded.map(|one| one.p_offset(endian).saturating_add(one.p_filesz(endian)));
    ends.max()
        .filter(|end| *end > length.next_multiple_of(PAGE))
}

/// Returns the error for a program at `path` that `execve` has refused with `errno`; it says what
/// is wrong with the file.
pub(crate) fn not_executed(path: &Path, errno: i32) -> ExecError {
    let start = start_of(path);
    let other = |why: &str| NotExecuted::Other(why.to_owned());
    let why = match (errno, start.as_deref()) {
        (libc::ENOENT, Some(start)) if start.starts_with(b"#!") => {
            lacks_interpreter(named_in(start).unwrap_or_default())
        }
        (libc::ENOENT, Some(start)) if start.starts_with(b"\x7fELF") => {
            other("the dynamic loader that it names does not exist")
        }
        (libc::ENOEXEC, Some([])) => other("the file is empty"),
        (libc::ENOEXEC, Some(start)) if !start.starts_with(b"\x7fELF") && !start.contains(&0) => {
            other("it has no #! line that names its interpreter, such as #!/bin/sh")
        }
        _ => other(&std::io::Error::from_raw_os_error(errno).to_string()),
    };
    ExecError::NotExecutable {
        path: path.to_owned(),
        why,
    }
}

/// Returns the reason why a script cannot be executed: the interpreter `interpreter` that its first
/// line names does not exist.
fn lacks_interpreter(interpreter: String) -> NotExecuted {
    match interpreter.as_bytes() {
        [.., b'\r'] => NotExecuted::CarriageReturn(interpreter),
        [b'/', ..] => NotExecuted::Other(format!(
            "the interpreter in its first line, {interpreter:?}, does not exist"
        )),
        _ => NotExecuted::RelativeInterpreter(interpreter),
    }
}

/// Returns the path of the file to execute for `program`; a bundled program is unpacked first.
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
                .map_err(ExecError::system(format!(
                    "unpacking the bundled target {name}"
                )))
        }
    }
}

/// Maximum number of interpreters that are followed from one to the next, where the interpreter of
/// a script is again a script.
const DEEPEST: usize = 8;
/// Number of bytes of a script's first line that the kernel reads.
const LINE: usize = 256;

/// The interpreter that executes a script, with the interpreter's command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interpreter {
    /// Absolute path of the program that executes the script in the end: for `#!/usr/bin/env
    /// python3`, that of python3. If the interpreter is a script itself, its own interpreter is
    /// followed, and so on.
    pub(crate) program: PathBuf,
    /// The interpreter's whole command line: its name, arguments that the `#!` line gives, the path
    /// of the script, and the script's arguments.
    pub(crate) argv: Vec<OsString>,
}

/// Finds the program that executes the script `program` with `argv`, by the rules of the kernel and
/// of env(1). `None` if `program` is not a script, or its `#!` line is not understood. `path`: the
/// value of PATH in the script's environment.
pub(crate) fn interpreter(
    program: &Path,
    argv: &[OsString],
    path: Option<&OsStr>,
) -> Option<Interpreter> {
    let mut at = Interpreter {
        program: program.to_owned(),
        argv: argv.to_vec(),
    };
    for level in 0..DEEPEST {
        let Some((interpreter, argument)) = first_line(&at.program) else {
            return (level > 0).then_some(at);
        };
        let script = at.program.into_os_string();
        let rest = at.argv.into_iter().skip(1);
        let words = std::iter::once(interpreter.clone().into_os_string())
            .chain(argument)
            .chain([script])
            .chain(rest)
            .collect();
        at = Interpreter {
            program: interpreter,
            argv: words,
        };
        if at.program.file_name() == Some(OsStr::new("env")) {
            at = through_env(at.argv, path)?;
        }
        if !at.program.is_absolute() {
            return None; // which one depends on the working directory
        }
    }
    None
}

/// Checks whether the file at `program` begins with a `#!` line that names an interpreter; false if
/// the file cannot be read, or the line is longer than the kernel accepts.
pub fn is_script(program: &Path) -> bool {
    first_line(program).is_some()
}

/// Checks whether the interpreter that the `#!` line of the script at `program` names is a script
/// itself, such as a shim of a version manager. Where the line names env(1), the interpreter is the
/// program that env(1) finds in the PATH of this process. False if `program` is not a script, or if
/// the interpreter is not found.
pub fn is_interpreted_by_script(program: &Path) -> bool {
    let Some((interpreter, argument)) = first_line(program) else {
        return false;
    };
    let is_env = interpreter.file_name() == Some(OsStr::new("env"));
    let words = std::iter::once(interpreter.clone().into_os_string());
    let words = words.chain(argument).collect();
    let path = std::env::var_os("PATH");
    match is_env {
        true => through_env(words, path.as_deref()).is_some_and(|it| is_script(&it.program)),
        false => is_script(&interpreter),
    }
}

/// Reads the interpreter and its one argument from the `#!` line of a file; `None` without such a
/// line.
fn first_line(program: &Path) -> Option<(PathBuf, Option<OsString>)> {
    words(&start_of(program)?)
}

/// Reads the first [`LINE`] bytes of a file; `None` if it cannot be read.
fn start_of(program: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(program).ok()?;
    file.take(LINE as u64).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Returns the interpreter and its argument, as text, that a script beginning with `bytes` names in
/// its `#!` line; `None` if the file is not a script.
pub(crate) fn named_in(bytes: &[u8]) -> Option<String> {
    let (program, argument) = words(&bytes[..bytes.len().min(LINE)])?;
    let mut text = program.to_string_lossy().into_owned();
    if let Some(argument) = argument {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    Some(text)
}

/// Parses the `#!` line in the first [`LINE`] bytes of a script into the interpreter and its one
/// argument; `None` if there is no such line.
fn words(bytes: &[u8]) -> Option<(PathBuf, Option<OsString>)> {
    let line = bytes.strip_prefix(b"#!")?;
    let end = line.iter().position(|byte| *byte == b'\n');
    // The kernel truncates or refuses a longer line.
    let line = match end {
        Some(end) => &line[..end],
        None if bytes.len() < LINE => line,
        None => return None,
    };
    let line = trim(line);
    let blank = line.iter().position(|byte| is_blank(*byte));
    let (name, argument) = line.split_at(blank.unwrap_or(line.len()));
    if name.is_empty() || line.contains(&0) {
        return None;
    }
    let argument = trim(argument);
    let argument = (!argument.is_empty()).then(|| OsStr::from_bytes(argument).to_owned());
    Some((OsStr::from_bytes(name).into(), argument))
}

/// Finds the program that `env`, called with `argv`, executes. Of its options only `-S` without
/// quotes is supported; `None` if `env` sets variables or has other options.
fn through_env(argv: Vec<OsString>, path: Option<&OsStr>) -> Option<Interpreter> {
    let mut words = argv.into_iter().skip(1);
    let first = words.next()?;
    let mut command: Vec<OsString> = match first.as_bytes().strip_prefix(b"-S") {
        Some(text) if text.iter().any(|byte| b"\"'\\$#".contains(byte)) => return None,
        Some(text) => text
            .split(|byte| is_blank(*byte))
            .filter(|word| !word.is_empty())
            .map(|word| OsStr::from_bytes(word).to_owned())
            .collect(),
        None => vec![first],
    };
    command.extend(words);
    let name = command.first()?;
    if name.as_bytes().starts_with(b"-") || name.as_bytes().contains(&b'=') {
        return None;
    }
    let program = match name.as_bytes().contains(&b'/') {
        true => PathBuf::from(name),
        false => in_path(name, path?)?,
    };
    Some(Interpreter {
        program,
        argv: command,
    })
}

/// Finds the first executable file called `name` in the directories of `path`, a value of PATH;
/// `None` if there is none.
fn in_path(name: &OsStr, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path)
        .map(|directory| directory.join(name))
        .find(|file| {
            std::fs::metadata(file)
                .is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
        })
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

fn trim(mut text: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = text
        && is_blank(*first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && is_blank(*last)
    {
        text = rest;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a script with the first line `line`, and returns the program and arguments by which
    /// the kernel would start it with the argument `x`; `None` if it could not. In `line` and in
    /// the result, `DIR` stands for the script's directory, which also has an executable `tool`.
    fn made_of(line: &str) -> Option<(String, Vec<String>)> {
        let private = PrivateDir::get().unwrap();
        let dir = private.fresh("scripts");
        std::fs::create_dir(&dir).unwrap();
        let file = |name: &str, text: &str| {
            let file = dir.join(name);
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
            file
        };
        let here = dir.to_str().unwrap();
        file("tool", "\u{7f}ELF");
        file("script-of-tool", &format!("#!{here}/tool -q\n"));
        let script = file("script", &line.replace("DIR", here));
        let argv = ["called".into(), "x".into()];
        let found = interpreter(&script, &argv, Some(dir.as_os_str()));
        std::fs::remove_dir_all(&dir).unwrap();
        let found = found?;
        let plain = |text: &OsStr| text.to_str().unwrap().replace(here, "DIR");
        let argv = found.argv.iter().map(|word| plain(word)).collect();
        Some((plain(found.program.as_os_str()), argv))
    }

    fn assert_made(line: &str, program: &str, argv: &[&str]) {
        let argv = argv.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(made_of(line), Some((program.to_owned(), argv)), "{line:?}");
    }

    #[test]
    fn a_script_names_its_interpreter_in_its_first_line() {
        assert_eq!(named_in(b"#! /bin/sh -e\nx"), Some("/bin/sh -e".into()));
        assert_eq!(named_in(b"#!/bin/sh"), Some("/bin/sh".into()));
        assert_eq!(named_in(b"#!\n"), None);
        assert_eq!(named_in(b"\x7fELF"), None);
    }

    #[test]
    fn an_interpreter_that_does_not_exist_is_told_with_its_reason() {
        let private = PrivateDir::get().unwrap();
        let script = private.fresh("script");
        for (line, why) in [
            ("#!/no/such/sh\n", "\"/no/such/sh\", does not exist"),
            ("#!/bin/sh\r\n", "the line ends with a carriage return"),
            ("#!./tool\n", "does not exist where the program runs"),
        ] {
            std::fs::write(&script, line).unwrap();
            let told = not_executed(&script, libc::ENOENT).to_string();
            assert!(told.ends_with(why), "{told}");
        }
        std::fs::remove_file(&script).unwrap();
    }

    #[test]
    fn the_interpreter_gets_one_argument_and_the_path_of_the_script() {
        let tool = "DIR/tool";
        assert_made("#!DIR/tool\n", tool, &[tool, "DIR/script", "x"]);
        assert_made("#!DIR/tool", tool, &[tool, "DIR/script", "x"]);
        let both = [tool, "-a -b", "DIR/script", "x"];
        assert_made("#! \tDIR/tool  -a -b \t\nmore", tool, &both);
    }

    #[test]
    fn a_script_may_be_run_by_a_script() {
        let argv = ["DIR/tool", "-q", "DIR/script-of-tool", "DIR/script", "x"];
        assert_made("#!DIR/script-of-tool\n", "DIR/tool", &argv);
    }

    #[test]
    fn env_finds_the_program_in_the_path() {
        let argv = ["tool", "DIR/script", "x"];
        assert_made("#!/usr/bin/env tool\n", "DIR/tool", &argv);
        let split = ["tool", "-a", "-b", "DIR/script", "x"];
        assert_made("#!/usr/bin/env -S tool -a  -b\n", "DIR/tool", &split);
        let through = ["DIR/tool", "-q", "DIR/script-of-tool", "DIR/script", "x"];
        assert_made("#!/usr/bin/env script-of-tool\n", "DIR/tool", &through);
    }

    #[test]
    fn what_is_not_understood_is_left_alone() {
        for line in [
            "no script",
            "#!\n",
            "#!tool\n",
            "#!DIR/script\n",
            "#!/usr/bin/env nothing-of-this-name\n",
            "#!/usr/bin/env -i tool\n",
            "#!/usr/bin/env A=b tool\n",
            "#!/usr/bin/env -S tool 'a b'\n",
        ] {
            assert_eq!(made_of(line), None, "{line:?}");
        }
        assert_eq!(made_of(&format!("#!/{}", "x".repeat(300))), None);
    }
}
