//! The versions of a program, read by the command line of git.
//!
//! The user's repository is only read: a private, bare repository below the output directory
//! borrows its objects (`objects/info/alternates`), and git writes only to the private repository.
//! If the versions are two directories, they become two commits of such a repository.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ChangesError;
use crate::change_set::{FileChange, Hunk};
use crate::git::{command_line, each_line, fed, finished, git, git_in, isolated, line, output};
pub use crate::git_text::Commit;
use crate::git_text::{commits, hunks, quoted, raw_changes, tree};
use crate::tree::{Content, Tree};

/// Git attributes that name the language of source files by their endings, so that git finds the
/// function that contains a hunk.
const ATTRIBUTES: &str = "*.c diff=cpp\n*.h diff=cpp\n*.cc diff=cpp\n*.cpp diff=cpp\n*.cxx diff=cpp\n\
*.hh diff=cpp\n*.hpp diff=cpp\n*.rs diff=rust\n*.py diff=python\n*.go diff=golang\n*.java diff=java\n\
*.kt diff=kotlin\n*.cs diff=csharp\n*.pl diff=perl\n*.pm diff=perl\n*.rb diff=ruby\n*.php diff=php\n\
*.sh diff=bash\n*.ex diff=elixir\n*.m diff=objc\n*.f90 diff=fortran\n*.adb diff=ada\n*.pas diff=pascal\n\
*.css diff=css\n*.html diff=html\n*.md diff=markdown\n*.scm diff=scheme\n*.tex diff=tex\n";

/// A private, bare git repository in the output directory, which reads the objects of the user's
/// repository and never writes to the latter. All access to versions, differences and history goes
/// through it.
pub struct Repository {
    folder: PathBuf,
    contents: Mutex<Option<Contents>>,
    /// Paths of the directories without files in the imported directories; git commits cannot have
    /// such directories.
    empty_folders: Mutex<BTreeSet<Vec<u8>>>,
}

/// A running process `git cat-file --batch`, which is asked for object ids and returns the contents
/// of the objects.
struct Contents {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Drop for Contents {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

impl Repository {
    /// Creates a private repository in `folder` that borrows the objects of the user's repository
    /// at `source`, so that nothing is copied. What is in `folder` is removed.
    ///
    /// # Errors
    /// If git refuses, or files cannot be written.
    pub fn borrowing(source: &Path, folder: &Path) -> Result<Repository, ChangesError> {
        let ask = |words: &[&str]| output(git_in(source).arg("rev-parse").args(words)).map(line);
        let format = ask(&["--show-object-format"])?;
        let objects = ask(&["--path-format=absolute", "--git-path", "objects"])?;
        let shallow = ask(&["--path-format=absolute", "--git-path", "shallow"])?;
        let repository = Repository::empty(folder, &format)?;
        let written = repository.written().join("objects");
        write(
            &folder.join("objects/info/alternates"),
            format!("{objects}\n{}\n", written.display()).as_bytes(),
        )?;
        if let Ok(cut) = std::fs::read(shallow) {
            write(&folder.join("shallow"), &cut)?;
        }
        Ok(repository)
    }

    /// Creates a private repository in `folder` without any commits, for [`Repository::import`].
    /// `format` is the hash function of object ids, such as `sha1`. What is in `folder` is removed.
    ///
    /// # Errors
    /// If git refuses, or files cannot be written.
    pub fn empty(folder: &Path, format: &str) -> Result<Repository, ChangesError> {
        if folder.exists() {
            std::fs::remove_dir_all(folder).map_err(ChangesError::at("removing", folder))?;
        }
        let repository = Repository {
            folder: folder.to_owned(),
            contents: Mutex::new(None),
            empty_folders: Mutex::default(),
        };
        for folder in [folder, &repository.written()] {
            let mut command = isolated(&mut git());
            command.args(["init", "--quiet", "--bare", "--template="]);
            let format = format!("--object-format={format}");
            output(command.arg(format).arg(folder))?;
        }
        for part in ["info", "objects/info"] {
            let part = folder.join(part);
            std::fs::create_dir_all(&part).map_err(ChangesError::at("creating", &part))?;
        }
        write(&folder.join("info/attributes"), ATTRIBUTES.as_bytes())?;
        let written = repository.written().join("objects");
        write(
            &folder.join("objects/info/alternates"),
            format!("{}\n", written.display()).as_bytes(),
        )?;
        Ok(repository)
    }

