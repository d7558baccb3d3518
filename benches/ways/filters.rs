//! Filters of the system: what a run costs by a new process, by a fork at `main`, by a fork at the
//! first call whose result may differ between runs, and in one process that puts back what each run
//! has changed.

use ddfuzz::exec::{Freshness, Program, Target, Way};

use crate::Plan;
use crate::programs::Programs;
use crate::sheet::Sheet;
use crate::subjects::floor;
use crate::subjects::way::ByWay;

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
const AT_MAIN: &str = "inject, forked at main";
const DEFERRED: &str = "inject";
const RESTORED: &str = "snapshot";
const SHORT: &str = "snapshot, 100 bytes";
const DEFERRED_SHORT: &str = "inject, 100 bytes";

/// Measures all filters and prints a table, in Markdown, by CPU time.
pub fn compare(programs: &Programs, plan: &Plan) {
    println!("\nOn filters of the system, CPU time:\n");
    println!(
        "| filter | posix_spawn µs | forked at main µs | inject µs | snapshot µs | inject × main \
         | snapshot × main | × inject | µs of 100 bytes | × inject |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    let mut gains = Vec::new();
    let step = FILTERS.len().div_ceil(plan.filters);
    for (name, args) in FILTERS.into_iter().step_by(step) {
        let Some(mut sheet) = sheet(programs, name, args) else {
            println!("| {name} | not measured | | | | | | | | |");
            continue;
        };
        sheet.measure(plan);
        let micros = [SPAWN, AT_MAIN, DEFERRED, RESTORED, SHORT].map(|of| sheet.cpu_micros(of));
        let [spawn, at_main, deferred, restored, short] = micros;
        let gain = [
            (DEFERRED, AT_MAIN),
            (RESTORED, AT_MAIN),
            (RESTORED, DEFERRED),
            (SHORT, DEFERRED_SHORT),
        ];
        let gain = gain.map(|(of, floor)| sheet.cpu_ratio(of, floor));
        println!(
            "| {name} | {spawn:.1} | {at_main:.1} | {deferred:.1} | {restored:.1} | {:.2} | {:.2} \
             | {:.2} | {short:.1} | {:.2} |",
            gain[0], gain[1], gain[2], gain[3]
        );
        gains.push(gain);
    }
    let mean = |of: usize| {
        let logs: f64 = gains.iter().map(|gain| gain[of].ln()).sum();
        (logs / gains.len() as f64).exp()
    };
    println!(
        "| geometric mean | | | | | {:.2} | {:.2} | {:.2} | | {:.2} |",
        mean(0),
        mean(1),
        mean(2),
        mean(3)
    );
}

/// The subjects of one filter; `None` if it is not installed.
fn sheet(programs: &Programs, name: &str, args: &[&str]) -> Option<Sheet> {
    let path = std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())?;
    let mut target = Target::new(Program::Path(path.clone()));
    target.args = args.iter().map(Into::into).collect();
    let mut sheet = Sheet::new(name);
    sheet.add_boxed(Box::new(floor::spawn_with(programs, &path, args)));
    let whole = usize::MAX;
    for (subject, way, at_main, at_once, length) in [
        (AT_MAIN, Way::Inject, "1", 1, whole),
        (DEFERRED, Way::Inject, "0", 1, whole),
        (RESTORED, Way::Snapshot, "0", 64, whole),
        (DEFERRED_SHORT, Way::Inject, "0", 1, 100),
        (SHORT, Way::Snapshot, "0", 64, 100),
    ] {
        target.env = vec![
            ("LD_PRELOAD".into(), programs.at_main().into()),
            ("AT_MAIN".into(), at_main.into()),
        ];
        let by_way = ByWay::new(subject, &target, way, Freshness::Shared);
        match by_way {
            Ok(by_way) => sheet.add_boxed(Box::new(by_way.with_inputs(at_once, length))),
            Err(error) => {
                eprintln!("{name}: {error}");
                return None;
            }
        }
    }
    Some(sheet)
}
