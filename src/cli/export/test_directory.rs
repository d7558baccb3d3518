//! `ddfuzz export --into DIR`: writes a Rust test for each group, and a `main.rs` that makes the
//! folder a test of Cargo. The first line of each file contains the BLAKE3 hash of the rest, to
//! detect edits.

use std::path::Path;

use serde::Serialize;

use super::formats::{ExportRequest, package_of};
use super::group::{AllGroups, ChosenGroup};
use super::{ExportArgs, not_written};
use crate::cli::results::absolute;
use crate::cli::{Exit, Failure, Output};
use crate::files::{OsText, atomic, folder};
use crate::report::export::{Input, LITERAL_BYTES};
use crate::report::size;
use crate::store::Reader;

/// The result of `ddfuzz export --into`: which files were written, which were unchanged, and which
/// were not overwritten because of edits.
#[derive(Serialize)]
pub(super) struct WrittenTests {
    into: OsText,
    written: Vec<OsText>,
    unchanged: Vec<OsText>,
    /// Test files that the user had edited, and that were therefore not overwritten.
    edited: Vec<OsText>,
    /// Lines that the user has to add to a `main.rs` that was edited and is therefore not
    /// overwritten.
    to_add: Vec<String>,
    /// The groups for which no test could be made, each with the reason.
    left_out: Vec<LeftOut>,
}

/// A group for which no test could be made, with the reason.
#[derive(Serialize)]
struct LeftOut {
    /// Major key of the group (the hash that identifies the bug), as 12 hex digits.
    major: String,
    /// Why no test could be made for the group: the message of the error.
    why: String,
}

/// What is at the place of an exported file before it is written: nothing, a file with the same
/// content, a file that ddfuzz has written with other content (`Ours`), or one that the user has
/// edited.
#[derive(PartialEq)]
enum Existing {
    Nothing,
    Same,
    Ours,
    Edited,
}

/// Writes a Rust test for each given crash group into the folder `dir`, and prints which files were
/// written, and for which groups no test could be made. Returns the exit code: that of the error of
/// the first group without a test, if there is one.
pub(super) fn write(
    args: &ExportArgs,
    reader: &Reader,
    groups: AllGroups,
    dir: &Path,
    output: &Output,
) -> Result<Exit, Failure> {
    let Done {
        written,
        tests,
        first_error,
    } = files(args, reader, groups, dir)?;
    tell(&written, tests, output);
    let is_test = package_of(dir).is_some_and(|package| {
        let whole = std::fs::canonicalize(dir).unwrap_or_else(|_| absolute(dir));
        whole.parent() == Some(&package.join("tests"))
    });
    if tests > 0 && !is_test {
        output.say(&format!(
            "note: cargo does not run these tests: {} is not a folder directly below tests/ of a Cargo \
             package; use --into PACKAGE/tests/NAME",
            dir.display()
        ));
    }
    Ok(first_error.map_or(Exit::Done, |error| error.exit))
}

/// The result of writing the tests of several groups.
pub(super) struct Done {
    written: WrittenTests,
    /// Number of groups that have a test.
    pub(super) tests: usize,
    /// Error for the first group for which no test could be made; `None` if there is no such group.
    pub(super) first_error: Option<Failure>,
}

/// Writes a Rust test for each of `groups`, and a `main.rs`, into the folder `dir`. Returns how
/// many groups have a test, and the first error. Groups for which no test can be made are left out;
/// fails if that leaves no group.
pub(super) fn files(
    args: &ExportArgs,
    reader: &Reader,
    groups: AllGroups,
    dir: &Path,
) -> Result<Done, Failure> {
    let package = package_of(dir);
    let mut written = WrittenTests {
        into: recorded(dir),
        written: Vec::new(),
        unchanged: Vec::new(),
        edited: Vec::new(),
        to_add: Vec::new(),
        left_out: Vec::new(),
    };
    // All texts first: where none can be made, no folder is created.
    let (mut files, mut failed) = (Vec::new(), groups.incomplete);
    for chosen in &groups.complete {
        match group_test(args, reader, chosen, package.as_deref()) {
            Ok(test) => files.push(test),
            Err(error) => failed.push((chosen.major(), error)),
        }
    }
    let left_out = failed.iter().map(|(major, error)| LeftOut {
        major: major.clone(),
        why: error.message().to_owned(),
    });
    written.left_out = left_out.collect();
    let first_error = failed.into_iter().map(|(_, error)| error).next();
    match first_error {
        Some(error) if files.is_empty() => return Err(error),
        _ if files.is_empty() => {}
        _ => {
            folder::create_all(dir).map_err(|error| not_written(error, dir))?;
            for file in &files {
                file.write(dir, &mut written)?;
            }
            write_main(dir, &mut written)?;
        }
    }
    Ok(Done {
        written,
        tests: files.len(),
        first_error,
    })
}

