//! Passes inputs to a target: on stdin (a memory file), in named files, or many at once to a
//! process that runs them one after the other.

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::{Whence, lseek};
use std::fs::{File, OpenOptions, Permissions};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::{ffi::CStr, io};

use crate::accesses::{Accesses, set_unread};
use crate::prepared_target::Identity;
use crate::protocol::flag;
use crate::shared_page::{MOST_INPUTS, Mapping, keep_length};
use crate::{sample_text, scratch, two_files};

/// Mode of named input files: readable by everybody, because the target may run as another user.
const INPUT_FILE_MODE: u32 = 0o644;

pub(crate) fn memory_file(name: &CStr) -> nix::Result<OwnedFd> {
    memfd_create(name, MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)
}

/// Passes inputs to a target that takes one at a time, on stdin or in named files. Each run's input
/// overwrites the same files, so that a fork server can hold them open.
pub(crate) struct Input {
    /// The memory file on stdin, opened for writing; `None` if the input is in named files only and
    /// stdin is empty.
    writer: Option<File>,
    /// The memory file that the target has as stdin, opened read-only, so that the target cannot
    /// write to it.
    stdin: File,
    length: u64,
    files: NamedFiles,
}

enum NamedFiles {
    None,
    One(NamedFile),
    /// A file with the input for an interestingness test, which gets the same input on stdin as
    /// well.
    InAddition(NamedFile),
    /// Two files, into which the input is split by [`two_files`].
    Two([NamedFile; 2]),
    /// The file with the sample text that the target edits, if there is one; the input itself is
    /// typed at a terminal.
    AtTerminal(Option<NamedFile>),
}

impl Input {
    pub(crate) fn on_stdin() -> io::Result<Input> {
        let (writer, stdin) = read_only_file(c"ddfuzz-input")?;
        Ok(Input {
            writer: Some(writer),
            stdin,
            length: 0,
            files: NamedFiles::None,
        })
    }

    /// Makes an input channel by a new file at `path`, with an empty stdin.
    pub(crate) fn in_file(path: &Path) -> io::Result<Input> {
        Input::in_files(NamedFiles::One(NamedFile::create(path, None)?))
    }

    /// Makes an input channel by two new files, into which each input is split, with an empty
    /// stdin.
    pub(crate) fn in_two_files(first: &Path, second: &Path) -> io::Result<Input> {
        let [first, second] = [first, second].map(|path| NamedFile::create(path, None));
        Input::in_files(NamedFiles::Two([first?, second?]))
    }

    /// Makes the input channel of an interestingness test: stdin, and in addition a new file at
    /// `path`.
    pub(crate) fn of_test(path: &Path) -> io::Result<Input> {
        Ok(Input {
            files: NamedFiles::InAddition(NamedFile::create(path, None)?),
            ..Input::on_stdin()?
        })
    }

    /// Makes the files of a target whose input is typed at a terminal: an empty stdin, and at
    /// `path`, if given, the sample text that the target edits.
    pub(crate) fn at_terminal(path: Option<&Path>) -> io::Result<Input> {
        let file = path.map(|path| NamedFile::create(path, None));
        Input::in_files(NamedFiles::AtTerminal(file.transpose()?))
    }

    /// Makes the named input files belong to `owner`, the user that runs the target (`None`: the
    /// current user), so that the target can open them for writing, too. The same holds for files
    /// that replace them later.
    pub(crate) fn give_to(&mut self, owner: Option<Identity>) -> io::Result<()> {
        let files = match &mut self.files {
            NamedFiles::None => &mut [],
            NamedFiles::One(file) | NamedFiles::InAddition(file) => std::slice::from_mut(file),
            NamedFiles::Two(files) => files,
            NamedFiles::AtTerminal(file) => file.as_mut_slice(),
        };
        for file in files {
            file.owner = owner;
            give(&file.writer, owner)?;
        }
        Ok(())
    }

    fn in_files(files: NamedFiles) -> io::Result<Input> {
        let (_, stdin) = read_only_file(c"ddfuzz-empty")?;
        Ok(Input {
            writer: None,
            stdin,
            length: 0,
            files,
        })
    }

