//! Filters of the system: what a run costs by a new process, by `afl-fuzz -n`, by a bare fork at
//! `main`, by a fork at the first call whose result may differ between runs, and in one process that
//! puts back what each run has changed.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ddfuzz::exec::{Freshness, Program, Target, Way};

use crate::Plan;
use crate::programs::Programs;
use crate::promise::{self, Goal};
use crate::sheet::Sheet;
use crate::subjects::afl_fuzz::AflFuzz;
use crate::subjects::way::{ByWay, SLOW_PART};
use crate::subjects::{Subject, floor};

/// Names and arguments.
const FILTERS: [(&str, &[&str]); 25] = [
    ("awk", &["{ print NF }"]),
    ("base64", &[]),
    ("bc", &["-q"]),
    ("cat", &["-A"]),
    ("cksum", &[]),
    ("col", &["-b"]),
    ("cut", &["-c", "2-5"]),
    ("expand", &[]),
    ("fmt", &[]),
    ("fold", &["-s"]),
    ("grep", &["-c", "a[0-9]*"]),
    ("gzip", &["-cn"]),
    ("join", &["-", "/etc/passwd"]),
    ("jq", &["."]),
    ("md5sum", &[]),
    ("nl", &[]),
    ("od", &["-c"]),
    ("sed", &["s/a/b/g"]),
    ("sort", &[]),
    ("tr", &["a", "b"]),
    ("troff", &[]),
    ("ul", &["-t", "xterm"]),
    ("uniq", &[]),
    ("wc", &[]),
    ("xz", &["-c"]),
];

const SPAWN: &str = "floor: posix_spawn";
const AFL: &str = "afl-fuzz -n";
const FORK: &str = "floor: fork";
const FORK_SHORT: &str = "floor: fork, 100 bytes";
const DEFERRED: &str = "inject";
const RESTORED: &str = "snapshot";
const RESTORED_SHORT: &str = "snapshot, 100 bytes";
const FROZEN: &str = "snapshot, --freeze-start";

/// Runs a second of CPU time on 1000 bytes that `snapshot` is to make.
const RATES: [(&str, f64); 5] = [
    ("grep", 0.9 * 56_000.0),
    ("jq", 0.9 * 13_000.0),
    ("sort", 0.9 * 28_000.0),
    ("troff", 0.9 * 3_800.0),
    ("ul", 0.9 * 17_000.0),
];
/// CPU time of a new process, above which a program is slow and fewer runs are made.
const SLOW: Duration = Duration::from_millis(5);
/// How many times the runs of the fork loop `snapshot` is to make, on 100 and on 1000 bytes.
const TIMES: [f64; 2] = [12.0, 8.0];
/// The least share of the runs of `inject` that `snapshot` is to make.
const OF_INJECT: f64 = 0.97;

/// What was measured of one filter.
struct Row {
    name: &'static str,
    /// CPU time of a run, in microseconds, of each of the subjects.
    micros: [f64; 7],
    /// How many times the runs of the fork loop, on 100 and on 1000 bytes, and of `inject`.
    times: [f64; 3],
    /// CPU time of a run by `snapshot` whose start is frozen, in microseconds; `None` if there is no
    /// goal for the filter's rate.
    frozen: Option<f64>,
}

/// Measures the filters with these names, or all if there are none, and prints a table, in Markdown,
/// by CPU time.
pub fn compare(programs: &Programs, plan: &Plan, names: &[String]) {
    println!("\nOn filters of the system, CPU time of a run in µs:\n");
    println!(
        "| filter | posix_spawn | afl-fuzz -n | fork loop | inject | snapshot | × fork loop \
         | × inject | fork loop, 100 bytes | snapshot, 100 bytes | × fork loop |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    let mut rows = Vec::new();
    let step = FILTERS.len().div_ceil(plan.filters);
    let is_meant = |name: &str| names.is_empty() || names.iter().any(|word| word == name);
    let filters = FILTERS.into_iter().step_by(step);
    for (name, args) in filters.filter(|(name, _)| is_meant(name)) {
        match measure(programs, plan, name, args) {
            Ok(row) => {
                println!("{row}");
                rows.push(row);
            }
            Err(why) => println!("| {name} | not measured: {why} | | | | | | | | | |"),
        }
    }
    let means = [0, 1, 2].map(|of| mean(rows.iter().map(|row| row.times[of])));
    println!(
        "| geometric mean of {} | | | | | | {:.2} | {:.2} | | | {:.2} |",
        rows.len(),
        means[1],
        means[2],
        means[0]
    );
    hold(&rows, means);
}

/// Prints what is promised, beside what was measured.
fn hold(rows: &[Row], means: [f64; 3]) {
    println!("\n| promised, by CPU time | measured | |");
    println!("|---|--:|---|");
    for ((measured, goal), bytes) in means.into_iter().zip(TIMES).zip([100, 1000]) {
        let figure = format!("filters on {bytes} bytes: snapshot to the fork loop, mean");
        let verdict = promise::compare(&figure, measured, "x", Goal::AtLeast(goal));
        println!("| {figure} | {measured:.2} | {verdict} |");
    }
    for (name, goal) in RATES {
        let row = rows.iter().find(|row| row.name == name);
        for (by, micros) in [
            (RESTORED, row.map(|row| row.micros[4])),
            (FROZEN, row.and_then(|row| row.frozen)),
        ] {
            hold_rate(&format!("{name} by {by}"), micros, goal);
        }
    }
    let Some(least) = rows.iter().min_by(|a, b| a.times[2].total_cmp(&b.times[2])) else {
        return;
    };
    let figure = "filters: snapshot to inject, the least";
    let verdict = promise::compare(figure, least.times[2], "x", Goal::AtLeast(OF_INJECT));
    println!(
        "| {figure} ({}) | {:.2} | {verdict} |",
        least.name, least.times[2]
    );
}

/// Prints the rate that a filter is to have on 1000 bytes, beside the one measured.
fn hold_rate(what: &str, micros: Option<f64>, goal: f64) {
    let figure = format!("{what} on 1000 bytes, runs a second of CPU time");
    match micros {
        Some(micros) => {
            let rate = 1e6 / micros;
            let verdict = promise::compare(&figure, rate, "runs/s", Goal::AtLeast(goal));
            println!("| {figure} | {rate:.0} | {verdict} |");
        }
        None => println!(
            "| {figure} | | {} |",
            promise::not_measured(&figure, "see the table")
        ),
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [spawn, afl, fork, inject, snapshot, fork_short, short] =
            self.micros.map(|micros| match micros.is_finite() {
                true => format!("{micros:.1}"),
                false => "–".to_owned(),
            });
        let [times_short, times, of_inject] = self.times;
        write!(
            f,
            "| {} | {spawn} | {afl} | {fork} | {inject} | {snapshot} | {times:.2} | {of_inject:.2} \
             | {fork_short} | {short} | {times_short:.2} |",
            self.name
        )
    }
}

/// The geometric mean.
fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    (values.map(f64::ln).sum::<f64>() / count).exp()
}

