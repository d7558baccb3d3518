//! `ddfuzz export`: writes the reproducer of a group in another form (`--as`), or tests for all
//! groups (`--into`).

mod formats;
pub(in crate::cli) mod group;
mod test_directory;

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::Serialize;

use super::output::{print_bytes, test_form};
use super::results::{absolute, is_standard, with_ending};
use super::show::warn_of_lost_reproducers;
use super::{Exit, Failure, Output};
use crate::exec::{Program, Target};
use crate::files::{FileError, OsText, atomic};
use crate::report::export::{Input, LITERAL_BYTES, Reproducer};
use crate::report::text::shell_word;
use crate::store::{Entry, Reader};
use formats::{ExportRequest, Form, harness_of, package_of};

/// Finds the crash group that `name` means in the output directory `out`, and returns the recorded
/// crash that represents it, and its target if one is recorded.
pub fn named_group(name: &Path, out: &Path) -> Result<(Entry, Option<Target>), Failure> {
    let (reader, chosen) = group::find(name, out)?;
    let target = chosen.target(&reader).ok();
    Ok((chosen.entry().clone(), target))
}

/// Write a group's reproducer in another form: a test, an array, a dump, a script
///
/// Goes to stdout unless --to or --into names a place. A test fails as long as the program does,
/// and stays as a regression test.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  ddfuzz export 3fa4 --as rust-test --call 'my_crate::parse(INPUT)'\n  \
                  ddfuzz export 3fa4 --as c-test --to test.c\n  \
                  ddfuzz export --into tests/fuzz_regressions\n  \
                  ddfuzz export 3fa4 --as creduce --to test.sh && cvise --not-c ./test.sh minimized"
)]
pub struct ExportArgs {
    /// The group: 4 or more hex digits of its major key, or a path to its folder or its reproducer;
    /// with --into, all groups of crashes unless one is named
    #[arg(required_unless_present = "into")]
    group: Option<PathBuf>,
    /// Output directory that contains the group
    #[arg(short, long, value_name = "DIR", default_value = "ddfuzz-out")]
    out: PathBuf,
    /// Form in which the reproducer is written, unless --into is given
    #[arg(long = "as", value_enum, value_name = "FORM")]
    form: Option<Form>,
    /// Write the exported form to FILE; - is stdout. A Rust test with an input over 4 KiB includes
    /// it from a second file beside this one
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Overwrite the file of --to
    #[arg(long, requires = "to")]
    force: bool,
    /// Write a Rust test for each group into this directory below tests/, with a main.rs. Files
    /// that were edited are not overwritten
    #[arg(long, value_name = "DIR", conflicts_with = "to")]
    into: Option<PathBuf>,
    /// For a Rust test: an expression to evaluate, in which INPUT is the input (a &[u8]); a panic
    /// fails the test
    #[arg(long, value_name = "EXPRESSION")]
    call: Option<String>,
    /// Directory of the cargo-fuzz project that the program is a harness of [default: the one it
    /// was built in]
    #[arg(long, value_name = "DIR", conflicts_with = "call")]
    fuzz_dir: Option<PathBuf>,
}

#[derive(Serialize)]
struct Exported {
    major: String,
    class: String,
    #[serde(rename = "as")]
    form: &'static str,
    size: u64,
    to: Option<OsText>,
    text: Option<String>,
}

/// Writes a Rust test for each crash group of the output directory `out` into `folder`; the tests
/// call the harnesses of the cargo-fuzz project at `fuzz_dir`. Returns the number of tests, and the
/// error for the first group for which no test could be made (`None` if there is no such group).
/// Does not overwrite files that the user has edited.
pub fn regressions(
    out: &Path,
    folder: &Path,
    fuzz_dir: &Path,
) -> Result<(u64, Option<Failure>), Failure> {
    let args = ExportArgs {
        group: None,
        out: out.to_owned(),
        form: None,
        to: None,
        force: false,
        into: Some(folder.to_owned()),
        call: None,
        fuzz_dir: Some(fuzz_dir.to_owned()),
    };
    let reader = Reader::open(out)?;
    let groups = group::all(&reader)?;
    let done = test_directory::files(&args, &reader, groups, folder)?;
    Ok((done.tests as u64, done.first_error))
}

