//! Lines of the source of a program, around a place in it.

use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use super::text::{cut, printable};
use ddfuzz_model::files::regular;

/// Endings of files that are source: debug information and messages of a target may name any file,
/// and no other is shown to whoever reads a report.
const ENDINGS: [&str; 36] = [
    "c", "cc", "cpp", "cxx", "c++", "cu", "h", "hh", "hpp", "hxx", "h++", "inc", "inl", "ipp",
    "tcc", "y", "l", "rl", "s", "asm", "rs", "go", "zig", "d", "swift", "m", "mm", "f", "f90",
    "f95", "ml", "nim", "cr", "v", "pas", "adb",
];
/// The largest file that is read, in bytes.
const LARGEST: u64 = 16 << 20;
/// Characters of a line that are shown.
const WIDEST: usize = 140;
/// Blanks that stand for a tabulator.
const TAB: &str = "    ";

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, as the compiler was given it.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
}

impl Place {
    /// Reads `FILE:LINE` or `FILE:LINE:COLUMN`.
    pub fn parse(text: &str) -> Option<Place> {
        let (rest, last) = text.rsplit_once(':')?;
        let last: u64 = last.parse().ok()?;
        let (file, line) = match rest.rsplit_once(':') {
            Some((file, line)) => match line.parse() {
                Ok(line) => (file, line),
                Err(_) => (rest, last),
            },
            None => (rest, last),
        };
        (!file.is_empty() && line > 0).then(|| Place {
            file: file.to_owned(),
            line,
        })
    }

    /// Whether it is the place `other`, whose file may lack the first parts of its path.
    pub(super) fn is_at(&self, other: &Place) -> bool {
        self.line == other.line && Path::new(&self.file).ends_with(&other.file)
    }

    /// Its file, found below one of `folders` where it is relative.
    fn found(&self, folders: &[PathBuf]) -> Option<PathBuf> {
        let file = Path::new(&self.file);
        let ending = file.extension()?.to_str()?.to_ascii_lowercase();
        if !ENDINGS.contains(&ending.as_str()) {
            return None;
        }
        if file.is_absolute() {
            return Some(file.to_owned());
        }
        // Nothing above the folders is theirs.
        let stays = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if !file.components().all(stays) {
            return None;
        }
        let file: PathBuf = file
            .components()
            .filter(|part| *part != Component::CurDir)
            .collect();
        let mut candidates = folders.iter().map(|folder| folder.join(&file));
        candidates.find(|candidate| candidate.is_file())
    }
}

/// Some lines of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The file.
    pub file: PathBuf,
    /// The line that it is about.
    pub line: u64,
    /// The number of the first line that is shown.
    pub first: u64,
    /// The lines, cleaned for a terminal.
    pub text: Vec<String>,
    /// Whether the file was written after the crash was seen, so that its lines may be others.
    pub is_newer: bool,
}

impl Excerpt {
    /// Reads the lines around a place; `None` where there is no such file, or no such line in it.
    pub(super) fn read(
        place: &Place,
        folders: &[PathBuf],
        around: u64,
        seen: Option<SystemTime>,
    ) -> Option<Excerpt> {
        let file = place.found(folders)?;
        let bytes = regular::read(&file, LARGEST).ok()?;
        let first = place.line.saturating_sub(around).max(1);
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().skip(usize::try_from(first - 1).ok()?);
        let count = usize::try_from(place.line - first + 1 + around).ok()?;
        let text: Vec<String> = lines.take(count).map(cleaned).collect();
        // What names a line behind the end is of another version.
        let reaches = text.len() as u64 > place.line - first;
        let modified = file.metadata().and_then(|facts| facts.modified()).ok();
        reaches.then(|| Excerpt {
            file: std::path::absolute(&file).unwrap_or(file),
            line: place.line,
            first,
            text,
            is_newer: seen.zip(modified).is_some_and(|(seen, then)| then > seen),
        })
    }

    /// Where it is, and what is to be known of it.
    pub(super) fn title(&self) -> String {
        let newer = match self.is_newer {
            true => ", written after the crash was seen",
            false => "",
        };
        let file = self.file.to_string_lossy();
        printable(&format!("{file}:{}{newer}", self.line))
    }

    /// Its lines with their numbers, and whether each is the one that it is about.
    pub(super) fn lines(&self) -> impl Iterator<Item = (String, bool)> {
        let last = self.first + self.text.len().saturating_sub(1) as u64;
        let wide = last.to_string().len();
        (self.first..).zip(&self.text).map(move |(number, text)| {
            let is_it = number == self.line;
            let mark = if is_it { '>' } else { ' ' };
            let line = format!("{mark} {number:>wide$} | {text}");
            (line.trim_end().to_owned(), is_it)
        })
    }
}

fn cleaned(line: &str) -> String {
    cut(
        &printable(line.trim_end().replace('\t', TAB).as_str()),
        WIDEST,
    )
}
