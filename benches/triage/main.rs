//! What triage costs: a capture, a crash handled, and a directory of crash files.
//!
//! `cargo bench --bench triage`. Small programs of `tests/ground_truth` crash and hang, plain and
//! with AddressSanitizer; 10 000 files of 20 bugs go through `ddfuzz triage` with two workers.
//! Each figure stands beside what is promised.
//!
//! `cargo test` only sees whether each of them runs, with a few that measure nothing.

#[path = "../cost/mod.rs"]
mod cost;
mod files;
mod programs;
mod single;

use std::path::Path;
use std::time::Duration;

use ddfuzz::exec::Limits;
use single::Subject;

/// How much is measured.
struct Plan {
    rounds: usize,
    files: usize,
}

const PLAIN: &[&str] = &["-O2"];
const SANITIZED: &[&str] = &["-O1", "-g", "-fsanitize=address"];
const CRASH: &[u8] = b"new a\nset a k 1\nget b k\n";
const HANG: &[u8] = b"digits 1\nsettle abc\n";

fn main() {
    // Cargo says so when it is to measure.
    let measures = std::env::args().any(|arg| arg == "--bench");
    let (rounds, files) = if measures { (200, 10_000) } else { (2, 40) };
    let folder = tempfile::tempdir().expect("a temporary directory");
    if let Err(why) = measure(&Plan { rounds, files }, folder.path()) {
        println!("skipped: {why}");
    }
}

fn measure(plan: &Plan, folder: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    // The target may be another user.
    let everybody = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder, everybody).map_err(|error| error.to_string())?;
    let ground = |name, file: &str, flags| {
        let source = format!("tests/ground_truth/programs/{file}");
        programs::compile(folder, name, &source, flags)
    };
    let limits = Limits::with_cpu(Duration::from_secs(10));
    println!("a small utility, {} rounds, medians", plan.rounds);
    let small = Subject::new(&ground("records", "records.c", PLAIN)?, CRASH, limits);
    small.capture(plan.rounds);
    let promised = Duration::from_millis;
    small.handled("a crash handled", plan.rounds, promised(10));
    match ground("sanitized", "records.c", SANITIZED) {
        Ok(program) => Subject::new(&program, CRASH, limits).handled(
            "a crash handled under AddressSanitizer",
            plan.rounds.div_ceil(4),
            promised(50),
        ),
        Err(why) => println!("  skipped: {why}"),
    }
    let cpu = Duration::from_millis(100);
    let hanging = Limits {
        wall: Duration::from_secs(10),
        ..Limits::with_cpu(cpu)
    };
    let loops = Subject::new(&ground("loops", "loops.c", PLAIN)?, HANG, hanging);
    // A hang takes its limit before it is one.
    let name = "a hang handled, with 100 ms until its deadline";
    loops.handled(name, plan.rounds.div_ceil(40), promised(1600));
    directory(plan, folder)
}

fn directory(plan: &Plan, folder: &Path) -> Result<(), String> {
    let program = programs::compile(folder, "many", "benches/triage/many.c", PLAIN)?;
    println!("crash files of 20 bugs by `ddfuzz triage` with two workers");
    for count in [plan.files / 10, plan.files] {
        let inputs = folder.join(format!("files-{count}"));
        files::write(&inputs, count)?;
        let called = files::triage(&inputs, &program)?;
        println!(
            "  {count} files, {} crashed, {} groups: {:.0} files/s (promised: 300), peak {} MiB",
            called.crashed,
            called.groups,
            count as f64 / called.wall.as_secs_f64(),
            called.peak_kib / 1024
        );
    }
    Ok(())
}