/// Generates a regression test for a recorded crash, in the language of its target, without running
/// the program. Returns the name of the test's format, and its text. `None` if no test can be made:
/// the target is not in Rust or C, is missing, or gets its input in a special way (such as at a
/// terminal); the reproducer is too long for the text; or the crash was that of a process that the
/// program had started.
pub fn regression_test(reader: &Reader, entry: &Entry) -> Option<(String, String)> {
    let chosen = group::ChosenGroup::of(reader, entry)?;
    let form = match test_form(&chosen.target(reader).ok()?)? {
        "rust-test" => Form::RustTest,
        _ => Form::CTest,
    };
    let group = chosen.reproducer().ok()?;
    if group.input.len() > LITERAL_BYTES {
        return None;
    }
    let asked = ExportRequest {
        reader,
        chosen: &chosen,
        call: None,
        fuzz_dir: None,
        package: None,
        input: Input::Inline(&group.input),
        file: "test.c",
        may_run: false,
    };
    let text = String::from_utf8(asked.text(form, &group).ok()?).ok()?;
    Some((form.name().to_owned(), text))
}

/// Returns the command line by which cargo-fuzz runs the reproducer of a recorded crash; `None` if
/// the target is not a harness of a cargo-fuzz project.
pub fn cargo_command(reader: &Reader, entry: &Entry) -> Option<String> {
    let target = group::ChosenGroup::of(reader, entry)?.target(reader).ok()?;
    let Program::Path(program) = &target.program else {
        return None;
    };
    let harness = harness_of(program, None).ok()??;
    let name = shell_word(Path::new(&harness.name));
    let file = shell_word(&absolute(&entry.reproducer()));
    let dir = shell_word(&harness.dir);
    Some(format!("cargo fuzz run --fuzz-dir {dir} {name} {file}"))
}

pub fn run(mut args: ExportArgs, output: &Output) -> Result<Exit, Failure> {
    args.to = args.to.filter(|to| !is_standard(to));
    args.check()?;
    if let Some(folder) = &args.into {
        return into_folder(&args, folder, output);
    }
    let Some(name) = &args.group else {
        return Err(Failure::usage("no group is given").hint("see --help"));
    };
    let (reader, chosen) = group::find(name, &args.out)?;
    warn_of_lost_reproducers(&reader, output)?;
    let Some(form) = args.form else {
        let forms = Form::value_variants().iter().map(|form| form.name());
        let forms: Vec<&str> = forms.collect();
        return Err(Failure::usage("the form is missing")
            .hint(format!("add --as and one of {}", forms.join(", "))));
    };
    let group = chosen.reproducer()?;
    let base = args.to.as_deref().and_then(Path::parent);
    let package = package_of(base.unwrap_or(Path::new("")));
    let beside = args.beside(form, &group);
    let beside_name = beside.as_deref().and_then(Path::file_name);
    let beside_name = beside_name.map(|name| name.to_string_lossy());
    let asked = ExportRequest {
        reader: &reader,
        chosen: &chosen,
        call: args.call.as_deref(),
        fuzz_dir: args.fuzz_dir.as_deref(),
        package: package.as_deref(),
        input: match &beside_name {
            Some(name) => Input::File(name),
            None => Input::Inline(&group.input),
        },
        file: args.name(),
        may_run: true,
    };
    let text = asked.text(form, &group)?;
    if let Some(to) = &args.to {
        chosen.check_not_own(to)?;
        args.write(to, form, &text, beside.as_deref(), &group)?;
    }
    let exported = Exported {
        major: group.major.clone(),
        class: group.class.to_string(),
        form: form.name(),
        size: group.input.len() as u64,
        to: args.to.as_deref().map(|to| OsText::from(&absolute(to))),
        text: match args.to {
            Some(_) => None,
            None => Some(String::from_utf8_lossy(&text).into_owned()),
        },
    };
    match &args.to {
        Some(to) if !output.json => output.say(&format!("wrote {}", to.display())),
        // As it is: a script may name paths that are not UTF-8.
        None if !output.json => drop(print_bytes(&text)),
        _ => output.result("", &exported),
    }
    Ok(Exit::Done)
}

/// Runs `ddfuzz export --into`: writes a Rust test for the named crash group, or for all groups,
/// into `folder`. Returns the exit code.
fn into_folder(args: &ExportArgs, folder: &Path, output: &Output) -> Result<Exit, Failure> {
    let (reader, groups) = match &args.group {
        None => {
            let reader = Reader::open(&args.out)?;
            let all = group::all(&reader)?;
            (reader, all)
        }
        Some(name) => {
            let (reader, chosen) = group::find(name, &args.out)?;
            let all = group::AllGroups {
                complete: vec![chosen],
                incomplete: Vec::new(),
            };
            (reader, all)
        }
    };
    test_directory::write(args, &reader, groups, folder, output)
}

