//! The files of an explanation, beside the reproducer: JSON, HTML and text, and the passing input.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use crate::cli::reports;
use crate::cli::{Exit, Failure};
use crate::exec::Target;
use crate::explain::{Explanation, story};
use crate::files::folder::parent;
use crate::files::{FileError, atomic};

use super::page;

/// Paths of the files of one explanation, `explanation.json`, `explanation.html`, `explanation.txt`
/// and `explanation.passing`, in one directory.
pub(super) struct Files {
    folder: PathBuf,
}

impl Files {
    /// Returns the paths of an explanation's files in the directory `folder`, which need not exist
    /// yet. Fails if `folder` is not a directory and cannot become one. Unless `force` is set, also
    /// fails in two cases: `folder` has files with these names, but no HTML page that ddfuzz has
    /// written; or the text file differs from the text on the HTML page, since somebody has edited
    /// it.
    pub fn choose(folder: &Path, force: bool) -> Result<Files, Failure> {
        let is_inside = |above: &Path| above.as_os_str().is_empty() || above.is_dir();
        let is_new = !folder.exists() && folder.parent().is_some_and(is_inside);
        if !folder.is_dir() && !is_new {
            let above = folder.parent().filter(|_| !folder.exists());
            let message = format!("{} is not a directory", above.unwrap_or(folder).display());
            return Err(Failure::usage(message)
                .path(folder)
                .hint_where_missing(folder));
        }
        let files = Files {
            folder: folder.to_owned(),
        };
        files.check_writable()?;
        if !force {
            files.check_own()?;
        }
        Ok(files)
    }

    /// Fails if the directory has files with the names of an explanation's files that ddfuzz has
    /// not written, or a text file that was edited after ddfuzz wrote it.
    fn check_own(&self) -> Result<(), Failure> {
        let page = std::fs::read(self.page()).ok();
        let page = page.filter(|page| reports::begins_with(page, reports::HTML));
        let Some(page) = page else {
            let mut others = self.all().into_iter();
            return match others.find(|file| file.exists()) {
                Some(other) => Err(Failure::exists(
                    &other,
                    "overwrite it with --force, or give another directory with -o",
                )),
                None => Ok(()),
            };
        };
        let [_, _, file, _] = self.all();
        match std::fs::read(&file) {
            Ok(text) if !page::shows(&page, &text) => {
                let message = format!("{} was edited since it was written", file.display());
                let hint = "move it to another place, overwrite it with --force, or give another \
                            directory with -o";
                let failure = Failure::new(Exit::Usage, "exists", message);
                Err(failure.path(&file).hint(hint))
            }
            _ => Ok(()),
        }
    }

    /// Fails if this user cannot make files in the directory, or cannot make the directory.
    fn check_writable(&self) -> Result<(), Failure> {
        let there = match self.folder.exists() {
            true => &self.folder,
            false => parent(&self.folder),
        };
        access(there, AccessFlags::W_OK | AccessFlags::X_OK).map_err(|errno| {
            let error = FileError::at("write to", there)(errno.into());
            Failure::unwritten(there, error).or_hint("give another directory with -o")
        })
    }

    fn all(&self) -> [PathBuf; 4] {
        ["json", "html", "txt", "passing"]
            .map(|ending| self.folder.join(format!("explanation.{ending}")))
    }

    /// Returns the path of the explanation's HTML page, `explanation.html`.
    pub fn page(&self) -> PathBuf {
        self.folder.join("explanation.html")
    }

    /// Writes the explanation as HTML, JSON and text, and the input of the passing run, of which
    /// `target` is the program. The HTML page is written first, because it shows a later call that
    /// ddfuzz has written the files. Without a passing input, deletes the one of an earlier call.
    pub fn write(&self, explanation: &Explanation, target: &Target) -> Result<(), Failure> {
        let [json, html, txt, passing] = self.all();
        let text = serde_json::to_string_pretty(explanation);
        let text = text.map_err(|error| Failure::new(Exit::Internal, "internal", error))? + "\n";
        let write = |file: &Path, bytes: &[u8]| {
            atomic::write(file, bytes).map_err(|error| Failure::unwritten(file, error))
        };
        let input = explanation.input.passing.as_ref();
        let run = page::ByGdb::new(target, input.map(|_| passing.as_path()));
        if !self.folder.exists() {
            let made = std::fs::create_dir(&self.folder);
            let at = FileError::at("create", &self.folder);
            made.map_err(|error| Failure::unwritten(&self.folder, at(error)))?;
        }
        write(&html, page::html(explanation, &run).as_bytes())?;
        write(&json, text.as_bytes())?;
        write(&txt, story::text(explanation).as_bytes())?;
        match input {
            Some(input) => write(&passing, &input.0),
            None => match std::fs::remove_file(&passing) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(Failure::unwritten(
                    &passing,
                    FileError::at("delete", &passing)(error),
                )),
                _ => Ok(()),
            },
        }
    }
}
