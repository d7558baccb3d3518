//! A cargo-fuzz project: finds it, lists its fuzz targets (`list`), creates one (`init`), and
//! copies new inputs and crashes into its `corpus/TARGET` and `artifacts/TARGET`.
//!
//! Only this file uses the crate `sha1`: libFuzzer names inputs by their SHA-1.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};

use crate::cli::cargo::build::{cargo, choose_toolchain, no_cargo};
use crate::cli::results::{LOG_ENDING, recorded_path};
use crate::cli::{Exit, Failure, Output};
use crate::exec::TargetRecord;
use crate::files::{OsText, atomic, folder, regular};
use crate::report::{size, text};
use crate::store::{Campaign, Kind, Reader};

/// A cargo-fuzz project that was found on disk.
#[derive(Debug)]
pub struct Project {
    /// Absolute path of the directory with the `Cargo.toml` of the cargo-fuzz project.
    pub fuzz_dir: PathBuf,
    /// Names of the fuzz targets of the cargo-fuzz project, sorted.
    pub targets: Vec<String>,
    /// Path of the directory to which cargo writes the build results of the cargo-fuzz project.
    pub target_directory: PathBuf,
}

/// The parts that ddfuzz uses of the output of `cargo metadata`.
#[derive(Deserialize)]
struct CargoMetadata {
    packages: Vec<CargoPackage>,
    target_directory: PathBuf,
}

#[derive(Deserialize)]
struct CargoPackage {
    manifest_path: PathBuf,
    targets: Vec<CargoTarget>,
}

#[derive(Deserialize)]
struct CargoTarget {
    name: String,
    kind: Vec<String>,
}

impl Project {
    /// Finds the cargo-fuzz project: the directory `named` by `--fuzz-dir`, else the nearest
    /// cargo-fuzz crate at or above the working directory, or the `fuzz` folder of one of these
    /// directories. Fails if there is none.
    pub fn find(named: Option<&Path>) -> Result<Project, Failure> {
        let here = std::env::current_dir()
            .map_err(|error| Failure::file(Path::new("."), "finding", &error))?;
        let fuzz_dir = match named {
            Some(named) => {
                let dir = here.join(named);
                match is_fuzz_crate(&dir) {
                    true => dir,
                    false => return Err(no_fuzz_crate(&dir)),
                }
            }
            None => nearest_fuzz_crate(&here).ok_or_else(|| none_above(&here))?,
        };
        Project::read(fuzz_dir)
    }

    fn read(fuzz_dir: PathBuf) -> Result<Project, Failure> {
        let manifest = fuzz_dir.join("Cargo.toml");
        let output = Command::new("cargo")
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .arg("--manifest-path")
            .arg(&manifest)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| no_cargo(&error))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let message = format!("cargo cannot read the project: {}", said.trim());
            return Err(Failure::usage(message)
                .path(&manifest)
                .hint("fix the manifest"));
        }
        let unread = |why: &dyn std::fmt::Display| {
            let message = format!("the output of `cargo metadata` is not understood: {why}");
            Failure::new(Exit::Internal, "system", message).path(&manifest)
        };
        let metadata: CargoMetadata =
            serde_json::from_slice(&output.stdout).map_err(|error| unread(&error))?;
        let own = std::fs::canonicalize(&manifest).unwrap_or(manifest.clone());
        let is_own = |package: &&CargoPackage| {
            std::fs::canonicalize(&package.manifest_path).is_ok_and(|path| path == own)
        };
        let package = metadata.packages.iter().find(is_own);
        let package = package.ok_or_else(|| unread(&"the package is not in it"))?;
        let binaries = package.targets.iter();
        let binaries = binaries.filter(|target| target.kind.iter().any(|kind| kind == "bin"));
        let mut targets: Vec<String> = binaries.map(|target| target.name.clone()).collect();
        targets.sort();
        Ok(Project {
            fuzz_dir,
            targets,
            target_directory: metadata.target_directory,
        })
    }

    /// Checks that the project has a fuzz target called `target`; fails if not.
    pub fn check(&self, target: &str) -> Result<(), Failure> {
        if self.targets.iter().any(|one| one == target) {
            return Ok(());
        }
        let message = format!("there is no fuzz target {target}");
        let hint = match self.targets.is_empty() {
            true => format!("add it: cargo fuzz add {target}"),
            false => format!(
                "there are {}; add it: cargo fuzz add {target}",
                self.targets.join(", ")
            ),
        };
        Err(Failure::usage(message).path(&self.fuzz_dir).hint(hint))
    }

    /// Returns the path of the corpus directory of the fuzz target `target` in the project,
    /// `corpus/TARGET`.
    pub fn corpus(&self, target: &str) -> PathBuf {
        self.fuzz_dir.join("corpus").join(target)
    }

    /// Returns the path of the project's folder `artifacts/TARGET`, which contains failing inputs
    /// of the fuzz target `target`.
    pub fn artifacts(&self, target: &str) -> PathBuf {
        self.fuzz_dir.join("artifacts").join(target)
    }
}

