//! The corpora: what ddfuzz's own campaigns have kept, of as many seeds as it takes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::builds::Builds;
use crate::subjects::Subject;

/// Of each campaign, in runs.
const RUNS: &str = "5000";
/// Bytes of the longest input.
const LONGEST: &str = "512";
/// No more campaigns than this.
const MOST: u64 = 2000;

/// A folder of `count` different files: those of campaigns with the seeds 1, 2, 3 …, as many as
/// it takes, their names in order. Made once.
///
/// # Errors
/// Where a campaign fails, or campaigns keep too little.
pub fn corpus(builds: &Builds, subject: &Subject, count: usize) -> Result<PathBuf, String> {
    let text = |error: std::io::Error| error.to_string();
    let whole = builds
        .folder
        .join(format!("corpus-{}-{count}", subject.corpus));
    if whole.exists() {
        return Ok(whole);
    }
    let growing = whole.with_extension("new");
    let _ = fs::remove_dir_all(&growing);
    fs::create_dir_all(&growing).map_err(text)?;
    let mut held = 0;
    for seed in 1..=MOST {
        let out = tempfile::tempdir().map_err(text)?;
        campaign(builds, subject, seed, out.path())?;
        for file in files(&out.path().join("out/corpus"))? {
            // Named by what is in it, so that another campaign's is the same file.
            let to = growing.join(file.file_name().unwrap_or_default());
            if held < count && !to.exists() {
                fs::copy(&file, &to).map_err(text)?;
                held += 1;
            }
        }
        if held == count {
            fs::rename(&growing, &whole).map_err(text)?;
            return Ok(whole);
        }
    }
    Err(format!("{MOST} campaigns have kept {held} files"))
}

fn campaign(builds: &Builds, subject: &Subject, seed: u64, folder: &Path) -> Result<(), String> {
    let mut command = Command::new(&builds.ddfuzz);
    command.args(["run", "-q", "--jobs", "1", "--minimize", "off"]);
    command.args(["--exec", subject.way.name(), "--generator", "guided"]);
    command.args(["--seed", &seed.to_string(), "--runs", RUNS]);
    command.args(["--max-len", LONGEST]);
    command.arg("--seeds").arg(&subject.seeds);
    command.arg("-o").arg(folder.join("out"));
    command.arg("--").arg(&subject.fuzzed);
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{command:?}: {error}"))?;
    match output.status.code() {
        Some(0 | 1) => Ok(()),
        _ => Err(format!(
            "{command:?}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

/// The files of a folder, in order; none where there is no such folder.
///
/// # Errors
/// Those of listing it.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let all = match fs::read_dir(folder) {
        Ok(all) => all,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("{}: {error}", folder.display())),
    };
    let mut files: Vec<PathBuf> = all.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    Ok(files)
}
