//! `ddfuzz triage`: runs, keys and groups crash files that exist already.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::run::{campaign_of, processors};
use super::target::TargetArgs;
use super::{Exit, Failure, Output, ui};
use crate::exec::{Target, Way};
use crate::report::{TriageGroup, TriageInput, TriageResult, triage_table};
use crate::store::{Kind, Store};
use crate::triage::{Crash, Found, Triager, Verdict};

/// Run, key and group crash files
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ddfuzz triage crash-1 artifacts/ -- ./program @@")]
pub struct Args {
    /// Crash files, or directories of them; they are only read
    #[arg(required = true, value_name = "INPUT_OR_DIR")]
    inputs: Vec<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    /// Workers [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Look for leaks in inputs that do not crash, where the program has LeakSanitizer; of files
    /// named leak-* it is always done
    #[arg(long)]
    leaks: bool,
    /// File the crashes in this output directory, too
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let target = args.target.target()?;
    let mut files = Vec::new();
    for input in &args.inputs {
        collect(input, &mut files)?;
    }
    let way = args.target.probe(&target, output)?.executor.way();
    let mut store = match &args.out {
        Some(out) => Some(Store::create_or_resume(
            out,
            campaign_of(&target, way, None),
        )?),
        None => None,
    };
    let mut result = TriageResult::default();
    let mut groups: BTreeMap<String, (TriageGroup, u64)> = BTreeMap::new();
    let jobs = args.jobs.map_or_else(processors, |jobs| jobs as usize);
    let examined = examine_all(&files, &target, way, (jobs, args.leaks))?;
    for (file, Examined { size, verdict }) in files.into_iter().zip(examined) {
        if let Verdict::Crash(crash) = &verdict {
            take(&mut groups, crash, &file, size);
            if let Some(store) = &mut store {
                let found = Some(Found::File { path: file.clone() });
                store.file(
                    Kind::Crash,
                    &Crash {
                        found,
                        ..(**crash).clone()
                    },
                    &read(&file)?,
                )?;
            }
        }
        result.inputs.push(described(file, &verdict));
    }
    result.groups = groups.into_values().map(|(group, _)| group).collect();
    let found = !result.groups.is_empty();
    output.result(&triage_table(&result, ui::stdout_width()), &result);
    Ok(if found { Exit::Found } else { Exit::Done })
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(file).map_err(|error| Failure::file(file, "reading", &error))
}

/// What was found out about one file.
struct Examined {
    /// Its size, in bytes.
    size: u64,
    verdict: Verdict,
}

fn examine(triager: &mut Triager, file: &Path, leaks: bool) -> Result<Examined, Failure> {
    let bytes = read(file)?;
    // As libFuzzer names what it keeps of them.
    let by_name = file
        .file_name()
        .is_some_and(|name| name.as_bytes().starts_with(b"leak-"));
    triager.look_for_leaks(leaks || by_name);
    Ok(Examined {
        size: bytes.len() as u64,
        verdict: triager.examine(&bytes)?,
    })
}

/// Examines all files by `jobs` workers, with or without looking for leaks; the answers in the order of the files, or the failure
/// of the first of them that has one.
fn examine_all(
    files: &[PathBuf],
    target: &Target,
    way: Way,
    (jobs, leaks): (usize, bool),
) -> Result<Vec<Examined>, Failure> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut triager = Triager::of_target(target, way)?;
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = files.get(at) else { break };
            let examined = examine(&mut triager, file, leaks);
            let failed = examined.is_err();
            done.push((at, examined));
            if failed {
                next.store(files.len(), Ordering::Relaxed); // the others may stop as well
            }
        }
        Ok::<_, Failure>(done)
    };
    let mut all = Vec::new();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.min(files.len()))
            .map(|_| scope.spawn(work))
            .collect();
        for worker in workers {
            all.extend(worker.join().unwrap_or_else(|panic| resume_unwind(panic))?);
        }
        Ok::<_, Failure>(())
    })?;
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, examined)| examined).collect()
}

/// The files below `path`, in the order of their names.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let failed = |error| Failure::file(path, "reading", &error);
    let absolute = std::path::absolute(path).map_err(failed)?;
    if !std::fs::metadata(path).map_err(failed)?.is_dir() {
        files.push(absolute);
        return Ok(());
    }
    let mut below = Vec::new();
    for entry in std::fs::read_dir(&absolute).map_err(failed)? {
        below.push(entry.map_err(failed)?.path());
    }
    below.sort();
    for path in below {
        // Links are followed to files, not to directories: those might lead round in a circle.
        let kind = std::fs::symlink_metadata(&path)
            .map_err(failed)?
            .file_type();
        if kind.is_dir() {
            collect(&path, files)?;
        } else if path.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

fn take(groups: &mut BTreeMap<String, (TriageGroup, u64)>, crash: &Crash, file: &Path, size: u64) {
    let major = crash.keys.major.short();
    let (group, least) = groups.entry(major.clone()).or_insert_with(|| {
        let group = TriageGroup {
            major,
            class: crash.class.to_string(),
            severity: crash.severity,
            count: 0,
            representative: file.to_owned(),
        };
        (group, size)
    });
    group.count += 1;
    group.severity = group.severity.max(crash.severity);
    if size < *least {
        *least = size;
        group.representative = file.to_owned();
    }
}

fn described(file: PathBuf, verdict: &Verdict) -> TriageInput {
    match verdict {
        Verdict::Crash(crash) => TriageInput {
            file,
            ended: Some(crash.ended.to_string()),
            class: Some(crash.class.to_string()),
            major: Some(crash.keys.major.short()),
            minor: Some(crash.keys.minor.short()),
            way: Some(crash.way),
            confidence: Some(crash.confidence),
            hits: crash.hits,
            tries: crash.tries,
        },
        Verdict::Flaky { tries, ended } => TriageInput {
            file,
            ended: Some(ended.to_string()),
            class: None,
            major: None,
            minor: None,
            way: None,
            confidence: None,
            hits: 0,
            tries: *tries,
        },
    }
}
