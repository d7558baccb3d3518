//! Writes generated inputs to stdout and files, block by block; with `--preset`, all inputs of a
//! study.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Written, WrittenFile};
use crate::campaign::generator::{InputName, Preset};
use crate::cli::results::absolute;
use crate::cli::signals::stop_flag;
use crate::cli::{Exit, Failure, Output};
use crate::files::{FileError, OsText, atomic, folder};
use crate::report::size;

/// Maximum number of bytes of a generated input that are written at once.
const BLOCK: usize = 64 << 10;
/// Longest time between two checks of the stop flag while ddfuzz waits after a character.
const SLICE: Duration = Duration::from_millis(50);

/// The output of `ddfuzz gen`, in parts that are written one after another: line with the seed,
/// characters, epilog.
pub struct Parts {
    /// Line with the seed that `ddfuzz gen --show-seed` prints first; empty without that option.
    pub first: Vec<u8>,
    /// Reader of the input's bytes: those of the random generator, or of the file that is replayed.
    pub body: Box<dyn Read>,
    /// Path of the replayed file, which error messages name; `None` if the characters are
    /// generated.
    pub body_from: Option<PathBuf>,
    pub epilog: Vec<u8>,
}

/// The places to which `ddfuzz gen` writes its output (a file, stdout, or both), and the time that
/// it waits after each character.
pub struct Sinks<'a> {
    /// Path of the file to which the characters are written; the file must not exist. `None` writes
    /// to stdout only.
    pub file: Option<&'a Path>,
    /// Whether the generated characters are written to stdout, perhaps in addition to a file.
    pub stdout: bool,
    /// Time to wait after each character that is written; zero writes whole blocks.
    pub delay: Duration,
}

/// Reason why an input was not written to its end: an error of its output file, or another failure.
enum Broken {
    /// The output file could not be written, because of this error.
    File(io::Error),
    Other(Failure),
}

/// Writes the parts of an input to stdout, to a file, or to both, as `sinks` says, and returns the
/// number of bytes. If stdout is closed, the file is still written to its end. Fails if the file
/// exists.
pub fn send_parts(parts: Parts, sinks: &Sinks) -> Result<u64, Failure> {
    let mut stdout = sinks.stdout.then(standard_output).transpose()?;
    let Some(path) = sinks.file else {
        return match send(parts, &mut stdout, None, sinks.delay, None) {
            Ok(bytes) => Ok(bytes),
            Err(Broken::Other(failure)) => Err(failure),
            Err(Broken::File(error)) => Err(to_stdout(&error)),
        };
    };
    if path.symlink_metadata().is_ok() {
        return Err(exists(path));
    }
    let stop = stop_flag()?;
    atomic::remove_abandoned(folder::parent(path));
    record(path, |file| {
        send(parts, &mut stdout, Some(file), sinks.delay, Some(&stop))
    })
}

/// Creates a file at `path` with the bytes of `body`, and returns their number. When `stop` turns
/// true, removes the unfinished file and fails.
pub fn to_file(path: &Path, body: Box<dyn Read>, stop: &AtomicBool) -> Result<u64, Failure> {
    let parts = Parts {
        first: Vec::new(),
        body,
        body_from: None,
        epilog: Vec::new(),
    };
    record(path, |file| {
        send(parts, &mut None, Some(file), Duration::ZERO, Some(stop))
    })
}

/// Creates the file `path` and lets `send` write its content. The file appears when it is complete,
/// or not at all. Returns the number of bytes that `send` reports.
fn record(
    path: &Path,
    send: impl FnOnce(&mut File) -> Result<u64, Broken>,
) -> Result<u64, Failure> {
    let mut sent = 0;
    let mut failure = None;
    let written = atomic::create_new_from(path, |file| match send(file) {
        Ok(bytes) => {
            sent = bytes;
            Ok(())
        }
        Err(Broken::File(error)) => Err(error),
        Err(Broken::Other(why)) => {
            failure = Some(why);
            Err(io::Error::other("it was not finished"))
        }
    });
    match (failure, written) {
        (Some(failure), _) => Err(failure),
        (None, Ok(())) => Ok(sent),
        (None, Err(error)) if FileError::is_existing(&error) => Err(exists(path)),
        (None, Err(error)) => Err(error.into()),
    }
}

/// Builds the failure for an output file that exists already.
pub fn exists(path: &Path) -> Failure {
    Failure::usage(format!("{} exists already", path.display()))
        .path(path)
        .hint("give another file, or move this one away")
}