fn no_fuzz_crate(dir: &Path) -> Failure {
    let hint = match dir.file_name() == Some(OsStr::new("fuzz")) {
        true => "create one: cargo fuzz init",
        false => {
            "give the directory whose Cargo.toml has `cargo-fuzz = true` under [package.metadata]"
        }
    };
    Failure::usage("this is not a cargo-fuzz project")
        .path(dir)
        .hint(hint)
}

fn none_above(here: &Path) -> Failure {
    Failure::usage("there is no cargo-fuzz project in this directory or above it")
        .path(here)
        .hint("create one: cargo fuzz init; or give its directory: --fuzz-dir DIR")
}

/// Default of `--out`, ddfuzz's output directory.
const DEFAULT_OUT: &str = "ddfuzz-out";

/// Returns the output directory for the fuzz target `name`: usually `asked`, the value of `--out`.
/// If that is the default directory, and the last campaign in it was on a program with another file
/// name than `program`, returns `ddfuzz-out-NAME` instead.
pub fn choose_out(asked: &Path, name: &str, program: &Path) -> PathBuf {
    match asked == Path::new(DEFAULT_OUT) && is_of_another(asked, program) {
        true => PathBuf::from(format!("{DEFAULT_OUT}-{name}")),
        false => asked.to_owned(),
    }
}

fn is_of_another(out: &Path, program: &Path) -> bool {
    let record = last_target(out);
    let path = record.and_then(|record| record.program);
    // The profile or the machine it was built for may be another.
    path.is_some_and(|path| Path::new(&path.0).file_name() != program.file_name())
}

/// Returns the target of the last campaign in an output directory; `None` if there was no campaign,
/// or the directory cannot be read.
pub fn last_target(out: &Path) -> Option<TargetRecord> {
    let campaigns = Reader::open(out).ok()?.campaigns().ok()?;
    campaigns.current?.target
}

/// List the fuzz targets of the project
#[derive(clap::Args)]
#[command(after_help = "Example:\n  cargo ddfuzz list")]
pub struct ListArgs {
    /// Directory of the cargo-fuzz project [default: fuzz/ in this directory, or in the nearest one
    /// above it that has one]
    #[arg(long, value_name = "DIR")]
    fuzz_dir: Option<PathBuf>,
}

#[derive(Serialize)]
struct Listed {
    fuzz_dir: OsText,
    targets: Vec<FuzzTarget>,
}

#[derive(Serialize)]
struct FuzzTarget {
    name: String,
    /// Number of files in the fuzz target's corpus in the cargo-fuzz project.
    corpus: u64,
    /// Number of failing inputs of the fuzz target in the folder `artifacts/TARGET` of the
    /// cargo-fuzz project.
    artifacts: u64,
    /// Number of crash groups in ddfuzz's output directory; `null` if this fuzz target has no
    /// output directory.
    groups: Option<u64>,
    out: Option<OsText>,
}

/// Runs `cargo ddfuzz list`, which prints the fuzz targets of the project.
pub fn list(args: ListArgs, output: &Output) -> Result<Exit, Failure> {
    let project = Project::find(args.fuzz_dir.as_deref())?;
    let targets = project.targets.iter().map(|name| {
        let place = choose_out(Path::new("ddfuzz-out"), name, Path::new(name));
        let groups = count_groups(&place, name);
        FuzzTarget {
            name: name.clone(),
            corpus: count_inputs(&project.corpus(name)),
            artifacts: count_inputs(&project.artifacts(name)),
            out: groups.and_then(|_| recorded_path(&place)),
            groups,
        }
    });
    let listed = Listed {
        targets: targets.collect(),
        fuzz_dir: OsText::from(&project.fuzz_dir),
    };
    let lines = listed.targets.iter().map(|target| {
        let groups = match target.groups {
            Some(count) => format!(", {}", size::counted(count, "group")),
            None => String::new(),
        };
        format!(
            "{}: {} in its corpus, {}{groups}",
            text::printable(&target.name),
            size::counted(target.corpus, "input"),
            size::counted(target.artifacts, "artifact"),
        )
    });
    let text: Vec<String> = lines.collect();
    let text = match text.is_empty() {
        true => "no fuzz targets; add one: cargo fuzz add NAME".to_owned(),
        false => text.join("\n"),
    };
    output.result(&text, &listed);
    Ok(Exit::Done)
}