    /// Writes `bytes` to where the target's next run reads its input: to the memory file on stdin
    /// or to the named files. For a target at a terminal, writes the sample text to its file
    /// instead.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if matches!(self.files, NamedFiles::InAddition(_)) {
            self.refresh_length()?; // tests may run as root
        }
        match &mut self.files {
            NamedFiles::None => {}
            NamedFiles::One(file) | NamedFiles::InAddition(file) => file.write(bytes)?,
            NamedFiles::Two([first, second]) => {
                let (up_to, behind) = two_files(bytes);
                first.write(up_to)?;
                second.write(behind)?;
            }
            NamedFiles::AtTerminal(None) => {}
            // The last run may have changed the sample text.
            NamedFiles::AtTerminal(Some(file)) => file.write(sample_text())?,
        }
        if let Some(writer) = &self.writer {
            put(writer, bytes, self.length)?;
        }
        self.length = bytes.len() as u64;
        self.forget_reads();
        Ok(())
    }

    /// Marks the memory file on stdin as unread, by its time of last access, before the next run.
    /// Where that fails, only the file offset will show ([`read_so_far`](Input::read_so_far))
    /// whether the run has read stdin.
    fn forget_reads(&self) {
        if let Some(writer) = &self.writer {
            set_unread(writer);
        }
    }

    /// Replaces stdin and all input files by new ones: processes of earlier runs may hold the old
    /// files open.
    pub(crate) fn renew(&mut self) -> io::Result<()> {
        *self = match &mut self.files {
            NamedFiles::None => Input::on_stdin()?,
            NamedFiles::One(file) => Input::in_files(NamedFiles::One(file.recreate()?))?,
            NamedFiles::InAddition(file) => Input {
                files: NamedFiles::InAddition(file.recreate()?),
                ..Input::on_stdin()?
            },
            NamedFiles::Two([first, second]) => {
                Input::in_files(NamedFiles::Two([first.recreate()?, second.recreate()?]))?
            }
            NamedFiles::AtTerminal(file) => {
                let again = file.as_mut().map(NamedFile::recreate).transpose()?;
                Input::in_files(NamedFiles::AtTerminal(again))?
            }
        };
        Ok(())
    }

    /// Reads the length of the memory file on stdin again: a target that runs as root may have
    /// changed it.
    fn refresh_length(&mut self) -> io::Result<()> {
        if let Some(writer) = &self.writer {
            self.length = writer.metadata()?.len();
        }
        Ok(())
    }

    /// Returns the file into which a whole input is written, or the two into which it is split;
    /// empty if the input reaches the target in another way.
    fn writers(&self) -> Vec<&File> {
        match &self.files {
            NamedFiles::None => self.writer.iter().collect(),
            NamedFiles::One(file) => vec![&file.writer],
            NamedFiles::Two([first, second]) => vec![&first.writer, &second.writer],
            NamedFiles::InAddition(_) | NamedFiles::AtTerminal(_) => Vec::new(),
        }
    }

    /// Whether the target would still find the input files that ddfuzz writes to: true unless one
    /// was deleted or replaced at its path, or its permissions changed. Always true for stdin.
    fn is_in_place(&self) -> bool {
        let is_there = |file: &NamedFile| is_at(&file.writer, &file.path);
        match &self.files {
            NamedFiles::One(file) => is_there(file),
            NamedFiles::Two(files) => files.iter().all(is_there),
            NamedFiles::None | NamedFiles::InAddition(_) | NamedFiles::AtTerminal(_) => true,
        }
    }

    /// Returns the read-only memory file that the fork server puts on the target's stdin; it holds
    /// the input, or is empty.
    pub(crate) fn stdin(&self) -> &File {
        &self.stdin
    }

    /// Sets the file offset of the target's stdin, which ddfuzz and the target share, to 0 before a
    /// run of AFL++'s server; ddfuzz's own servers reset the offset themselves.
    pub(crate) fn rewind(&self) -> io::Result<()> {
        lseek(&self.stdin, 0, Whence::SeekSet)?;
        Ok(())
    }

    fn named_files(&self) -> &[NamedFile] {
        match &self.files {
            NamedFiles::None | NamedFiles::AtTerminal(_) => &[],
            NamedFiles::One(file) | NamedFiles::InAddition(file) => std::slice::from_ref(file),
            NamedFiles::Two(files) => files,
        }
    }

    /// Returns device and inode of the target's stdin and of its input files, by which the target's
    /// uses of the input are recognised.
    pub(crate) fn identities(&self) -> Vec<(u64, u64)> {
        let files = self.named_files().iter().map(|file| &file.writer);
        let facts = files.chain([&self.stdin]).flat_map(File::metadata);
        facts.map(|facts| (facts.dev(), facts.ino())).collect()
    }

    /// Returns what shows that a run has changed its input files: whether each is still where the
    /// target finds it, its size in bytes, and the time of its last change (seconds, nanoseconds).
    pub(crate) fn states(&self) -> Vec<(bool, u64, i64, i64)> {
        let named = self.named_files().iter();
        let named = named.map(|file| (is_at(&file.writer, &file.path), &file.writer));
        let all = named.chain([(true, &self.stdin)]);
        let state = |(is_there, file): (bool, &File)| {
            let facts = file.metadata().ok()?;
            Some((is_there, facts.len(), facts.mtime(), facts.mtime_nsec()))
        };
        all.filter_map(state).collect()
    }

    /// Sets the times of last access by which [`is_unread`](Input::is_unread) tells whether the
    /// next run reads its named files.
    pub(crate) fn forget_accesses(&mut self) {
        let files = match &mut self.files {
            NamedFiles::One(file) => std::slice::from_mut(file),
            NamedFiles::Two(files) => files,
            NamedFiles::None | NamedFiles::InAddition(_) | NamedFiles::AtTerminal(_) => return,
        };
        for file in files {
            file.accesses = file.accesses.forget(&file.writer, &file.path);
        }
    }

    /// Whether the run has not read the input, which is in named files, since
    /// [`forget_accesses`](Input::forget_accesses). False where that cannot be told: the file
    /// system does not record when files are read, or the input also comes in another way.
    pub(crate) fn is_unread(&self) -> bool {
        let is_unread = |file: &NamedFile| file.accesses.show_none(&file.writer);
        match &self.files {
            NamedFiles::One(file) => is_unread(file),
            NamedFiles::Two(files) => files.iter().all(is_unread),
            NamedFiles::None | NamedFiles::InAddition(_) | NamedFiles::AtTerminal(_) => false,
        }
    }

    /// Returns the number of bytes that the last run read from stdin; `None` if the input is not on
    /// stdin, or was read without a trace in the offset: the target has sought back, maps it, or
    /// opens it anew.
    pub(crate) fn read_so_far(&self) -> Option<u64> {
        let writer = self.writer.as_ref()?;
        let at = lseek(&self.stdin, 0, Whence::SeekCur).ok()?;
        let at = u64::try_from(at).ok()?.min(self.length);
        let is_known = at > 0 || self.length == 0 || Accesses::Recorded.show_none(writer);
        is_known.then_some(at)
    }
}

