//! `afl-fuzz` itself, on a program that is compiled for it, or with `-n` on any program.
//!
//! Its runs are those of a campaign that starts from the input of all subjects: it mutates that
//! input, looks at the coverage of each run and keeps what is new. So its cost is not that of the
//! fork server alone, and its inputs become shorter and longer than the others' are; what it
//! tells is how fast AFL++ fuzzes that program.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::prctl;
use nix::sys::wait::wait;

use super::Subject;
use crate::cost::{Cost, cpu};
use crate::programs::{environment, input};

/// It asks nothing of the machine's settings, and prints what happened line by line. It has no
/// processor of its own, as the other subjects have none.
const SETTINGS: [&str; 4] = [
    "AFL_NO_UI",
    "AFL_SKIP_CPUFREQ",
    "AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES",
    "AFL_NO_AFFINITY",
];
/// Of its random numbers, so that all rounds mutate alike.
const SEED: &str = "1";

/// A campaign, started anew for each round.
pub struct AflFuzz {
    program: PathBuf,
    args: Vec<OsString>,
    /// Whether the program is not compiled for it (`-n`).
    is_plain: bool,
}

/// What one campaign did.
struct Campaign {
    runs: f64,
    wall: Duration,
    cpu: Duration,
}

impl AflFuzz {
    /// Fails, and says why, if there is no `afl-fuzz` or it does not run `program`.
    pub fn new(program: &Path) -> Result<AflFuzz, String> {
        AflFuzz::checked(program, &[], false)
    }

    /// A campaign without coverage on `program`, with arguments; fails as [`AflFuzz::new`] does.
    pub fn plain(program: &Path, args: &[&str]) -> Result<AflFuzz, String> {
        AflFuzz::checked(program, args, true)
    }

    fn checked(program: &Path, args: &[&str], is_plain: bool) -> Result<AflFuzz, String> {
        let subject = AflFuzz {
            program: program.to_owned(),
            args: args.iter().map(Into::into).collect(),
            is_plain,
        };
        subject.campaign(1)?;
        Ok(subject)
    }

    /// At least `runs` runs: it stops at the end of a step only, and has some to begin with.
    fn campaign(&self, runs: u32) -> Result<Campaign, String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let [seeds, out] = ["seeds", "out"].map(|name| directory.path().join(name));
        let written = fs::create_dir(&seeds).and_then(|()| fs::write(seeds.join("seed"), input()));
        written.map_err(|error| format!("writing its seed: {error}"))?;
        let (before, began) = (cpu(), Instant::now());
        let asked = runs;
        let runs = OsString::from(runs.to_string());
        let mut args = vec![
            OsStr::new("-s"),
            OsStr::new(SEED),
            OsStr::new("-E"),
            &runs,
            OsStr::new("-i"),
            seeds.as_os_str(),
            OsStr::new("-o"),
            out.as_os_str(),
        ];
        args.extend(self.is_plain.then_some(OsStr::new("-n")));
        args.extend([OsStr::new("--"), self.program.as_os_str()]);
        args.extend(self.args.iter().map(OsString::as_os_str));
        run(&args)?;
        let cpu = cpu() - before;
        if self.is_plain {
            // It writes no figures then; up to eight runs more than asked for were counted.
            return Ok(Campaign {
                runs: f64::from(asked),
                wall: began.elapsed(),
                cpu,
            });
        }
        let path = out.join("default/fuzzer_stats");
        let stats = fs::read_to_string(path).map_err(|error| format!("its figures: {error}"))?;
        let (runs, rate) = (
            figure(&stats, "execs_done")?,
            figure(&stats, "execs_per_sec")?,
        );
        // It writes its time in whole seconds, but divides by milliseconds; nought is one of them.
        let wall = Duration::try_from_secs_f64(runs / rate).map_err(|error| error.to_string())?;
        Ok(Campaign { runs, wall, cpu })
    }
}

impl Subject for AflFuzz {
    fn name(&self) -> &str {
        match self.is_plain {
            true => "afl-fuzz -n",
            false => "afl-fuzz",
        }
    }

    /// Start and end, which a short campaign has as well, are taken away from both costs: here
    /// they are of the wall time, too.
    fn measure(&mut self, runs: u32) -> Cost {
        let campaign = |runs| self.campaign(runs).expect("it has run before");
        let (few, many) = (campaign(1), campaign(runs + 1));
        let runs = (many.runs - few.runs).max(1.0);
        Cost {
            wall: many.wall.saturating_sub(few.wall).div_f64(runs),
            cpu: many.cpu.saturating_sub(few.cpu).div_f64(runs),
        }
    }
}

/// Runs it to its end, and that of all its processes: it kills its fork server without asking
/// whether a child of that lives on, whose CPU time would be lost with it.
fn run(args: &[&OsStr]) -> Result<(), String> {
    prctl::set_child_subreaper(true).map_err(|error| error.to_string())?;
    let output = Command::new("afl-fuzz")
        .args(args)
        .env_clear()
        .envs(environment())
        .envs(SETTINGS.map(|name| (name, "1")))
        .stdin(Stdio::null())
        .output();
    // No other subject has processes now: each ends its own before the next one's turn.
    while wait().is_ok() {}
    prctl::set_child_subreaper(false).map_err(|error| error.to_string())?;
    let output = output.map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{}: {}",
            output.status,
            String::from_utf8_lossy(&output.stdout).trim()
        )),
    }
}

/// A number of its `fuzzer_stats`: lines of a name, a colon and a value.
fn figure(stats: &str, name: &str) -> Result<f64, String> {
    let mut pairs = stats.lines().filter_map(|line| line.split_once(':'));
    let found = pairs.find(|(key, _)| key.trim() == name);
    let number = found.and_then(|(_, value)| value.trim().parse().ok());
    number.ok_or_else(|| format!("its fuzzer_stats have no number {name}"))
}