/// Counts the crash groups in an output directory; `None` if the directory's last campaign was not
/// on the fuzz target `name`, or the directory cannot be read.
fn count_groups(out: &Path, name: &str) -> Option<u64> {
    let program = last_target(out)?.program?;
    if Path::new(&program.0).file_name()? != name {
        return None;
    }
    let groups = Reader::open(out).ok()?.groups(Kind::Crash).ok()?;
    Some(groups.len() as u64)
}

/// Counts the inputs in a folder of the project: its files, except results and logs of `min` beside
/// the files that were minimized. 0 if there is no such folder.
fn count_inputs(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let inputs = entries.filter(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let mut endings = [".min", LOG_ENDING].into_iter();
        let minimized = endings.find_map(|ending| name.strip_suffix(ending));
        let is_of_min = minimized.is_some_and(|name| dir.join(name).exists());
        !is_of_min && entry.file_type().is_ok_and(|kind| kind.is_file())
    });
    inputs.count() as u64
}

/// Create a cargo-fuzz project for this crate (cargo fuzz init)
#[derive(clap::Args)]
#[command(after_help = "Example:\n  cargo ddfuzz init --fuzz-target parse")]
pub struct InitArgs {
    /// Name of the fuzz target of the new project
    #[arg(long, value_name = "NAME", default_value = "fuzz_target_1")]
    fuzz_target: String,
}

/// Runs `cargo ddfuzz init`, which creates a cargo-fuzz project for the crate in this directory by
/// `cargo fuzz init`, and prints what to do next. Fails if there is a project already, in this
/// directory or one above, or if `cargo fuzz init` fails.
pub fn init(args: InitArgs, output: &Output) -> Result<Exit, Failure> {
    if let Ok(project) = Project::find(None) {
        let targets = project.targets.join(", ");
        let message =
            format!("there is a cargo-fuzz project already, with the fuzz targets {targets}");
        return Err(Failure::usage(message)
            .path(&project.fuzz_dir)
            .hint("fuzz one of them: cargo ddfuzz run NAME; add another: cargo fuzz add NAME"));
    }
    let toolchain = choose_toolchain(false, output)?;
    let status = cargo(toolchain)
        .args(["fuzz", "init", "--target", &args.fuzz_target])
        .stdout(std::io::stderr())
        .status()
        .map_err(|error| no_cargo(&error))?;
    if !status.success() {
        return Err(Failure::usage(format!("cargo fuzz init failed ({status})"))
            .hint("fix the error shown above; the command creates fuzz/ beside the Cargo.toml of a package"));
    }
    let project = Project::find(None)?;
    let name = &args.fuzz_target;
    output.result(
        &format!(
            "created {}\nnext: write the code to be fuzzed into {}, then: cargo ddfuzz run {name}",
            project.fuzz_dir.display(),
            project
                .fuzz_dir
                .join("fuzz_targets")
                .join(format!("{name}.rs"))
                .display(),
        ),
        &serde_json::json!({ "fuzz_dir": OsText::from(&project.fuzz_dir), "targets": project.targets }),
    );
    Ok(Exit::Done)
}

#[derive(Deserialize)]
struct FuzzManifest {
    package: FuzzPackage,
    #[serde(default)]
    bin: Vec<FuzzBinary>,
}

#[derive(Deserialize)]
struct FuzzPackage {
    metadata: FuzzMetadata,
}

#[derive(Deserialize)]
struct FuzzMetadata {
    #[serde(rename = "cargo-fuzz")]
    cargo_fuzz: bool,
}

#[derive(Deserialize)]
struct FuzzBinary {
    name: String,
}