/// A file with an input or a part of it. Dropping it deletes the file.
struct NamedFile {
    writer: File,
    path: PathBuf,
    /// The user that runs the target; `None` if it is the current user.
    owner: Option<Identity>,
    accesses: Accesses,
}

impl NamedFile {
    fn create(path: &Path, owner: Option<Identity>) -> io::Result<NamedFile> {
        Ok(NamedFile {
            writer: create(path, owner)?,
            path: path.to_owned(),
            owner,
            accesses: Accesses::Untried,
        })
    }

    /// Deletes this input file, and returns a new one that is created at the same path.
    fn recreate(&mut self) -> io::Result<NamedFile> {
        scratch::remove(&self.path);
        NamedFile::create(&std::mem::take(&mut self.path), self.owner)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        // If the target owns the file, it may have changed, moved or deleted it.
        if !is_at(&self.writer, &self.path) {
            scratch::remove(&self.path);
            self.writer = create(&self.path, self.owner)?;
        }
        put(&self.writer, bytes, self.writer.metadata()?.len())
    }
}

impl Drop for NamedFile {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            scratch::remove(&self.path);
        }
    }
}

fn put(file: &File, bytes: &[u8], length: u64) -> io::Result<()> {
    file.write_all_at(bytes, 0)?;
    match bytes.len() as u64 {
        same if same == length => Ok(()),
        other => file.set_len(other),
    }
}

fn create(path: &Path, owner: Option<Identity>) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.set_permissions(Permissions::from_mode(INPUT_FILE_MODE))?;
    give(&file, owner)?;
    Ok(file)
}

fn give(file: &File, owner: Option<Identity>) -> io::Result<()> {
    match owner {
        Some(Identity { uid, gid }) => fchown(file, Some(uid), Some(gid)),
        None => Ok(()),
    }
}

