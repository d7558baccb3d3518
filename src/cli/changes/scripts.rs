//! Programs and scripts outside of the versions that the commands of build and test name. If the
//! content of one of them changes, the search counts as another one.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::files::OsText;
use crate::minimize::log::ContentHash;

/// Maximum size in bytes of a file whose content is compared: that of a script or small program.
const MOST_READ: u64 = 64 << 20;

/// Names of programs that run scripts; a command may also name them with a version, as in
/// `python3.12`.
const INTERPRETERS: [&str; 12] = [
    ".", "source", "sh", "bash", "dash", "ksh", "zsh", "python", "perl", "ruby", "node", "lua",
];

/// Finds the programs and scripts that the shell commands `lines` name by an absolute path, or by a
/// path in the home directory. Returns their paths with the hashes of their contents, sorted.
/// Leaves out relative paths, since they name files of the version, and files of other kinds, which
/// a command may write itself.
pub(super) fn named_scripts<'a>(
    lines: impl Iterator<Item = &'a str>,
) -> Vec<(OsText, ContentHash)> {
    let mut found = Vec::new();
    for line in lines {
        let is_separator = |char: char| char.is_whitespace() || "'\"`;|&()<>{}=".contains(char);
        let mut before = "";
        for word in line.split(is_separator).filter(|word| !word.is_empty()) {
            let path = absolute(word);
            if let Some(script) = path.and_then(|path| script(&path, is_interpreter(before))) {
                found.push(script);
            }
            // An option does not end the words of an interpreter.
            if !word.starts_with('-') {
                before = word;
            }
        }
    }
    found.sort_unstable_by(|(one, _), (other, _)| one.0.cmp(&other.0));
    found.dedup();
    found
}

/// Returns the absolute path that a word of a shell command names: the word itself if it is
/// absolute, or a path in the home directory for `~/…` and `$HOME/…`; `None` for any other word.
fn absolute(word: &str) -> Option<PathBuf> {
    let in_home = ["~/", "$HOME/", "${HOME}/"];
    if let Some(rest) = in_home.iter().find_map(|home| word.strip_prefix(home)) {
        return Some(Path::new(&std::env::var_os("HOME")?).join(rest));
    }
    Some(PathBuf::from(word)).filter(|path| path.is_absolute())
}

/// Returns true if a word of a command names an interpreter, perhaps with a version as in
/// `python3.12`; the next word is then a script. Else false.
fn is_interpreter(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    let is_version = |char: char| char.is_ascii_digit() || char == '.';
    INTERPRETERS.contains(&name) || INTERPRETERS.contains(&name.trim_end_matches(is_version))
}

/// Returns the path and the hash of the content if the file at `path` is a program or script: it is
/// executable, begins with `#!`, or an interpreter runs it (`is_run`). `None` for other files, and
/// for those that are too large or cannot be read.
fn script(path: &Path, is_run: bool) -> Option<(OsText, ContentHash)> {
    let facts = std::fs::metadata(path).ok()?;
    if !facts.is_file() || facts.len() > MOST_READ {
        return None;
    }
    let content = std::fs::read(path).ok()?;
    let is_executable = facts.permissions().mode() & 0o111 != 0;
    let is_script = is_run || is_executable || content.starts_with(b"#!");
    is_script.then(|| (OsText::from(path), ContentHash::of(&content)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_and_programs_that_a_command_names_are_found_and_no_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let write = |name: &str, text: &str| std::fs::write(at(name), text).unwrap();
        write("a.sh", "#!/bin/sh\n");
        write("b", "exit 1\n");
        write("log", "text\n");
        let line = format!(
            "X=1 {} && sh -e {} <{log} >>{log}; ./a.sh {log} {}",
            at("a.sh"),
            at("b"),
            at("missing"),
            log = at("log"),
        );
        let found = named_scripts([line.as_str(), "make"].into_iter());
        let paths: Vec<String> = found
            .iter()
            .map(|(path, _)| path.0.to_string_lossy().into_owned())
            .collect();
        assert_eq!(paths, [at("a.sh"), at("b")]);
        write("b", "exit 0\n");
        let after = named_scripts([line.as_str()].into_iter());
        assert_eq!((after[0] == found[0], after[1] == found[1]), (true, false));
    }
}
