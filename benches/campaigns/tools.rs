//! The fuzzers that are measured, and how each of them is asked for a campaign.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::builds::{Builds, Kind, NO_BUG, Subject};

/// Bytes of the longest input, for all.
pub const LONGEST: usize = 256;

/// A fuzzer, with the way in which it runs its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// ddfuzz with the libFuzzer binary.
    Harness,
    /// The same, where plain texts are mutated by their structure, too.
    Structured,
    /// ddfuzz with a program of AFL++'s compiler: a process for each run, or for many.
    Forkserver(Kind),
    /// LibAFL in the process of the harness.
    InProcess,
    /// LibAFL with a program of AFL++'s compiler.
    BareForkserver(Kind),
    /// `afl-fuzz` with such a program.
    Afl(Kind),
    /// `afl-fuzz -c`, of which comparisons are logged.
    AflCmplog,
    /// libFuzzer.
    LibFuzzer,
    /// libFuzzer that keeps inputs for the values that they compare (`-use_value_profile=1`).
    LibFuzzerValue,
    /// libFuzzer in a process of its own, which is started again after each hang.
    LibFuzzerFork,
}

/// A campaign that is asked for.
pub struct Campaign<'a> {
    /// The target.
    pub subject: &'a Subject,
    /// The bug that is in it, or `NO_BUG`.
    pub only: i32,
    /// Of the random numbers, from 1.
    pub seed: u64,
    /// About so many runs.
    pub runs: u64,
    /// The folder of seeds.
    pub seeds: &'a Path,
    /// An empty folder for whatever the tool writes.
    pub work: &'a Path,
}

/// Those that look for bugs.
pub const FINDERS: [Tool; 8] = [
    Tool::Harness,
    Tool::Structured,
    Tool::Forkserver(Kind::AflPersistent),
    Tool::InProcess,
    Tool::Afl(Kind::AflPersistent),
    Tool::AflCmplog,
    Tool::LibFuzzer,
    Tool::LibFuzzerValue,
];

impl Tool {
    /// Its name in tables and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Harness => "ddfuzz",
            Tool::Structured => "ddfuzz-structure",
            Tool::Forkserver(Kind::AflPlain) => "ddfuzz-fork",
            Tool::Forkserver(_) => "ddfuzz-persistent",
            Tool::InProcess => "libafl",
            Tool::BareForkserver(Kind::AflPlain) => "libafl-fork",
            Tool::BareForkserver(_) => "libafl-persistent",
            Tool::Afl(Kind::AflPlain) => "afl-fuzz-fork",
            Tool::Afl(_) => "afl-fuzz",
            Tool::AflCmplog => "afl-fuzz-c",
            Tool::LibFuzzer => "libfuzzer",
            Tool::LibFuzzerValue => "libfuzzer-value",
            Tool::LibFuzzerFork => "libfuzzer-fork",
        }
    }

    /// Whether this is ddfuzz.
    pub fn is_ours(self) -> bool {
        matches!(self, Tool::Harness | Tool::Structured | Tool::Forkserver(_))
    }

    /// How its target is compiled.
    pub fn kind(self) -> Kind {
        match self {
            Tool::Harness
            | Tool::Structured
            | Tool::LibFuzzer
            | Tool::LibFuzzerValue
            | Tool::LibFuzzerFork => Kind::LibFuzzer,
            Tool::InProcess => Kind::InProcess,
            Tool::Forkserver(kind) | Tool::BareForkserver(kind) | Tool::Afl(kind) => kind,
            Tool::AflCmplog => Kind::AflPersistent,
        }
    }

    /// The command of a campaign, which ends with the first crash, or after about so many runs.
    ///
    /// # Errors
    /// Where the target or the tool cannot be built.
    pub fn command(self, builds: &Builds, campaign: &Campaign<'_>) -> Result<Command, String> {
        let program = builds.program(campaign.subject, self.kind(), campaign.only)?;
        let mut command = match self {
            Tool::Harness => ddfuzz(("harness", "auto"), &program, campaign),
            Tool::Structured => ddfuzz(("harness", "on"), &program, campaign),
            Tool::Forkserver(_) => ddfuzz(("forkserver", "auto"), &program, campaign),
            Tool::InProcess => libafl(&program, campaign),
            Tool::BareForkserver(kind) => {
                let peers = builds.peers.as_ref();
                let fuzzer = peers.ok_or("LibAFL's peers are not built")?;
                let mut command = libafl(&fuzzer.join("forkserver"), campaign);
                let persistent = u8::from(kind != Kind::AflPlain);
                command.arg(persistent.to_string()).arg(&program);
                command
            }
            Tool::Afl(_) => afl(&program, None, campaign),
            Tool::AflCmplog => {
                let logging = builds.program(campaign.subject, Kind::AflCmplog, campaign.only)?;
                afl(&program, Some(logging), campaign)
            }
            Tool::LibFuzzer => libfuzzer(&program, campaign)?,
            Tool::LibFuzzerValue => {
                let mut command = libfuzzer(&program, campaign)?;
                command.arg("-use_value_profile=1");
                command
            }
            Tool::LibFuzzerFork => {
                let mut command = libfuzzer(&program, campaign)?;
                command.args(["-fork=1", "-timeout=1", "-ignore_timeouts=1"]);
                command
            }
        };
        command.current_dir(campaign.work);
        Ok(command)
    }

    /// How many runs the tool says that it has made: only where they cannot be counted otherwise,
    /// for counting them costs, too.
    ///
    /// # Errors
    /// Where it does not say.
    pub fn said(self, work: &Path, stdout: &str) -> Result<u64, String> {
        let text = match self {
            Tool::Afl(_) | Tool::AflCmplog => {
                let file = work.join("out/default/fuzzer_stats");
                std::fs::read_to_string(&file)
                    .map_err(|error| format!("{}: {error}", file.display()))?
            }
            // Its parent prints no statistics, but a line for each job: `#RUNS: cov: …`.
            Tool::LibFuzzerFork => {
                let mut lines = stdout.lines().filter(|line| line.starts_with('#'));
                lines.next_back().unwrap_or_default().to_owned()
            }
            _ => stdout.to_owned(),
        };
        let key = match self {
            Tool::Afl(_) | Tool::AflCmplog => "execs_done",
            Tool::LibFuzzer => "stat::number_of_executed_units",
            Tool::LibFuzzerFork => "#",
            _ => "\"runs\"",
        };
        number_behind(&text, key).ok_or_else(|| format!("{} says no {key}", self.name()))
    }
}