fn send(
    mut parts: Parts,
    stdout: &mut Option<File>,
    mut file: Option<&mut File>,
    delay: Duration,
    stop: Option<&AtomicBool>,
) -> Result<u64, Broken> {
    // The characters of `fuzz -d` come one at a time.
    let length = if delay.is_zero() { BLOCK } else { 1 };
    let mut block = vec![0; length];
    let mut sent = 0;
    let mut sources: [&mut dyn Read; 3] = [
        &mut parts.first.as_slice(),
        &mut parts.body,
        &mut parts.epilog.as_slice(),
    ];
    for source in &mut sources {
        loop {
            if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                let hint = "the unfinished file was removed; run the same command again";
                return Err(Broken::Other(Failure::interrupted().hint(hint)));
            }
            let read = match source.read(&mut block) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => {
                    let path = parts.body_from.unwrap_or_default();
                    return Err(Broken::Other(Failure::file(&path, "cannot read", &error)));
                }
            };
            if let Some(open) = stdout {
                match open.write_all(&block[..read]) {
                    Err(error) if error.kind() == ErrorKind::BrokenPipe => *stdout = None,
                    written => written.map_err(|error| Broken::Other(to_stdout(&error)))?,
                }
            }
            match &mut file {
                Some(file) => file.write_all(&block[..read]).map_err(Broken::File)?,
                None if stdout.is_none() => return Ok(sent),
                None => {}
            }
            sent += read as u64;
            wait(delay, stop);
        }
    }
    Ok(sent)
}

/// Waits for `delay`, or until `stop` turns true.
fn wait(delay: Duration, stop: Option<&AtomicBool>) {
    let mut left = delay;
    while !left.is_zero() && !stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
        let slice = left.min(SLICE);
        std::thread::sleep(slice);
        left -= slice;
    }
}

/// Returns stdout as a file, without the line buffer of the standard library.
fn standard_output() -> Result<File, Failure> {
    let owned = io::stdout().as_fd().try_clone_to_owned();
    owned.map(File::from).map_err(|error| to_stdout(&error))
}

fn to_stdout(error: &io::Error) -> Failure {
    Failure::new(
        Exit::Usage,
        "file",
        format!("writing the input to stdout: {error}"),
    )
}

/// Writes the inputs of a preset (a data set of the published fuzz studies) into `directory`, each
/// to a file of its name; if `count` is given, only that many of them. A file that exists with the
/// right bytes stays, so that a repeated command continues an interrupted one. Fails at a file with
/// other bytes.
pub fn write_preset(
    preset: Preset,
    seed: u64,
    count: Option<u64>,
    directory: &Path,
    output: &Output,
) -> Result<Exit, Failure> {
    let inputs = chosen(preset.inputs(seed).collect(), count);
    folder::create_all(directory)?;
    atomic::remove_abandoned(directory);
    let stop = stop_flag()?;
    let mut files = Vec::new();
    for (at, name) in inputs.iter().enumerate() {
        let file = directory.join(name.to_string());
        let bytes = match file.symlink_metadata() {
            Ok(_) => {
                let bytes = length_if_same(name, &file)
                    .map_err(|error| Failure::file(&file, "cannot read", &error))?;
                bytes.ok_or_else(|| exists(&file))?
            }
            Err(_) => to_file(&file, Box::new(name.stream()), &stop)?,
        };
        output.detail(&format!("{} of {}: {name}", at + 1, inputs.len()));
        files.push(WrittenFile {
            file: OsText::from(&absolute(&file)),
            name: Some(name.to_string()),
            bytes,
        });
    }
    let bytes = files.iter().map(|file| file.bytes).sum();
    let text = format!(
        "{} of {preset}, {}, in {}",
        size::counted(files.len() as u64, "input"),
        size::bytes(bytes),
        absolute(directory).display()
    );
    output.result(&text, &Written { files, bytes });
    Ok(Exit::Done)
}

/// Chooses `count` inputs from `all`, at even distances. The list is sorted by kind, so all kinds
/// are among them. `None` chooses all.
fn chosen(all: Vec<InputName>, count: Option<u64>) -> Vec<InputName> {
    let length = all.len();
    let count = count.map_or(length, |count| {
        usize::try_from(count).unwrap_or(length).min(length)
    });
    (0..count).map(|at| all[at * length / count]).collect()
}

/// Returns the length in bytes of the file `file` if its content is the input that `name`
/// describes. `None` if the content differs, or if `file` is not a regular file.
fn length_if_same(name: &InputName, file: &Path) -> io::Result<Option<u64>> {
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut file = BufReader::new(File::open(file)?);
    let mut expected = name.stream();
    let (mut ours, mut theirs) = (vec![0; 64 << 10], Vec::new());
    let mut bytes = 0;
    loop {
        let read = expected.read(&mut ours)?;
        if read == 0 {
            // The file must end where the expected input ends.
            return Ok((file.read(&mut [0])? == 0).then_some(bytes));
        }
        theirs.resize(read, 0);
        match file.read_exact(&mut theirs) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            done => done?,
        }
        if theirs != ours[..read] {
            return Ok(None);
        }
        bytes += read as u64;
    }
}