    /// Returns the folder of a second repository inside this one, into which git writes new
    /// objects. It borrows no objects of the user's repository: when git writes an object that
    /// already exists, it changes the time of the object's file, and must not do so to a file of
    /// the user.
    fn written(&self) -> PathBuf {
        self.folder.join("written")
    }

    /// Returns a git command that works on this private repository, without the git settings of
    /// user and system.
    fn git(&self) -> Command {
        let mut command = isolated(&mut git());
        command.env("GIT_DIR", &self.folder);
        command
    }

    /// Returns a git command that writes new objects, into the second repository in the folder
    /// [`written`](Repository::written).
    fn writing_git(&self) -> Command {
        let mut command = isolated(&mut git());
        command.env("GIT_DIR", self.written());
        command
    }

    /// Stores the files of a directory as a commit without parents on the branch `name`, and
    /// returns the commit's id. Left out are folders named `.git`, the folder `without` (a
    /// canonical path), and everything that is not a file, folder or symbolic link. Folders without
    /// files are remembered: see [`Repository::empty_folders`].
    ///
    /// # Errors
    /// If a folder or file cannot be read, or git refuses.
    pub fn import(
        &self,
        directory: &Path,
        name: &str,
        without: Option<&Path>,
    ) -> Result<String, ChangesError> {
        let directory =
            std::fs::canonicalize(directory).map_err(ChangesError::at("finding", directory))?;
        let mut command = self.git();
        command
            .args(["fast-import", "--quiet", "--done"])
            .stdin(Stdio::piped());
        let started = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = started.map_err(ChangesError::system("starting git fast-import"))?;
        let header =
            format!("commit refs/heads/{name}\ncommitter ddfuzz <ddfuzz> 0 +0000\ndata 0\n");
        if let Some(mut stdin) = child.stdin.take() {
            let broken = ChangesError::system("writing to git fast-import");
            let sent = stdin.write_all(header.as_bytes());
            sent.map_err(broken)?;
            let mut empty = self.lock_empty_folders();
            send_folder(&directory, Path::new(""), without, &mut empty, &mut stdin)?;
            stdin
                .write_all(b"done\n")
                .map_err(ChangesError::system("writing to git fast-import"))?;
        }
        let done = child
            .wait_with_output()
            .map_err(ChangesError::system("waiting for git"))?;
        finished("fast-import".to_owned(), done)?;
        let revision = format!("refs/heads/{name}^{{commit}}");
        output(self.git().args(["rev-parse", "--verify", &revision])).map(line)
    }

    /// Returns the paths of the folders that contain no files in at least one of the imported
    /// directories. They are created in each version, because a build may need them, although git
    /// stores no empty folders.
    pub fn empty_folders(&self) -> BTreeSet<Vec<u8>> {
        self.lock_empty_folders().clone()
    }

    fn lock_empty_folders(&self) -> MutexGuard<'_, BTreeSet<Vec<u8>>> {
        let held = self.empty_folders.lock();
        held.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all files of the commit with the id `commit`, with their paths, modes and object
    /// ids.
    ///
    /// # Errors
    /// If git cannot read the commit, or a path leads out of the version's directory.
    pub fn tree(&self, commit: &str) -> Result<Tree, ChangesError> {
        let listed = output(
            self.git()
                .args(["ls-tree", "-r", "-z", "--full-tree", commit]),
        )?;
        tree(&listed)
    }