/// The number that stands behind `key` and what separates it.
fn number_behind(text: &str, key: &str) -> Option<u64> {
    let rest = &text[text.find(key)? + key.len()..];
    let rest = rest.trim_start_matches(|sign: char| sign == ':' || sign.is_whitespace());
    let end = rest.find(|sign: char| !sign.is_ascii_digit());
    rest[..end.unwrap_or(rest.len())].parse().ok()
}

/// What `ddfuzz run --help` offers: the campaign by coverage brings options of its own.
static OFFERED: LazyLock<String> = LazyLock::new(|| {
    let help = Command::new(binary()).args(["run", "--help"]).output();
    help.map_or_else(
        |_| String::new(),
        |help| String::from_utf8_lossy(&help.stdout).into_owned(),
    )
});

/// The ddfuzz of this build.
pub fn binary() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_ddfuzz"))
}

/// Whether `ddfuzz run` has this option.
pub fn is_offered(option: &str) -> bool {
    OFFERED.contains(option)
}

/// A campaign of ddfuzz: its way, and whether inputs are mutated by their structure.
fn ddfuzz((way, structure): (&str, &str), program: &Path, campaign: &Campaign<'_>) -> Command {
    let mut command = Command::new(binary());
    command.args(["run", "--json", "-q", "--jobs", "1", "--exec", way]);
    command.args(["--seed", &campaign.seed.to_string()]);
    command.args(["--runs", &campaign.runs.to_string()]);
    command.args(["--max-len", &LONGEST.to_string()]);
    if campaign.only != NO_BUG && is_offered("--until") {
        command.args(["--until", "first"]);
    }
    if is_offered("--mutate-structure") {
        command.args(["--mutate-structure", structure]);
    }
    if is_offered("--seeds") {
        command.arg("--seeds").arg(campaign.seeds);
    }
    command.arg("-o").arg(campaign.work.join("out"));
    command.arg("--").arg(program);
    command
}

fn libafl(fuzzer: &Path, campaign: &Campaign<'_>) -> Command {
    let mut command = Command::new(fuzzer);
    command.arg(campaign.seed.to_string());
    command.arg(campaign.runs.to_string());
    command.arg(LONGEST.to_string());
    command.arg(campaign.seeds);
    command.arg(campaign.work);
    command
}

fn afl(program: &Path, logging: Option<PathBuf>, campaign: &Campaign<'_>) -> Command {
    let mut command = Command::new("afl-fuzz");
    command.env("AFL_NO_UI", "1").env("AFL_NO_AFFINITY", "1");
    command.env("AFL_SKIP_CPUFREQ", "1");
    command.env("AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES", "1");
    command.env("AFL_BENCH_UNTIL_CRASH", "1");
    command.args(["-s", &campaign.seed.to_string()]);
    command.args(["-E", &campaign.runs.to_string()]);
    command.args(["-G", &LONGEST.to_string()]);
    if let Some(logging) = logging {
        command.arg("-c").arg(logging);
    }
    command.arg("-i").arg(campaign.seeds);
    command.arg("-o").arg(campaign.work.join("out"));
    command.arg("--").arg(program);
    command
}

fn libfuzzer(program: &Path, campaign: &Campaign<'_>) -> Result<Command, String> {
    let mut command = Command::new(program);
    command.arg(format!("-seed={}", campaign.seed));
    command.arg(format!("-runs={}", campaign.runs));
    command.arg(format!("-max_len={LONGEST}"));
    command.arg("-print_final_stats=1");
    command.arg(format!("-artifact_prefix={}/", campaign.work.display()));
    // It writes what it keeps into its first folder.
    let corpus = campaign.work.join("corpus");
    std::fs::create_dir(&corpus).map_err(|error| format!("{}: {error}", corpus.display()))?;
    command.arg(corpus).arg(campaign.seeds);
    Ok(command)
}
