//! Under which names a utility that is in no list may want its file: the extensions that its
//! desktop entry and its man page name.
//!
//! Localized here: `flate2`, for man pages are compressed.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::installed::{files_of, package_of};

/// The most extensions that are found.
pub const MOST: usize = 6;
/// No more of a man page is read, in bytes.
const PAGE_LIMIT: u64 = 4 << 20;
/// Sections of the manual that utilities are in.
const SECTIONS: [&str; 3] = ["1", "6", "8"];
/// What looks like an extension in prose, and is none: abbreviations, hosts, tags of the manual,
/// and endings of files that no utility reads.
const NONE: [&str; 24] = [
    "br", "com", "conf", "cc1", "de", "e", "edu", "eg", "etc", "fr", "g", "gov", "ie", "io", "it",
    "local", "net", "nl", "no", "org", "rc", "th", "uk", "us",
];

/// The extensions, without the dot, that files for this program may have: those of its package's
/// desktop entries and its own man page, the most frequent first, at most [`MOST`].
pub fn extensions(program: &Path) -> Vec<String> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for extension in of_desktop_entries(program) {
        // Said by declaration, not in passing.
        *counts.entry(extension).or_default() += 2;
    }
    if let Some(page) = man_page(program) {
        for extension in in_text(&page) {
            *counts.entry(extension).or_default() += 1;
        }
    }
    let mut found: Vec<(String, usize)> = counts.into_iter().collect();
    found.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    found.truncate(MOST);
    found.into_iter().map(|(extension, _)| extension).collect()
}

/// The text of a program's man page; `None` where there is none.
fn man_page(program: &Path) -> Option<String> {
    let name = program.file_name()?.to_str()?;
    let page = SECTIONS.iter().find_map(|section| {
        let page = format!("/usr/share/man/man{section}/{name}.{section}.gz");
        unpacked(Path::new(&page))
    })?;
    // Pages of several programs stand in one file, which the others name.
    match page.strip_prefix(".so ") {
        Some(other) => {
            let other = other.lines().next().unwrap_or_default().trim();
            unpacked(Path::new(&format!("/usr/share/man/{other}.gz")))
        }
        None => Some(page),
    }
}

/// The text of a compressed page.
fn unpacked(page: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let file = fs::File::open(page).ok()?;
    // What could be unpacked of a damaged page is as good.
    let _ = MultiGzDecoder::new(file)
        .take(PAGE_LIMIT)
        .read_to_end(&mut bytes);
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The extensions of file names in the text of a man page, each as often as it stands there: of
/// `*.ext`, `file.ext`, `.ext` as a word.
pub fn in_text(page: &str) -> Vec<String> {
    page.lines()
        .flat_map(|line| {
            let text = match line.strip_prefix(['.', '\'']) {
                // `.B foo.c` names a file; `.if n .ds x` and comments are for troff alone, whose
                // own requests are in lower case.
                Some(request) if request.starts_with(|c: char| c.is_ascii_uppercase()) => request
                    .split_once(' ')
                    .map_or("", |(_, arguments)| arguments),
                Some(_) => "",
                None => line,
            };
            let plain = without_fonts(text);
            let words: Vec<String> = plain
                .split(|c: char| c.is_whitespace() || "\"'(),;:<>[]{}|=`".contains(c))
                .filter_map(extension)
                .collect();
            words
        })
        .collect()
}

/// Font changes and other escapes of troff, taken away: `\fIfile\fP\&.c` is `file.c`.
fn without_fonts(line: &str) -> String {
    let mut plain = String::new();
    let mut rest = line.chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            plain.push(character);
            continue;
        }
        match rest.next() {
            Some('f') => match rest.next() {
                Some('(') => drop(rest.nth(1)),
                Some('[') => drop(rest.find(|c| *c == ']')),
                _ => {}
            },
            Some('-') => plain.push('-'),
            Some('(') => drop(rest.nth(1)),
            _ => {}
        }
    }
    plain
}

/// The extension of a word that looks like the name of a file.
fn extension(word: &str) -> Option<String> {
    let word = word.trim_end_matches(['.', '!', '?', '*', '/']);
    // Paths of the system, hosts and addresses say nothing about what is read.
    if word.contains("//") || word.starts_with('/') || word.contains('@') || word.contains("www.") {
        return None;
    }
    let (stem, extension) = word.rsplit_once('.')?;
    // Two letters for a stem would let abbreviations in: i.e., e.g., a.m.; but not *.c, nor .c.
    let is_name = stem.is_empty()
        || stem.ends_with('*')
        || stem.len() > 1
            && stem.ends_with(|c: char| c.is_ascii_alphanumeric())
            && stem.chars().any(|c| c.is_ascii_alphabetic())
        || stem.len() == 1 && stem != "i" && stem != "e" && stem != "a";
    let is_extension = (1..=5).contains(&extension.len())
        && extension.starts_with(|c: char| c.is_ascii_alphabetic())
        && extension.chars().all(|c| c.is_ascii_alphanumeric());
    let lower = extension.to_ascii_lowercase();
    (is_name && is_extension && !NONE.contains(&lower.as_str())).then_some(lower)
}

/// The extensions of the types that the desktop entries of a program's package say it opens: of
/// those entries that start this program, where some do.
fn of_desktop_entries(program: &Path) -> Vec<String> {
    let Some(package) = package_of(program) else {
        return Vec::new();
    };
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let entries = files_of(&package.name, Path::new("/usr/share/applications"));
    let mut types = HashSet::new();
    for entry in entries.iter().filter_map(|file| read_text(file)) {
        let value = |key: &str| {
            let mut lines = entry.lines();
            lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
        };
        let command = value("Exec").and_then(|line| line.split_whitespace().next());
        if command.is_some_and(|command| command.rsplit('/').next() == Some(&name)) {
            let list = value("MimeType").unwrap_or_default();
            types.extend(
                list.split(';')
                    .filter(|kind| !kind.is_empty())
                    .map(str::to_owned),
            );
        }
    }
    if types.is_empty() {
        return Vec::new();
    }
    let globs = read_text(&PathBuf::from("/usr/share/mime/globs2")).unwrap_or_default();
    globs
        .lines()
        .filter_map(|line| of_glob(line, &types))
        .collect()
}

/// The extension of a line `WEIGHT:TYPE:*.EXT`, where the type is one of these.
fn of_glob(line: &str, types: &HashSet<String>) -> Option<String> {
    let mut fields = line.split(':').skip(1);
    let kind = fields.next()?;
    let glob = fields.next()?;
    extension(glob).filter(|_| types.contains(kind))
}

fn read_text(file: &Path) -> Option<String> {
    let bytes = fs::read(file).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