/// Whether `path` still names the open input file `file`, with unchanged permissions.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(ours), Ok(named)) => {
            (ours.dev(), ours.ino()) == (named.dev(), named.ino())
                && ours.mode() & 0o7777 == INPUT_FILE_MODE
        }
        _ => false,
    }
}

/// Creates a memory file; returns it opened twice: for writing, and read-only. The file has no
/// write permission, so that nobody can open it for writing by /dev/stdin.
fn read_only_file(name: &CStr) -> io::Result<(File, File)> {
    let writer = File::from(memory_file(name)?);
    writer.set_permissions(Permissions::from_mode(0o444))?;
    let reader = File::open(format!("/proc/self/fd/{}", writer.as_raw_fd()))?;
    Ok((writer, reader))
}

/// Number of bytes at the beginning of an input batch's file that ddfuzz and the target map
/// (`MAPPED_INPUT` of `runtime/loop.c`).
const MAPPED: usize = 4 << 20;

/// Passes many inputs at once to a target process that runs them one after the other; they are
/// stored in one memory file.
pub(crate) struct InputBatch {
    writer: File,
    /// The memory file with a batch of inputs, opened read-only for the fork server.
    reader: File,
    mapping: Mapping,
    /// Offset and length, in bytes, of each input of the batch in the memory file.
    pub(crate) places: Vec<(u64, u64)>,
}

impl InputBatch {
    /// Creates the memory file for batches of inputs and maps its beginning.
    pub(crate) fn create() -> io::Result<InputBatch> {
        let (writer, reader) = read_only_file(c"ddfuzz-inputs")?;
        writer.set_len(MAPPED as u64)?;
        keep_length(&writer)?;
        let mapping = Mapping::shared(&writer, MAPPED)?;
        Ok(InputBatch {
            writer,
            reader,
            mapping,
            places: Vec::new(),
        })
    }

    /// Returns the memory file with the batch of inputs, opened read-only for the fork server.
    pub(crate) fn reader(&self) -> &File {
        &self.reader
    }

    /// Replaces the inputs in the batch's file by the first of `inputs` and as many more as one
    /// request to the fork server takes, and sets `places` to their offsets and lengths. A first
    /// input that is larger than the mapped part of the file is written after that part.
    pub(crate) fn write(&mut self, inputs: &[&[u8]]) -> io::Result<()> {
        self.places.clear();
        let mut at = 0;
        for input in inputs.iter().take(MOST_INPUTS) {
            if input.len() > MAPPED - at {
                break;
            }
            self.mapping.write(at, input);
            self.places.push((at as u64, input.len() as u64));
            at += input.len();
        }
        if let (true, Some(input)) = (self.places.is_empty(), inputs.first()) {
            self.writer.write_all_at(input, MAPPED as u64)?;
            self.places.push((MAPPED as u64, input.len() as u64));
        }
        Ok(())
    }
}

/// Length, in bytes, of the largest input that the runner (a process that makes many runs) copies
/// itself into the target's input file.
const MOST_WRITTEN: usize = 1 << 20;

/// Passes inputs to a runner, a process that runs many inputs one after the other: the inputs of a
/// request are in one memory file, and the runner copies each into the file from which the target
/// reads.
pub(crate) struct RunnerInput {
    input: Input,
    batch: InputBatch,
    /// Whether the next request has a single input, which a fork of the server runs in place of the
    /// runner (the process that makes many runs). Since only the runner copies inputs, ddfuzz then
    /// writes the input into the target's file itself.
    pub(crate) writes_itself: bool,
    /// Number of inputs that were written for the last request to the runner (a process that makes
    /// many runs).
    count: usize,
    /// Whether ddfuzz has written the only input of the last request into the target's file, so
    /// that the runner (the process that makes many runs) need not copy it.
    pub(crate) in_place: bool,
}

impl RunnerInput {
    pub(crate) fn new(input: Input) -> io::Result<RunnerInput> {
        Ok(RunnerInput {
            input,
            batch: InputBatch::create()?,
            writes_itself: false,
            count: 0,
            in_place: false,
        })
    }

    /// Returns the files that are shared with the runner, the process that makes many runs: the
    /// one or two into which it copies the input of a run (none if the input reaches the target in
    /// another way), and the memory file in which the inputs of one request arrive.
    pub(crate) fn files(&self) -> io::Result<(Vec<File>, File)> {
        let writers = self.input.writers().into_iter().map(File::try_clone);
        Ok((
            writers.collect::<io::Result<_>>()?,
            self.batch.reader.try_clone()?,
        ))
    }