/// The exported Rust test of one crash group: the name of its module, its text, and its input if
/// that is stored in a second file.
struct GroupTest {
    module: String,
    text: String,
    large: Option<Vec<u8>>,
}

fn group_test(
    args: &ExportArgs,
    reader: &Reader,
    chosen: &ChosenGroup,
    package: Option<&Path>,
) -> Result<GroupTest, Failure> {
    let group = chosen.reproducer()?;
    let module = format!("g_{}", group.major);
    let beside = format!("{module}.bin");
    let is_large = group.input.len() > LITERAL_BYTES;
    let asked = ExportRequest {
        reader,
        chosen,
        call: args.call.as_deref(),
        fuzz_dir: args.fuzz_dir.as_deref(),
        package,
        input: match is_large {
            true => Input::File(&beside),
            false => Input::Inline(&group.input),
        },
        file: "",
        may_run: true,
    };
    let mut text = asked.rust_test(&group)?;
    if is_large {
        // By this line it is known later whether the input was edited.
        let hash = hex_hash(&group.input);
        text.insert_str(0, &format!("// The blake3 of {beside} is {hash}.\n"));
    }
    Ok(GroupTest {
        module,
        text: seal(&text),
        large: is_large.then_some(group.input),
    })
}

impl GroupTest {
    fn write(&self, dir: &Path, written: &mut WrittenTests) -> Result<(), Failure> {
        let file = dir.join(format!("{}.rs", self.module));
        let found = look(&file, self.text.as_bytes())?;
        if found == Existing::Edited {
            written.edited.push(recorded(&file));
            return Ok(());
        }
        if let Some(large) = &self.large {
            let beside = dir.join(format!("{}.bin", self.module));
            match look_beside(&beside, large, &file)? {
                Existing::Edited => {
                    written.edited.push(recorded(&beside));
                    return Ok(());
                }
                found => put(&beside, large, &found)?,
            }
        }
        put(&file, self.text.as_bytes(), &found)?;
        let list = match found {
            Existing::Same => &mut written.unchanged,
            _ => &mut written.written,
        };
        list.push(recorded(&file));
        Ok(())
    }
}

fn read(file: &Path) -> Result<Option<Vec<u8>>, Failure> {
    match std::fs::read(file) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::file(file, "reading", &error)),
    }
}

fn look(file: &Path, wanted: &[u8]) -> Result<Existing, Failure> {
    Ok(match read(file)? {
        None => Existing::Nothing,
        Some(bytes) if bytes == wanted => Existing::Same,
        Some(bytes) if is_intact(&bytes) => Existing::Ours,
        Some(_) => Existing::Edited,
    })
}

/// Returns the state of the file `beside`, in which the large input `wanted` of the Rust test in
/// the file `test` is stored: missing, equal to `wanted`, written by an earlier export, or edited
/// by the user. A file that differs from `wanted` counts as written by an earlier export if the
/// test contains the hash of its content.
fn look_beside(beside: &Path, wanted: &[u8], test: &Path) -> Result<Existing, Failure> {
    let Some(bytes) = read(beside)? else {
        return Ok(Existing::Nothing);
    };
    let test = read(test)?.unwrap_or_default();
    let is_named = String::from_utf8_lossy(&test).contains(&hex_hash(&bytes));
    Ok(match (bytes == wanted, is_named) {
        (true, _) => Existing::Same,
        (_, true) => Existing::Ours,
        (false, false) => Existing::Edited,
    })
}