fn measure(
    programs: &Programs,
    plan: &Plan,
    name: &'static str,
    args: &[&str],
) -> Result<Row, String> {
    let path = find(name).ok_or("not installed")?;
    let mut spawn = floor::spawn_with(programs, &path, args);
    let is_slow = spawn.measure(plan.runs.min(20)).cpu > SLOW;
    let runs = match is_slow {
        true => plan.runs.div_ceil(SLOW_PART),
        false => plan.runs,
    };
    let (mut sheet, has_afl) = sheet(programs, name, &path, args, is_slow)?;
    sheet.measure(&Plan { runs, ..*plan });
    let subjects = [
        SPAWN,
        AFL,
        FORK,
        DEFERRED,
        RESTORED,
        FORK_SHORT,
        RESTORED_SHORT,
    ];
    let micros = subjects.map(|of| match of {
        AFL if !has_afl => f64::NAN,
        of => sheet.cpu_micros(of),
    });
    let times = [
        (RESTORED_SHORT, FORK_SHORT),
        (RESTORED, FORK),
        (RESTORED, DEFERRED),
    ];
    let times = times.map(|(of, floor)| sheet.cpu_ratio(of, floor));
    let has_rate = RATES.iter().any(|(of, _)| *of == name);
    let frozen = has_rate.then(|| frozen(plan, name, &path, args));
    Ok(Row {
        name,
        micros,
        times,
        frozen: frozen.transpose()?,
    })
}

/// Measures the CPU time of a run by `snapshot` whose start is frozen, in microseconds: on its own,
/// since a program that is slow by all other ways need not be slow by this one.
fn frozen(plan: &Plan, name: &'static str, path: &Path, args: &[&str]) -> Result<f64, String> {
    let target = Target {
        freeze_start: true,
        ..target(path, args)
    };
    let by_way = ByWay::new(FROZEN, &target, Way::Snapshot, Freshness::Shared);
    let by_way = by_way.map_err(|error| error.to_string())?;
    let mut sheet = Sheet::new(name);
    sheet.add_boxed(Box::new(by_way.with_inputs(64, usize::MAX)));
    sheet.measure(plan);
    Ok(sheet.cpu_micros(FROZEN))
}

/// The filter at `path`, run with these arguments.
fn target(path: &Path, args: &[&str]) -> Target {
    Target {
        args: args.iter().map(Into::into).collect(),
        ..Target::new(Program::Path(path.to_owned()))
    }
}

/// The program with this name in PATH.
fn find(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    let mut paths = std::env::split_paths(&paths).map(|directory| directory.join(name));
    paths.find(|path| path.is_file())
}

/// The subjects of the filter at `path`, and whether `afl-fuzz` is one of them; fails if a way does
/// not work for it.
fn sheet(
    programs: &Programs,
    name: &'static str,
    path: &Path,
    args: &[&str],
    is_slow: bool,
) -> Result<(Sheet, bool), String> {
    let target = target(path, args);
    let mut sheet = Sheet::new(name);
    sheet.add_boxed(Box::new(floor::spawn_with(programs, path, args)));
    let afl = AflFuzz::plain(path, args);
    let has_afl = afl.is_ok();
    match afl {
        Ok(afl) => sheet.add_boxed(Box::new(afl)),
        Err(why) => eprintln!("{name}: afl-fuzz -n: {why}"),
    }
    for (subject, length) in [(FORK, usize::MAX), (FORK_SHORT, 100)] {
        let floor = floor::fork_at_main(programs, subject, path, args, length);
        sheet.add_boxed(Box::new(floor));
    }
    for (subject, way, at_once, length) in [
        (DEFERRED, Way::Inject, 1, usize::MAX),
        (RESTORED, Way::Snapshot, 64, usize::MAX),
        (RESTORED_SHORT, Way::Snapshot, 64, 100),
    ] {
        let by_way = ByWay::new(subject, &target, way, Freshness::Shared);
        let by_way = by_way.map_err(|error| error.to_string())?;
        let by_way = if is_slow { by_way.for_slow() } else { by_way };
        sheet.add_boxed(Box::new(by_way.with_inputs(at_once, length)));
    }
    Ok((sheet, has_afl))
}
