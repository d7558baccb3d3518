//! The end of a campaign waits for no run: what is under way is abandoned, and counts as nothing.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::ddfuzz::Desk;
use crate::outcome::record;

/// A program that ends on short inputs, and on longer ones sleeps or computes for ever.
const ENDLESS: &str = r#"
#include <unistd.h>
static volatile unsigned long sink;
int main(int count, char **words)
{
    char text[4096];
    long length = 0, more;
    while ((more = read(0, text, sizeof text)) > 0) length += more;
    if (length > 30) {
        if (words[1][0] == 's') for (;;) pause();
        for (;;) sink++;
    }
    return 0;
}
"#;

/// A call that takes so long has waited for a run, whose limits are out of reach.
const STALLED: Duration = Duration::from_secs(120);

fn compile(desk: &Desk) {
    let source = desk.write("endless.c", ENDLESS);
    let mut compiler = Command::new("cc");
    let built = compiler.arg("-O1").arg(source).arg("-o");
    let built = built.arg(desk.file("endless"));
    assert!(built.status().expect("the compiler runs").success());
}

/// The call of a campaign in `out` on the program, which sleeps (`s`) or computes (`c`).
fn words(out: &str, options: &str, how: &str) -> String {
    let limits = "--timeout 9000 --max-len 64 --seed 3 --minimize off";
    format!("run --json {limits} {options} -o {out} -- ./endless {how}")
}

#[test]
fn the_time_ends_a_campaign_whose_runs_would_go_on() {
    let desk = Desk::new();
    compile(&desk);
    for (number, (way, how)) in [
        ("command", "s"),
        ("inject", "s"),
        ("snapshot", "c"),
        ("inject", "c"),
    ]
    .into_iter()
    .enumerate()
    {
        let (out, began) = (format!("out{number}"), Instant::now());
        let options = format!("--generator classic --time 700ms --exec {way}");
        let result = desk.call(&words(&out, &options, how)).exits(0).json();
        assert!(began.elapsed() < STALLED, "{way} {how}");
        assert_eq!(result["ended_by"], "time", "{way} {how}: {result}");
        let found = [&result["hangs"], &result["flaky"], &result["new_groups"]];
        assert_eq!(found, [0, 0, 0], "{way} {how}: {result}");
        // The run that was abandoned is the next one of a resumed campaign.
        let next = record(&desk.file(&format!("{out}/state.json")))["state"]["next"].clone();
        assert_eq!(next, result["runs"], "{way} {how}: {result}");
    }
    desk.is_left_clean();
}

#[test]
fn a_guided_campaign_ends_its_workers_in_time() {
    let desk = Desk::new();
    compile(&desk);
    let began = Instant::now();
    let options = "--generator guided --time 1500ms --exec inject --jobs 2";
    let said = desk.call(&words("out", options, "s")).exits(0);
    assert!(began.elapsed() < STALLED);
    assert!(!said.err.contains("did not stop"), "{said:?}");
    let result = said.json();
    assert_eq!((&result["hangs"], &result["flaky"]), (&0.into(), &0.into()));
    desk.is_left_clean();
}

#[test]
fn a_signal_ends_a_campaign_whose_runs_would_go_on() {
    let desk = Desk::new();
    compile(&desk);
    for generator in ["classic", "guided"] {
        let options = format!("--generator {generator} --exec inject --jobs 1");
        let mut child = desk.start(&words(generator, &options, "s"));
        let (file, began) = (
            desk.file(&format!("{generator}/stats.jsonl")),
            Instant::now(),
        );
        while !file.exists() {
            assert!(began.elapsed() < STALLED, "{generator} does not begin");
            std::thread::sleep(Duration::from_millis(5));
        }
        let began = Instant::now();
        // SAFETY: a plain system call; the child is not reaped, so that its id is its own.
        unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) };
        assert_eq!(child.wait().unwrap().code(), Some(130), "{generator}");
        assert!(began.elapsed() < STALLED, "{generator}");
    }
    desk.is_left_clean();
}
