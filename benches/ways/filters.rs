//! Filters of the system: what a run costs by a new process, by a fork at `main`, and by a fork at
//! the first call whose result may differ between runs.

use ddfuzz::exec::{Freshness, Program, Target, Way};

use crate::Plan;
use crate::programs::Programs;
use crate::sheet::Sheet;
use crate::subjects::floor;
use crate::subjects::way::ByWay;

/// Names and arguments.
const FILTERS: [(&str, &[&str]); 22] = [
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
    ("md5sum", &[]),
    ("nl", &[]),
    ("od", &["-c"]),
    ("sed", &["s/a/b/g"]),
    ("sort", &[]),
    ("tr", &["a", "b"]),
    ("uniq", &[]),
    ("wc", &[]),
    ("xz", &["-c"]),
];

const SPAWN: &str = "floor: posix_spawn";
const AT_MAIN: &str = "inject, forked at main";
const DEFERRED: &str = "inject";

/// Measures all filters and prints a table, in Markdown, by CPU time.
pub fn compare(programs: &Programs, plan: &Plan) {
    println!("\nOn filters of the system, CPU time:\n");
    println!(
        "| filter | posix_spawn µs | forked at main µs | inject µs | × by main | × by spawn |"
    );
    println!("|---|--:|--:|--:|--:|--:|");
    let mut gains = Vec::new();
    for (name, args) in FILTERS {
        let Some(mut sheet) = sheet(programs, name, args) else {
            println!("| {name} | not installed | | | | |");
            continue;
        };
        sheet.measure(plan);
        let [spawn, at_main, deferred] = [SPAWN, AT_MAIN, DEFERRED].map(|of| sheet.cpu_micros(of));
        let gain = [AT_MAIN, SPAWN].map(|floor| sheet.cpu_ratio(DEFERRED, floor));
        println!(
            "| {name} | {spawn:.1} | {at_main:.1} | {deferred:.1} | {:.2} | {:.2} |",
            gain[0], gain[1]
        );
        gains.push(gain);
    }
    let mean = |of: usize| {
        let logs: f64 = gains.iter().map(|gain| gain[of].ln()).sum();
        (logs / gains.len() as f64).exp()
    };
    println!("| geometric mean | | | | {:.2} | {:.2} |", mean(0), mean(1));
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
    for (subject, at_main) in [(AT_MAIN, "1"), (DEFERRED, "0")] {
        target.env = vec![
            ("LD_PRELOAD".into(), programs.at_main().into()),
            ("AT_MAIN".into(), at_main.into()),
        ];
        let by_way = ByWay::new(subject, &target, Way::Inject, Freshness::Shared);
        match by_way {
            Ok(by_way) => sheet.add_boxed(Box::new(by_way)),
            Err(error) => {
                eprintln!("{name}: {error}");
                return None;
            }
        }
    }
    Some(sheet)
}
