//! Where the kept files go: never over what the user has.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Args;
use crate::cli::{Exit, Failure};
use crate::corpus::Place;
use crate::files::swap::Fresh;
use crate::files::{FileError, atomic};
use crate::report::clean::CleanResult;

/// Makes sure, before anything is run, that the kept files may be written where they go, and that
/// what is read is none of that.
pub fn check(args: &Args) -> Result<(), Failure> {
    if args.delete_old && !args.in_place {
        return Err(Failure::usage("--delete-old is for --in-place")
            .hint("add --in-place, or leave it away"));
    }
    let place = Place::of(&args.out);
    let folder = place.corpus();
    if !place.may_replace(&folder)? {
        let message = format!(
            "{} holds files that no cleanup has written",
            folder.display()
        );
        return Err(Failure::new(Exit::Usage, "exists", message)
            .path(&folder)
            .hint("choose another output directory with -o"));
    }
    let out = args.out.canonicalize().ok();
    let onto = args.onto.as_deref().map(canonical).transpose()?;
    for corpus in &args.corpus {
        let real = canonical(corpus)?;
        if out
            .as_ref()
            .is_some_and(|out| real == *out || real.starts_with(out))
        {
            let message = format!("{} is in the output directory", corpus.display());
            return Err(Failure::usage(message)
                .path(corpus)
                .hint("the corpus is only read: choose another directory with -o"));
        }
        if onto.as_ref().is_some_and(|onto| real == *onto) {
            let message = format!("{} cannot be added to itself", corpus.display());
            return Err(Failure::usage(message).path(corpus));
        }
    }
    match &args.onto {
        Some(onto) if !onto.is_dir() => {
            let message = format!("--onto {} is no directory", onto.display());
            Err(Failure::usage(message).path(onto))
        }
        _ => Ok(()),
    }
}

fn canonical(path: &Path) -> Result<PathBuf, Failure> {
    (path.canonicalize()).map_err(|error| Failure::file(path, "reading", &error))
}

/// The corpus that is replaced, and where it then is.
pub struct Old {
    corpus: PathBuf,
    aside: PathBuf,
    delete: bool,
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
            let message = format!("{} is no directory", corpus.display());
            return Err(Failure::usage(message).path(&corpus));
        }
        let foreign = ["fuzzer_stats", "fuzzer_setup", "ddfuzz.json"];
        let instance = |path: &Path| foreign.iter().any(|name| path.join(name).exists());
        let below = std::fs::read_dir(&corpus).map(|entries| entries.flatten());
        let below = below.map_err(|error| Failure::file(&corpus, "reading", &error))?;
        if instance(&corpus) || below.map(|entry| entry.path()).any(|path| instance(&path)) {
            let message = format!(
                "{} is the output directory of a fuzzer, which has more in it than its corpus",
                corpus.display()
            );
            return Err(Failure::usage(message)
                .path(&corpus)
                .hint("leave --in-place away, and let the fuzzer begin with corpus/ of --out"));
        }
        let aside = beside(&corpus);
        // What a killed call has left there is what the corpus was to be replaced by.
        let ours = Place::of(&args.out).may_replace(&aside)? && aside.is_dir();
        let delete = args.delete_old;
        if aside.symlink_metadata().is_ok() && !ours && !delete {
            // A call that was killed just behind the exchange has come to its end all the same.
            let done = Place::of(&args.out).may_replace(&corpus)?;
            let what = match done {
                true => {
                    "the corpus is what a cleanup has kept already, and the older one is kept there"
                }
                false => "an older corpus is kept there",
            };
            return Err(Failure::usage(what)
                .path(&aside)
                .hint("remove it when you do not need it any more, or use --delete-old"));
        }
        let old = Old {
            corpus,
            aside,
            delete,
        };
        if ours {
            old.remove_aside()?;
        }
        Ok(old)
    }

    /// Puts a copy of the files below `kept` in the corpus' place, and gives where the old one is.
    ///
    /// # Errors
    /// When something cannot be written; the corpus stands as it was then.
    pub fn replace(&self, kept: &Path) -> Result<Option<PathBuf>, Failure> {
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
        if self.delete && self.aside.symlink_metadata().is_ok() {
            self.remove_aside()?;
        }
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

/// Adds the kept files to another corpus; what is there stays as it is.
///
/// # Errors
/// When one cannot be written; those before it are there then.
pub fn add(result: &CleanResult, onto: &Path) -> Result<(), Failure> {
    for kept in &result.kept {
        let from = Path::new(&kept.file.0);
        let bytes = std::fs::read(from).map_err(FileError::at("read", from))?;
        let to = onto.join(crate::store::hash_of(&bytes));
        match atomic::create_new(&to, &bytes) {
            // An earlier call was killed behind it.
            Err(error) if error.is_existing() && std::fs::read(&to).is_ok_and(|it| it == bytes) => {
            }
            answer => answer?,
        }
    }
    Ok(())
}
