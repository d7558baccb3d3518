//! File extensions that a utility may expect of its input file, for utilities in no list: those
//! that the utility's desktop entry and man page mention.
//!
//! This is the only file that uses `flate2` (man pages are compressed).

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::installed::{files_of, package_of};

/// Greatest number of file extensions that [`extensions`] returns for a program.
pub const MOST: usize = 6;
/// Greatest number of bytes of a man page that are read; the rest of a longer page is ignored.
const PAGE_LIMIT: u64 = 4 << 20;
/// Sections of the Unix manual whose pages describe utilities.
const SECTIONS: [&str; 3] = ["1", "6", "8"];
/// Words that do not count as file extensions although they follow a dot: parts of abbreviations
/// and host names, tags of the manual, and endings of files that no utility reads.
const NO_EXTENSIONS: [&str; 24] = [
    "br", "com", "conf", "cc1", "de", "e", "edu", "eg", "etc", "fr", "g", "gov", "ie", "io", "it",
    "local", "net", "nl", "no", "org", "rc", "th", "uk", "us",
];

/// Returns the extensions, without the dot, that input files of a program probably have, the most
/// frequent first, at most [`MOST`]. They come from the desktop entries of its package and from its
/// man page.
pub fn extensions(program: &Path) -> Vec<String> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for extension in of_desktop_entries(program) {
        // A declaration counts more than a mention in prose.
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

/// Reads the compressed man page of a program and returns its text with the markup, at most 4 MiB
/// of it; `None` if there is no page.
fn man_page(program: &Path) -> Option<String> {
    let name = program.file_name()?.to_str()?;
    let page = SECTIONS.iter().find_map(|section| {
        let page = format!("/usr/share/man/man{section}/{name}.{section}.gz");
        unpacked(Path::new(&page))
    })?;
    // A page of several programs is one file, which the files of the other programs refer to.
    match page.strip_prefix(".so ") {
        Some(other) => {
            let other = other.lines().next().unwrap_or_default().trim();
            unpacked(Path::new(&format!("/usr/share/man/{other}.gz")))
        }
        None => Some(page),
    }
}

fn unpacked(page: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let file = fs::File::open(page).ok()?;
    // The readable part of a damaged page is used.
    let _ = MultiGzDecoder::new(file)
        .take(PAGE_LIMIT)
        .read_to_end(&mut bytes);
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the extensions of file names in the text of a man page (`*.ext`, `file.ext`, or `.ext`
/// as a word), each as often as it occurs.
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

/// Returns `line` without font changes and other escapes of troff: `\fIfile\fP\&.c` becomes
/// `file.c`.
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

/// Returns the extension of a word, without the dot and in lower case, if the word looks like a
/// file name; otherwise `None`.
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
    (is_name && is_extension && !NO_EXTENSIONS.contains(&lower.as_str())).then_some(lower)
}

/// Returns the extensions of the file types that a program opens, according to the desktop entries
/// of its package that start it; empty if there are none.
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

/// Returns the extension that a line `WEIGHT:TYPE:*.EXT` of the MIME database gives for its file
/// type; `None` if the type is not one of `types`.
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