/// Returns the names of the `[[bin]]` entries in the `Cargo.toml` of the directory `dir`; `None` if
/// this file cannot be read or is not marked as that of a cargo-fuzz project.
pub fn fuzz_binaries(dir: &Path) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(dir.join("Cargo.toml")).ok()?;
    let manifest: FuzzManifest = toml::from_str(&text).ok()?;
    let names = manifest.bin.into_iter().map(|binary| binary.name);
    manifest
        .package
        .metadata
        .cargo_fuzz
        .then(|| names.collect())
}

/// Returns the directory of the nearest cargo-fuzz crate: `here` or one above it, or the `fuzz`
/// folder of one of these. `None` if there is none.
pub fn nearest_fuzz_crate(here: &Path) -> Option<PathBuf> {
    here.ancestors().find_map(|dir| {
        let inside = dir.join("fuzz");
        match is_fuzz_crate(dir) {
            true => Some(dir.to_owned()),
            false => is_fuzz_crate(&inside).then_some(inside),
        }
    })
}

/// Returns true if the `Cargo.toml` in the directory `dir` is marked as that of a cargo-fuzz
/// project.
pub fn is_fuzz_crate(dir: &Path) -> bool {
    fuzz_binaries(dir).is_some()
}

/// Maximum length, in bytes, of an input of the corpus that is copied to the project; longer ones
/// are skipped.
const LONGEST: u64 = 1 << 30;

/// Returns the name that libFuzzer gives to a file with this input: its SHA-1 in hex.
pub fn libfuzzer_name(input: &[u8]) -> String {
    let digest = Sha1::digest(input);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the prefix that libFuzzer gives to the file name of a failing input of this `kind` and
/// `class`: `crash-`, `leak-`, `timeout-` or `oom-`. `None` for flaky crashes, which are not
/// copied.
fn prefix(kind: Kind, class: &str) -> Option<&'static str> {
    match kind {
        Kind::Crash if class.starts_with("lsan:") => Some("leak-"),
        Kind::Crash => Some("crash-"),
        Kind::Hang => Some("timeout-"),
        Kind::Oom => Some("oom-"),
        Kind::Flaky => None,
    }
}

/// Name of a file in the output directory that lists the SHA-1 names of inputs, one a line: those
/// that were copied to the project, and those that the project had before. An input in the list is
/// not copied again, even if the project has lost it since, for example by a cleanup.
const COPIED: &str = "copied-to-project.txt";

/// Copies new files from ddfuzz's output directory `out` to the cargo-fuzz project: inputs of the
/// corpus, and the original inputs and shorter reproducers of the entries that represent groups of
/// failures. An input is copied once, and not if the project has it under another name. If the
/// directory has results of several targets, only failures of the fuzz target `name` are copied,
/// and no corpus. Overwrites nothing. Prints how many files were copied; returns the path of the
/// first group's reproducer, `None` without groups.
pub fn copy_to_project(
    out: &Path,
    project: &Project,
    name: &str,
    output: &Output,
) -> Result<Option<PathBuf>, Failure> {
    let reader = Reader::open(out)?;
    let corpus = project.corpus(name);
    let mut inputs = 0;
    let record = out.join(COPIED);
    let mut copied = names_in(&record)?;
    let before = copied.len();
    let mut held = None;
    let own = own_campaigns(&reader, name)?;
    // Which target an input of a shared corpus is for is not recorded.
    let paths = match own {
        None => reader.corpus()?,
        Some(_) => Vec::new(),
    };
    for path in paths {
        let Ok(bytes) = regular::read(&path, LONGEST) else {
            continue;
        };
        let sum = libfuzzer_name(&bytes);
        if copied.contains(&sum) {
            continue;
        }
        if !held.get_or_insert_with(|| contents(&corpus)).contains(&sum) {
            inputs += u64::from(put(&corpus, &sum, &bytes)?);
        }
        copied.insert(sum);
    }
    if copied.len() > before {
        let lines: String = copied.iter().map(|sum| format!("{sum}\n")).collect();
        atomic::write(&record, lines.as_bytes())?;
    }
    let shown = |folder: &Path| text::shell_word(folder);
    if inputs > 0 {
        let inputs = size::counted(inputs, "new input");
        output.say(&format!("wrote {inputs} to {}", shown(&corpus)));
    }
    let artifacts = project.artifacts(name);
    let written = reproducers(&reader, own.as_ref(), &artifacts)?;
    if written.count > 0 {
        let count = size::counted(written.count, "artifact");
        output.say(&format!("wrote {count} to {}", shown(&artifacts)));
    }
    Ok(written.first)
}