fn put(file: &Path, bytes: &[u8], found: &Existing) -> Result<(), Failure> {
    let done = match found {
        Existing::Nothing => atomic::create_new(file, bytes),
        Existing::Ours => atomic::write(file, bytes),
        Existing::Same | Existing::Edited => Ok(()),
    };
    done.map_err(|error| not_written(error, file))
}

/// Writes `main.rs` into the folder `dir`, with a line for each exported test there, also those of
/// earlier exports. If the user has edited `main.rs`, does not change it, and lists in `written`
/// the lines to add.
fn write_main(dir: &Path, written: &mut WrittenTests) -> Result<(), Failure> {
    let entries = std::fs::read_dir(dir).map_err(|error| Failure::file(dir, "listing", &error))?;
    let mut modules: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter_map(|name| Some(name.strip_suffix(".rs")?.to_owned()))
        .filter(|module| is_ours(module))
        .collect();
    modules.sort();
    let lines: Vec<String> = modules
        .iter()
        .map(|module| format!("mod {module};"))
        .collect();
    let text = format!(
        "//! Crashes that a fuzzer has found, one test each, by `ddfuzz export --into`.\n\n{}\n",
        lines.join("\n")
    );
    let text = seal(&text);
    let file = dir.join("main.rs");
    let found = look(&file, text.as_bytes())?;
    put(&file, text.as_bytes(), &found)?;
    match found {
        Existing::Edited => {
            let bytes = read(&file)?.unwrap_or_default();
            let there = String::from_utf8_lossy(&bytes).into_owned();
            let lacks = |line: &String| !there.lines().any(|known| known.trim().ends_with(line));
            written.to_add = lines.into_iter().filter(|line| lacks(line)).collect();
            written.edited.push(recorded(&file));
        }
        Existing::Same => written.unchanged.push(recorded(&file)),
        _ => written.written.push(recorded(&file)),
    }
    Ok(())
}

/// Returns the absolute path of a file, in the form in which JSON results contain paths.
fn recorded(file: &Path) -> OsText {
    OsText::from(&absolute(file))
}

/// Returns true if a module has the name of an exported test: `g_` and 12 hex digits.
fn is_ours(module: &str) -> bool {
    module
        .strip_prefix("g_")
        .is_some_and(|key| key.len() == 12 && key.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn tell(written: &WrittenTests, groups: usize, output: &Output) {
    let mut text = format!(
        "{}: {} written into {}, {} unchanged",
        size::counted(groups as u64, "group"),
        size::counted(written.written.len() as u64, "file"),
        Path::new(&written.into.0).display(),
        written.unchanged.len(),
    );
    for file in &written.edited {
        let file = Path::new(&file.0).display();
        text.push_str(&format!("\nedited, so not overwritten: {file}"));
    }
    if !written.to_add.is_empty() {
        let lines = written.to_add.join("\n  ");
        text.push_str(&format!("\nadd to main.rs:\n  {lines}"));
    }
    for LeftOut { major, why } in &written.left_out {
        text.push_str(&format!("\nno test of {major}: {why}"));
    }
    output.result(&text, written);
}

/// Beginning of the first line of an exported test, which ends with the hash, in 64 hex digits, of
/// the rest of the file.
const SEAL: &str = "// Written by `ddfuzz export`, which replaces it unless it is edited: ";

/// Returns the exported test `text` with a line before it that contains the hash of `text`, so that
/// later edits of the test can be detected.
pub(super) fn seal(text: &str) -> String {
    format!("{SEAL}{}\n{text}", blake3::hash(text.as_bytes()).to_hex())
}

/// Returns true if `bytes`, the content of a file, is an exported test that nobody has edited: its
/// text matches the hash in its first line. Line ends may differ, since version control systems
/// change them. Else false.
pub(super) fn is_intact(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let text = text.replace("\r\n", "\n");
    text.split_once('\n').is_some_and(|(first, rest)| {
        first.strip_prefix(SEAL) == Some(blake3::hash(rest.as_bytes()).to_hex().as_str())
    })
}

/// Returns the BLAKE3 hash of `bytes` in hex.
pub(super) fn hex_hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}
