//! A study that is killed goes on as if nothing had happened.

use std::time::Duration;

use crate::lab::Lab;
use crate::outcome::{assert_same, outcome, record};

const WORDS: &str = "zap choosy parent --runs 750 --seed 7 -q --channel stdin";

/// Starts a study in `out`, or goes on with it, and kills it after `delay`; gives whether it had
/// ended by itself before.
fn kill_after(lab: &Lab, words: &str, out: &str, delay: Duration) -> bool {
    let mut command = lab.command();
    command.args(words.split_whitespace());
    let mut child = command.args(["-o", out, "--resume"]).spawn().unwrap();
    std::thread::sleep(delay);
    if child.try_wait().unwrap().is_some() {
        return true;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    false
}

/// The table of a study.
fn table(lab: &Lab, out: &str) -> String {
    let sheet = format!("{out}.csv");
    lab.desk.call(&format!("show {out} --csv {sheet}")).exits(0);
    let text = std::fs::read_to_string(lab.desk.file(&sheet)).unwrap();
    text.replace(&*lab.desk.file(out).to_string_lossy(), "OUT")
        .replace(&format!("{out}/"), "OUT/")
}

#[test]
fn a_killed_study_comes_to_the_same_end() {
    let lab = Lab::with(&["zap", "choosy", "parent"]);
    lab.revisit(&format!("{WORDS} -o whole")).exits(1);
    let delays = (0..40).map(|at| Duration::from_millis(40 * (1 + at * 7 % 23)));
    let kills = delays.take_while(|delay| !kill_after(&lab, WORDS, "parts", *delay));
    let kills = kills.count();
    assert!(kills > 0, "it was over before it could be killed");
    if kills == 40 {
        let last = lab.revisit(&format!("{WORDS} -o parts --resume"));
        assert!(matches!(last.code, Some(0 | 1)), "{last:?}");
    }
    let ended = |out: &str| {
        let mut all = outcome(&lab.desk.file(out));
        all.retain(|name, _| !name.starts_with("studies/") && name != "state.json");
        all
    };
    assert_same(&ended("parts"), &ended("whole"), "killed and resumed");
    assert_eq!(table(&lab, "parts"), table(&lab, "whole"));
    lab.desk.is_left_clean();
}

#[test]
fn what_is_slow_and_what_hangs_does_not_depend_on_kills() {
    let words = "dozes --channel stdin --runs 128 --seed 8 -q --timeout 50ms --minimize off";
    let lab = Lab::with(&["dozes"]);
    let said = lab.revisit(&format!("{words} -o whole"));
    assert!(matches!(said.code, Some(0 | 1)), "{said:?}");
    let seconds = [2, 3].map(Duration::from_secs);
    if !(seconds.iter()).any(|delay| kill_after(&lab, words, "parts", *delay)) {
        lab.revisit(&format!("{words} -o parts --resume"));
    }
    assert_eq!(table(&lab, "parts"), table(&lab, "whole"));
}

#[test]
fn a_rate_that_a_kill_has_prevented_is_made_up_for() {
    let lab = Lab::with(&["zap"]);
    lab.revisit("zap --runs 200 --seed 3 -q -o out").exits(1);
    let path = lab.desk.file("out/state.json");
    let mut state = record(&path);
    let group = &mut state["state"]["study"]["utilities"][0]["groups"][0];
    let rate = group["replayed"].take();
    assert_eq!(rate["tries"], 5, "{state}");
    std::fs::write(&path, state.to_string()).unwrap();
    lab.revisit("zap --runs 1 --seed 3 -q -o out --resume");
    let state = record(&path);
    let group = &state["state"]["study"]["utilities"][0]["groups"][0];
    assert_eq!(group["replayed"], rate, "{state}");
}

#[test]
fn a_study_is_not_resumed_with_another_seed() {
    let lab = Lab::with(&["zap"]);
    lab.revisit("zap --runs 70 --seed 7 -q -o out").exits(1);
    let said = lab
        .revisit("zap --runs 70 --seed 8 -q -o out --resume")
        .exits(2);
    assert!(said.err.contains("another --seed"), "{said:?}");
}

#[test]
fn a_resumed_study_makes_further_runs() {
    let lab = Lab::with(&["zap"]);
    lab.revisit("zap --runs 70 --seed 7 -q -o out").exits(1);
    let said = lab.revisit("zap --runs 30 --seed 7 --json -o out --resume");
    let result = said.json();
    assert_eq!(result["runs"], 30, "{result}");
    assert_eq!(result["utilities"][0]["runs"], 100, "{result}");
}

#[test]
fn a_study_is_resumed_as_what_it_is_or_not_at_all() {
    let lab = Lab::with(&["zap"]);
    lab.desk.write("list", "stdin zap\n");
    let words = "--runs 10 --seed 7 -o out --minimize off --json";
    let began = "--list list --max-len 1000 --channel stdin --shard 1/2";
    let result = lab.revisit(&format!("{words} {began}")).json();
    assert_eq!(result["runs"], 10, "{result}");
    for other in [
        "--max-len 2000",
        "--list other",
        "--channel file",
        "--shard 2/2",
        "--preset small1",
        "--freeze-start",
    ] {
        let said = lab.revisit(&format!("{words} {other} --resume")).exits(2);
        assert!(said.err.contains("cannot be resumed"), "{other}: {said:?}");
    }
    // The same, or nothing said.
    for same in [began, "", "zap"] {
        let result = lab.revisit(&format!("{words} {same} --resume")).json();
        assert_eq!(result["runs"], 10, "{same}: {result}");
        assert_eq!(result["utilities"].as_array().unwrap().len(), 1, "{result}");
    }
    let words = words.replace("-o out", "-o frozen");
    for with in ["zap --freeze-start", "--resume", "--freeze-start --resume"] {
        let result = lab.revisit(&format!("{words} {with}")).json();
        assert_eq!(result["runs"], 10, "{with}: {result}");
        // None is named, so they are those of the study and not all of the default list.
        assert_eq!(result["utilities"].as_array().unwrap().len(), 1, "{result}");
    }
}