    pub(crate) fn places(&self) -> &[(u64, u64)] {
        &self.batch.places
    }

    /// Returns the flags of the next request to the fork server, which tell which process makes the
    /// run, and where its input is.
    pub(crate) fn flags(&self) -> u64 {
        let in_place = if self.in_place { flag::IN_PLACE } else { 0 };
        let forked = if self.writes_itself { flag::FORKED } else { 0 };
        let are_two = matches!(self.input.files, NamedFiles::Two(_));
        in_place | forked | if are_two { flag::TWO_FILES } else { 0 }
    }

    fn write(&mut self, inputs: &[&[u8]]) -> io::Result<()> {
        let first = inputs.first().copied().unwrap_or_default();
        if !self.input.is_in_place() {
            self.input.write(first)?; // makes the file again
        }
        let has_writer = !self.input.writers().is_empty();
        self.in_place = self.writes_itself || !has_writer || first.len() > MOST_WRITTEN;
        self.count = 1;
        if self.in_place {
            self.input.refresh_length()?;
            self.input.write(first)?;
            self.batch.places.clear();
            self.batch.places.push((0, first.len() as u64));
            return Ok(());
        }
        let small = inputs
            .iter()
            .take_while(|input| input.len() <= MOST_WRITTEN);
        self.batch.write(&inputs[..small.count()])?;
        self.count = self.batch.places.len();
        self.input.length = first.len() as u64;
        if self.count == 1 {
            self.input.forget_reads();
        }
        Ok(())
    }

    /// Returns how many bytes of stdin the last run has read; `None` if the last request had
    /// several inputs, or the input is not on stdin.
    fn read_so_far(&self) -> Option<u64> {
        match self.count {
            1 => self.input.read_so_far(),
            _ => None,
        }
    }
}

/// How inputs reach a target behind a fork server: one per request, or many.
pub(crate) enum InputChannel {
    Single(Input),
    Batch(InputBatch),
    Runner(RunnerInput),
}

impl InputChannel {
    /// Writes inputs to where the target reads them: the first of `inputs`, and as many of the next
    /// ones as a single request to the fork server may have.
    pub(crate) fn put(&mut self, inputs: &[&[u8]]) -> io::Result<()> {
        match self {
            InputChannel::Single(input) => input.write(inputs.first().copied().unwrap_or_default()),
            InputChannel::Batch(many) => many.write(inputs),
            InputChannel::Runner(runner) => runner.write(inputs),
        }
    }

    /// Replaces all input files by new ones: processes of earlier runs may hold the old files open.
    pub(crate) fn renew(&mut self) -> io::Result<()> {
        match self {
            InputChannel::Single(input) => input.renew()?,
            InputChannel::Batch(many) => *many = InputBatch::create()?,
            InputChannel::Runner(runner) => runner.input.renew()?,
        }
        Ok(())
    }

    pub(crate) fn file(&self) -> &File {
        match self {
            InputChannel::Single(input) => input.stdin(),
            InputChannel::Batch(many) => &many.reader,
            InputChannel::Runner(runner) => runner.input.stdin(),
        }
    }

    /// Whether the target has replaced a file into which a runner (a process that makes many runs)
    /// copies inputs. `before`: the [`identities`](InputChannel::identities) of the files when the
    /// runner was started. Always false without a runner.
    pub(crate) fn is_replaced(&self, before: &[(u64, u64)]) -> bool {
        match self {
            InputChannel::Runner(runner) => {
                !runner.input.writers().is_empty() && runner.input.identities() != before
            }
            InputChannel::Single(_) | InputChannel::Batch(_) => false,
        }
    }

    /// Returns device and inode of the files from which the target reads its input, stdin included;
    /// empty for a batch of inputs, which an entry function gets from memory.
    pub(crate) fn identities(&self) -> Vec<(u64, u64)> {
        match self {
            InputChannel::Single(input) => input.identities(),
            InputChannel::Runner(runner) => runner.input.identities(),
            InputChannel::Batch(_) => Vec::new(),
        }
    }

    /// Returns how many bytes the target has read from stdin in the last run; `None` where unknown.
    pub(crate) fn read_so_far(&self) -> Option<u64> {
        match self {
            InputChannel::Single(input) => input.read_so_far(),
            InputChannel::Batch(_) => None,
            InputChannel::Runner(runner) => runner.read_so_far(),
        }
    }
}

#[cfg(test)]
mod tests;