impl ExportArgs {
    /// Fails if an option of `ddfuzz export` is given that would have no effect, or if the
    /// expression of `--call` does not use the input.
    fn check(&self) -> Result<(), Failure> {
        let is_rust = matches!(self.form, None | Some(Form::RustTest));
        if self.into.is_some() && !is_rust {
            let message = "--into writes Rust tests only";
            return Err(Failure::usage(message).hint("use --to FILE for any other form"));
        }
        if self.call.is_some() && !is_rust {
            return Err(
                Failure::usage("--call works only with Rust tests").hint("add --as rust-test")
            );
        }
        if self.fuzz_dir.is_some()
            && !matches!(self.form, None | Some(Form::RustTest | Form::CTest))
        {
            return Err(
                Failure::usage("--fuzz-dir works only with tests of a cargo-fuzz harness")
                    .hint("add --as rust-test, or omit --fuzz-dir"),
            );
        }
        let names_input = |call: &String| call.contains("INPUT");
        if self.call.as_ref().is_some_and(|call| !names_input(call)) {
            let message = "the expression of --call does not use INPUT";
            return Err(Failure::usage(message).hint("for example --call 'my_crate::parse(INPUT)'"));
        }
        Ok(())
    }

    /// Returns the path of a file for the input, beside the output file, if the input of `group` is
    /// too large for the text of a Rust test. `None` if the output is in another form or goes to
    /// stdout, or if the input fits into the test.
    fn beside(&self, form: Form, group: &Reproducer) -> Option<PathBuf> {
        let is_large = form == Form::RustTest && group.input.len() > LITERAL_BYTES;
        let to = self.to.as_deref().filter(|_| is_large)?;
        Some(with_ending(to, ".bin"))
    }

    /// Returns the name of the output file, for the command in the test's comment that compiles it.
    /// If there is no file, or the name would need quotes in a shell, returns `THIS_FILE.c`.
    fn name(&self) -> &str {
        let name = self.to.as_deref().and_then(Path::file_name);
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
        let name = name.and_then(|name| name.to_str());
        name.filter(|name| name.bytes().all(plain) && !name.starts_with('-'))
            .unwrap_or("THIS_FILE.c")
    }

    fn write(
        &self,
        to: &Path,
        form: Form,
        text: &[u8],
        beside: Option<&Path>,
        group: &Reproducer,
    ) -> Result<(), Failure> {
        let files = [Some(to), beside];
        if let Some(taken) = files.into_iter().flatten().find(|file| file.exists())
            && !self.force
        {
            return Err(exists(taken));
        }
        if let Some(beside) = beside.filter(|beside| beside.exists())
            && !names_input(to, beside)
        {
            let hint = "move it to another place, or give another file with --to: no test at the \
                        place of --to includes it";
            return Err(Failure::exists(beside, hint));
        }
        if let Some(beside) = beside {
            self.put(beside, &group.input, false)?;
        }
        self.put(to, text, form.is_script())
    }

    fn put(&self, file: &Path, bytes: &[u8], is_program: bool) -> Result<(), Failure> {
        let written = match (self.force, is_program) {
            (true, true) => atomic::write_program(file, bytes),
            (true, false) => atomic::write(file, bytes),
            (false, true) => atomic::create_new_program(file, bytes),
            (false, false) => atomic::create_new(file, bytes),
        };
        written.map_err(|error| match error.is_existing() {
            true => exists(file),
            false => not_written(error, file),
        })
    }
}

/// Returns true if the test in the file `to` includes the file `beside` as its input, because an
/// earlier export has written both. Else false.
fn names_input(to: &Path, beside: &Path) -> bool {
    let name = beside.file_name().unwrap_or_default().to_string_lossy();
    let text = std::fs::read(to).unwrap_or_default();
    String::from_utf8_lossy(&text).contains(&format!("include_bytes!({name:?})"))
}

fn exists(file: &Path) -> Failure {
    let hint = "overwrite it with --force, or give another file with --to";
    Failure::exists(file, hint)
}

fn not_written(error: FileError, file: &Path) -> Failure {
    Failure::unwritten(file, error).or_hint("give a writable place")
}