    /// Returns the content of the git object with the id `id`, such as that of a file.
    ///
    /// # Errors
    /// If the object is missing, for example in a partial clone.
    pub fn read(&self, id: &str) -> Result<Vec<u8>, ChangesError> {
        let mut held = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = ChangesError::system("reading an object by git cat-file");
        if held.is_none() {
            let mut command = self.git();
            command.args(["cat-file", "--batch"]).stdin(Stdio::piped());
            let started = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
            let mut child = started.map_err(ChangesError::system("starting git cat-file"))?;
            if let Some(stdout) = child.stdout.take() {
                let answers = BufReader::new(stdout);
                *held = Some(Contents { child, answers });
            }
        }
        match held.as_mut().map(|contents| contents.read(id)) {
            Some(Ok(Some(content))) => Ok(content),
            Some(Err(error)) => Err(failed(error)),
            Some(Ok(None)) | None => Err(ChangesError::MissingObject { id: id.to_owned() }),
        }
    }

    /// Returns the bytes of a file's content, which a tree holds as a git object or directly.
    ///
    /// # Errors
    /// As [`read`](Repository::read).
    pub fn content(&self, content: &Content) -> Result<Vec<u8>, ChangesError> {
        match content {
            Content::Object(id) => self.read(id),
            Content::Bytes(bytes, _) => Ok(bytes.to_vec()),
        }
    }

    /// Returns the commits of the first-parent line of `new` that come after `old`, oldest first;
    /// `None` if `old` is not on that line.
    ///
    /// # Errors
    /// If git cannot read the history.
    pub fn line(&self, old: &str, new: &str) -> Result<Option<Vec<Commit>>, ChangesError> {
        let range = format!("{old}..{new}");
        let commits = self.log(&["--first-parent", "--reverse", &range])?;
        let first = commits.first();
        let joined = first.is_some_and(|first| first.parents.first().is_some_and(|id| id == old));
        Ok(joined.then_some(commits))
    }

    /// Returns the commit with the id `id`; `None` if git prints none.
    ///
    /// # Errors
    /// If git cannot read the commit.
    pub fn commit(&self, id: &str) -> Result<Option<Commit>, ChangesError> {
        Ok(self.log(&["--no-walk", id])?.pop())
    }

    /// Returns the commits with the ids `ids`, newest first.
    ///
    /// # Errors
    /// If git cannot read the commits.
    pub fn commits(&self, ids: &[&str]) -> Result<Vec<Commit>, ChangesError> {
        match ids {
            [] => Ok(Vec::new()),
            ids => self.log(&[&["--no-walk"][..], ids].concat()),
        }
    }

    /// Returns the commits after `old` up to `new`, on all branches of the history between them,
    /// that change the file at `path`, newest first and without merges. With `follows`, also those
    /// that changed it before it was renamed.
    ///
    /// # Errors
    /// If git cannot read the history.
    pub fn commits_of(
        &self,
        (old, new): (&str, &str),
        path: &[u8],
        follows: bool,
    ) -> Result<Vec<Commit>, ChangesError> {
        let range = format!("{old}..{new}");
        let mut command = self.git();
        command
            .arg("--literal-pathspecs")
            .args(["log", "-z", FORMAT, "--no-merges"]);
        if follows {
            command.arg("--follow");
        }
        command.arg(range).arg("--");
        Ok(commits(&output(command.arg(OsStr::from_bytes(path)))?))
    }

    /// Returns, for each line of the file at `path` in the version `new`, the id of the commit
    /// after `old` that added the line (by `git blame`); `None` for a line that the version `old`
    /// has already.
    ///
    /// # Errors
    /// If git cannot read the history.
    pub fn blame(
        &self,
        (old, new): (&str, &str),
        path: &[u8],
    ) -> Result<Vec<Option<String>>, ChangesError> {
        let range = format!("{old}..{new}");
        let mut command = self.git();
        command.args(["blame", "-s", "-l", &range, "--"]);
        let text = output(command.arg(OsStr::from_bytes(path)))?;
        let id = |line: &[u8]| {
            let line = String::from_utf8_lossy(line);
            let id = line.split(' ').next().unwrap_or_default();
            // Lines of the old version begin with ^.
            (!id.starts_with('^')).then(|| id.to_owned())
        };
        let lines = ddfuzz_delta::lines(&text);
        Ok(lines.into_iter().map(id).collect())
    }

