//! The corpus that `--in-place` replaces.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Args;
use super::place::{canonical, real};
use crate::cli::Failure;
use crate::corpus::Place;
use crate::corpus::listing::Layout;
use crate::files::FileError;
use crate::files::swap::Fresh;

/// The corpus that is replaced, and where it then is.
pub struct Old {
    corpus: PathBuf,
    aside: PathBuf,
    delete: bool,
    /// Where the kept files are.
    place: Place,
}

impl Old {
    /// The one corpus that is named.
    ///
    /// # Errors
    /// When there are several, or it is no plain directory, or an older one stands where it would go.
    pub fn of(args: &Args) -> Result<Old, Failure> {
        let [corpus] = &args.corpus[..] else {
            return Err(Failure::usage("--in-place takes one corpus")
                .hint("clean several into one output directory with -o"));
        };
        let corpus = canonical(corpus)?;
        if !corpus.is_dir() {
            let message = format!("{} is not a directory", corpus.display());
            return Err(Failure::usage(message).path(&corpus));
        }
        check_is_plain(&corpus)?;
        if real(args.out()).starts_with(&corpus) {
            let message = format!(
                "the output directory {} is in the corpus, and would be replaced with it",
                args.out().display()
            );
            return Err(Failure::usage(message)
                .path(args.out())
                .hint("choose another directory with -o"));
        }
        let old = Old {
            aside: beside(&corpus),
            corpus,
            delete: args.delete_old,
            place: Place::of(args.out()),
        };
        old.check_aside()?;
        Ok(old)
    }

    /// Makes sure that no older corpus stands where this one would go.
    fn check_aside(&self) -> Result<(), Failure> {
        // What a killed call has left there is what the corpus was to be replaced by.
        if self.delete || !self.is_aside() || self.place.is_incoming(&self.aside) {
            return Ok(());
        }
        // A call that was killed just behind the exchange has come to its end all the same.
        let what = match self.place.is_incoming(&self.corpus) {
            true => "the corpus was cleaned already, and the old corpus is still there",
            false => "an older corpus is still there",
        };
        Err(Failure::usage(what)
            .path(&self.aside)
            .hint("remove it if you do not need it any more, or use --delete-old"))
    }

    fn is_aside(&self) -> bool {
        self.aside.symlink_metadata().is_ok()
    }

    /// Puts a copy of the kept files in the corpus' place, and gives where the old one is.
    ///
    /// # Errors
    /// When something cannot be written; the corpus stands as it was then.
    pub fn replace(&self) -> Result<Option<PathBuf>, Failure> {
        let kept = self.place.corpus();
        let fresh = Fresh::beside(&self.corpus)?;
        let mut folders = vec![PathBuf::new()];
        while let Some(below) = folders.pop() {
            let folder = kept.join(&below);
            let entries = std::fs::read_dir(&folder).map_err(FileError::at("list", &folder))?;
            for entry in entries {
                let entry = entry.map_err(FileError::at("list", &folder))?;
                let name = below.join(entry.file_name());
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(name);
                    continue;
                }
                let path = entry.path();
                let bytes = std::fs::read(&path).map_err(FileError::at("read", &path))?;
                fresh.add(&name, &bytes)?;
            }
        }
        self.check_aside()?;
        if self.is_aside() {
            self.remove_aside()?;
        }
        self.place.announce_exchange(fresh.path())?;
        fresh.take_place(&self.aside)?;
        if self.delete {
            self.remove_aside()?;
            return Ok(None);
        }
        Ok(Some(self.aside.clone()))
    }

    fn remove_aside(&self) -> Result<(), Failure> {
        std::fs::remove_dir_all(&self.aside)
            .map_err(|error| Failure::file(&self.aside, "removing", &error))
    }
}

/// `CORPUS.old`.
fn beside(corpus: &Path) -> PathBuf {
    let mut name = corpus
        .file_name()
        .map_or_else(OsString::new, OsString::from);
    name.push(".old");
    corpus.with_file_name(name)
}

/// Makes sure that nothing but a corpus is replaced.
fn check_is_plain(corpus: &Path) -> Result<(), Failure> {
    let reading = |error| Failure::file(corpus, "reading", &error);
    let holds_more = |path: &Path| {
        let layout = Layout::of(path);
        layout.is_ok_and(|layout| !matches!(layout, Layout::Plain | Layout::AflEntries))
    };
    let below = std::fs::read_dir(corpus).map_err(reading)?;
    let mut below = below.flatten().map(|entry| entry.path());
    if !holds_more(corpus) && !below.any(|path| holds_more(&path)) {
        return Ok(());
    }
    let message = format!(
        "{} is the output directory of a fuzzer, or a project, which contains more than a corpus",
        corpus.display()
    );
    Err(Failure::usage(message)
        .path(corpus)
        .hint("omit --in-place, and start the fuzzer with corpus/ of --out"))
}