/// Returns the ids of the campaigns on the fuzz target `name`; `None` if either all or none of the
/// campaigns of the output directory are on this fuzz target.
pub fn own_campaigns(reader: &Reader, name: &str) -> Result<Option<BTreeSet<String>>, Failure> {
    let campaigns = reader.campaigns()?;
    let is_own = |campaign: &&Campaign| {
        let program = campaign
            .target
            .as_ref()
            .and_then(|target| target.program.as_ref());
        program.is_some_and(|path| Path::new(&path.0).file_name() == Some(OsStr::new(name)))
    };
    let own: BTreeSet<String> = campaigns
        .all()
        .filter(is_own)
        .map(|own| own.id.clone())
        .collect();
    let has_others = own.len() < campaigns.all().count();
    Ok(Some(own).filter(|own| has_others && !own.is_empty()))
}

/// Returns the lines of the file `record`; none if it does not exist.
fn names_in(record: &Path) -> Result<BTreeSet<String>, Failure> {
    match std::fs::read_to_string(record) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(Failure::file(record, "reading", &error)),
    }
}

/// Returns the names that libFuzzer would give to the files in the folder of a corpus: the SHA-1 of
/// each file's content.
fn contents(corpus: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(corpus).into_iter().flatten().flatten();
    let inputs = entries.filter_map(|entry| regular::read(&entry.path(), LONGEST).ok());
    inputs.map(|bytes| libfuzzer_name(&bytes)).collect()
}

/// The result of writing failing inputs to the project's folder `artifacts/TARGET`.
#[derive(Debug, Default)]
pub struct WrittenArtifacts {
    /// Number of failing inputs that were written as files; files that existed before do not count.
    pub count: u64,
    /// Path of the input that shows the first group: the reproducer of the crash that represents
    /// the group, or the original input if the reproducer is not shorter. The file may have existed
    /// before; if the project has another file of the reproducer's name, the path is that in the
    /// output directory. `None` without groups.
    pub first: Option<PathBuf>,
}

/// Writes files into `artifacts` for each entry that represents a group: its original input, and
/// its reproducer if that is shorter. A file whose name exists already is not written. If `own` is
/// given, only entries that were found by the campaigns with these ids are written.
pub fn reproducers(
    reader: &Reader,
    own: Option<&BTreeSet<String>>,
    artifacts: &Path,
) -> Result<WrittenArtifacts, Failure> {
    let mut written = WrittenArtifacts::default();
    for kind in Kind::ALL {
        for group in reader.groups(kind)? {
            let Some(prefix) = prefix(kind, &group.record.class.0) else {
                continue;
            };
            for id in group.representatives() {
                let Some(entry) = reader.entry(&id)? else {
                    continue;
                };
                let finder = entry.crash.campaign();
                if own.is_some_and(|own| !finder.is_some_and(|finder| own.contains(finder))) {
                    continue;
                }
                let original = entry.original_bytes()?;
                let sum = libfuzzer_name(&original);
                let crash = format!("{prefix}{sum}");
                written.count += u64::from(put(artifacts, &crash, &original)?);
                let reproducer = entry.reproducer_bytes()?;
                let minimized = format!("minimized-from-{sum}");
                let mut least = artifacts.join(crash);
                // The reproducer of an unfinished minimization is not written: it may still become
                // shorter.
                if entry.minimized.is_some() && reproducer.len() < original.len() {
                    written.count += u64::from(put(artifacts, &minimized, &reproducer)?);
                    let file = artifacts.join(minimized);
                    let there = regular::read(&file, LONGEST);
                    least = match there.is_ok_and(|there| there == reproducer) {
                        true => file,
                        // The project has another file of that name.
                        false => entry.reproducer(),
                    };
                }
                written.first.get_or_insert(least);
            }
        }
    }
    Ok(written)
}

/// Creates the file `name` in `dir`, and `dir` if needed, with the content `bytes`. Returns true if
/// the file was created; false, and changes nothing, if it exists.
fn put(dir: &Path, name: &str, bytes: &[u8]) -> Result<bool, Failure> {
    let path = dir.join(name);
    if path.symlink_metadata().is_ok() {
        return Ok(false);
    }
    let made = folder::create_all(dir).and_then(|()| atomic::create_new(&path, bytes));
    match made {
        Ok(()) => Ok(true),
        Err(error) if error.is_existing() => Ok(false),
        Err(error) => Err(error.into()),
    }
}