    /// Returns the number of commits after the version `old` up to `new`, on all branches of the
    /// history between them; 0 if git prints no number.
    ///
    /// # Errors
    ///
    /// If git cannot read the history.
    pub fn commit_count(&self, (old, new): (&str, &str)) -> Result<u64, ChangesError> {
        let range = format!("{old}..{new}");
        let count = output(self.git().args(["rev-list", "--count", &range]))?;
        Ok(line(count).parse().unwrap_or(0))
    }

    fn log(&self, words: &[&str]) -> Result<Vec<Commit>, ChangesError> {
        Ok(commits(&output(
            self.git().args(["log", "-z", FORMAT]).args(words),
        )?))
    }

    /// Returns the id of the best common ancestor of two commits; `None` if there is none, or git
    /// fails.
    ///
    /// # Errors
    /// If git cannot be started, or is ended by a signal.
    pub fn merge_base(&self, one: &str, other: &str) -> Result<Option<String>, ChangesError> {
        match output(self.git().args(["merge-base", one, other])) {
            Ok(found) => Ok(Some(line(found)).filter(|id| !id.is_empty())),
            Err(ChangesError::Git { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns, for each commit of the first-parent line `commits` after `old`, how much it
    /// changes: its number of hunks and binary files, plus 1. A bisection uses these weights to
    /// divide the line.
    ///
    /// # Errors
    /// If git cannot compare the commits.
    pub fn weights(&self, old: &str, commits: &[Commit]) -> Result<Vec<u64>, ChangesError> {
        let Some(last) = commits.last() else {
            return Ok(Vec::new());
        };
        let range = format!("{old}..{}", last.id);
        let mut command = self.git();
        command.args(["log", "--first-parent", "--reverse", "--format=%x00", "-m"]);
        command.args(PATCH);
        let mut weights: Vec<u64> = Vec::new();
        // A NUL stands before each commit.
        each_line(command.arg(range), |line| {
            for (at, part) in line.split(|byte| *byte == 0).enumerate() {
                if at > 0 {
                    weights.push(1);
                }
                let is_counted = part.starts_with(b"@@ ") || part.starts_with(b"Binary files");
                if let Some(weight) = weights.last_mut().filter(|_| is_counted) {
                    *weight += 1;
                }
            }
        })?;
        // A patch with NUL bytes would be counted wrongly, and weights only decide the order.
        weights.resize(commits.len(), 1);
        Ok(weights)
    }

    /// Returns the files that differ between two commits, each with the hunks of `git diff -U0`.
    ///
    /// # Errors
    /// If git cannot compare the commits, or a path leads out of the version's directory.
    pub fn compare(&self, old: &str, new: &str) -> Result<Vec<FileChange>, ChangesError> {
        let mut raw = self.git();
        raw.args(["diff-tree", "-r", "-z", "-M", "--raw", "--no-abbrev"]);
        let mut files = raw_changes(&output(raw.args([old, new]))?)?;
        let mut patch = self.git();
        patch.args(["diff-tree", "-r"]).args(PATCH);
        let patch = output(patch.args([old, new]))?;
        let mut sections = hunks(&patch).into_iter();
        for file in &mut files {
            let mut sections: Vec<Vec<Hunk>> = sections.by_ref().take(file.sections()).collect();
            if file.has_lines() && sections.len() == 1 {
                file.hunks = sections.remove(0);
            }
        }
        Ok(files)
    }

    /// Returns the patch, in the format of `git apply`, that turns the tree `old` into the tree
    /// `new`.
    ///
    /// # Errors
    /// If git cannot store or compare the trees.
    pub fn patch(&self, old: &Tree, new: &Tree) -> Result<Vec<u8>, ChangesError> {
        let (old, new) = (self.store(old)?, self.store(new)?);
        let mut command = self.git();
        command.args([
            "diff-tree",
            "-r",
            "-p",
            "-M",
            "--binary",
            "--full-index",
            "--no-color",
        ]);
        output(
            command
                .args(["--no-ext-diff", "--no-textconv"])
                .args([old, new]),
        )
    }

    /// Returns the files that differ between the trees `old` and `new`, each with the hunks of `git
    /// diff -U0`; both are stored in the repository first.
    ///
    /// # Errors
    /// If git cannot store or compare the trees.
    pub fn compare_trees(&self, old: &Tree, new: &Tree) -> Result<Vec<FileChange>, ChangesError> {
        self.compare(&self.store(old)?, &self.store(new)?)
    }

    /// Stores the files of `tree` in the private repository as a git tree object, and returns the
    /// object's id.
    ///
    /// # Errors
    /// If git refuses.
    pub fn store(&self, tree: &Tree) -> Result<String, ChangesError> {
        let index = self.folder.join("index.tmp");
        let _ = std::fs::remove_file(&index);
        let mut lines = Vec::new();
        for (path, entry) in tree.entries() {
            let id = match &entry.content {
                Content::Object(id) => id.to_string(),
                Content::Bytes(bytes, _) => self.store_blob(bytes)?,
            };
            lines.extend(format!("{:06o} {id}\t", entry.mode).into_bytes());
            lines.extend(path);
            lines.push(0);
        }
        let mut add = self.writing_git();
        add.env("GIT_INDEX_FILE", &index)
            .args(["update-index", "-z", "--index-info"]);
        fed(&mut add, &lines)?;
        let stored = output(
            self.writing_git()
                .env("GIT_INDEX_FILE", &index)
                .args(["write-tree", "--missing-ok"]),
        );
        let _ = std::fs::remove_file(&index);
        stored.map(line)
    }

    fn store_blob(&self, bytes: &[u8]) -> Result<String, ChangesError> {
        fed(
            self.writing_git()
                .args(["hash-object", "-w", "--no-filters", "--stdin"]),
            bytes,
        )
        .map(line)
    }

    /// Merges two versions of a file, `ours` and `theirs`, that both come from the text `base`, by
    /// `git merge-file`. Returns the merged text; `None` if the versions conflict, or if git takes
    /// one of the texts for binary.
    ///
    /// # Errors
    /// If git fails or is ended by a signal, or the temporary files cannot be written.
    pub fn merge(
        &self,
        base: &[u8],
        ours: &[u8],
        theirs: &[u8],
    ) -> Result<Option<Vec<u8>>, ChangesError> {
        if [base, ours, theirs].into_iter().any(is_binary) {
            return Ok(None);
        }
        let texts = [("ours", ours), ("base", base), ("theirs", theirs)];
        let (command, done) = self.on_texts(&["merge-file", "-p", "-q"], &texts)?;
        match done.status.code() {
            Some(1..=127) => Ok(None), // the number of conflicts
            _ => finished(command, done).map(Some),
        }
    }

    /// Returns the hunks of `git diff -U0` between two texts; none if git takes one of them for
    /// binary.
    ///
    /// # Errors
    /// As [`merge`](Repository::merge).
    pub fn hunks_between(&self, old: &[u8], new: &[u8]) -> Result<Vec<Hunk>, ChangesError> {
        let words = ["diff", "--no-index"].iter().chain(&PATCH);
        let words: Vec<&str> = words.copied().collect();
        let (command, done) = self.on_texts(&words, &[("old", old), ("new", new)])?;
        let patch = match done.status.code() {
            Some(1) => done.stdout, // the texts differ
            _ => finished(command, done)?,
        };
        Ok(hunks(&patch).pop().unwrap_or_default())
    }

    /// Runs git with the arguments `words` and the paths of temporary files with these names and
    /// texts; returns the command line, and how git ended, with its output.
    fn on_texts(
        &self,
        words: &[&str],
        texts: &[(&str, &[u8])],
    ) -> Result<(String, Output), ChangesError> {
        let folder = tempfile::tempdir_in(&self.folder);
        let folder = folder.map_err(ChangesError::at("creating a folder in", &self.folder))?;
        let mut command = self.git();
        command.args(words);
        for (name, text) in texts {
            let file = folder.path().join(name);
            write(&file, text)?;
            command.arg(file);
        }
        let done = command.output();
        let done = done.map_err(ChangesError::system("starting git on two texts"))?;
        Ok((command_line(&command), done))
    }
}

/// Checks whether git takes a text for binary, and so does not merge it: whether there is a NUL
/// among its first 8000 bytes.
fn is_binary(text: &[u8]) -> bool {
    text[..text.len().min(8000)].contains(&0)
}

/// Option of `git log` that sets the format in which commits are printed and parsed: id, parents,
/// author, date and subject, with unit separators between them.
const FORMAT: &str = "--format=%H%x1f%P%x1f%an%x1f%as%x1f%s";
/// Options of git that make it print patches without context lines (as `git diff -U0`), with
/// renames detected and without external tools and colors.
const PATCH: [&str; 6] = [
    "-p",
    "-U0",
    "-M",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
];

fn write(path: &Path, bytes: &[u8]) -> Result<(), ChangesError> {
    std::fs::write(path, bytes).map_err(ChangesError::at("writing", path))
}

impl Contents {
    /// Asks the process `git cat-file` for the content of the object `id` and returns it; `None` if
    /// the repository does not have the object.
    fn read(&mut self, id: &str) -> std::io::Result<Option<Vec<u8>>> {
        if let Some(stdin) = &mut self.child.stdin {
            stdin.write_all(format!("{id}\n").as_bytes())?;
        }
        let mut header = String::new();
        self.answers.read_line(&mut header)?;
        if header.is_empty() {
            // git has ended, for example by the Ctrl-C that ends the search.
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let size = header
            .trim_end()
            .rsplit(' ')
            .next()
            .and_then(|size| size.parse().ok());
        let Some(size) = size.filter(|_| !header.ends_with("missing\n")) else {
            return Ok(None);
        };
        let size: usize = size;
        let mut content = vec![0; size + 1];
        self.answers.read_exact(&mut content)?;
        content.pop();
        Ok(Some(content))
    }
}

/// Writes the files in the folder `root/below`, with all folders below it, to `out` as input of
/// `git fast-import`, in the order of their names. Folders named `.git` and the folder `without`
/// are left out. Adds the paths of folders that contain nothing to write to `empty`.
fn send_folder(
    root: &Path,
    below: &Path,
    without: Option<&Path>,
    empty: &mut BTreeSet<Vec<u8>>,
    out: &mut impl Write,
) -> Result<(), ChangesError> {
    let folder = root.join(below);
    let entries = std::fs::read_dir(&folder).map_err(ChangesError::at("reading", &folder))?;
    let names = entries.map(|entry| Ok(entry?.file_name()));
    let names: std::io::Result<BTreeSet<OsString>> = names.collect();
    let names = names.map_err(ChangesError::at("reading", &folder))?;
    let mut is_empty = true;
    for name in names.into_iter().filter(|name| name != ".git") {
        let path = below.join(&name);
        let file = root.join(&path);
        let facts = std::fs::symlink_metadata(&file).map_err(ChangesError::at("reading", &file))?;
        let (mode, content) = if facts.is_dir() {
            if without != Some(&file) {
                send_folder(root, &path, without, empty, out)?;
                is_empty = false;
            }
            continue;
        } else if facts.is_symlink() {
            let target = std::fs::read_link(&file).map_err(ChangesError::at("reading", &file))?;
            ("120000", target.into_os_string().into_vec())
        } else if facts.is_file() {
            let content = std::fs::read(&file).map_err(ChangesError::at("reading", &file))?;
            match facts.permissions().mode() & 0o100 {
                0 => ("100644", content),
                _ => ("100755", content),
            }
        } else {
            continue;
        };
        let mut header = format!("M {mode} inline ").into_bytes();
        header.extend(quoted(path.as_os_str().as_bytes()));
        header.extend(format!("\ndata {}\n", content.len()).into_bytes());
        let sent = out
            .write_all(&header)
            .and_then(|()| out.write_all(&content));
        let sent = sent.and_then(|()| out.write_all(b"\n"));
        sent.map_err(ChangesError::system("writing to git fast-import"))?;
        is_empty = false;
    }
    if is_empty {
        empty.insert(below.as_os_str().as_bytes().to_vec());
    }
    Ok(())
}
