//! A study that is killed goes on as if nothing had happened.

use std::time::Duration;

use crate::lab::Lab;
use crate::outcome::{assert_same, outcome};

const WORDS: &str = "zap choosy parent --runs 1500 --seed 7 -q --channel stdin";

#[test]
fn a_killed_study_comes_to_the_same_end() {
    let lab = Lab::with(&["zap", "choosy", "parent"]);
    lab.revisit(&format!("{WORDS} -o whole")).exits(1);
    let mut kills = 0;
    for at in 0..40 {
        let mut command = lab.command();
        command
            .args(WORDS.split_whitespace())
            .args(["-o", "parts", "--resume"]);
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(40 * (1 + at * 7 % 23)));
        if child.try_wait().unwrap().is_some() {
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
    }
    assert!(kills > 0, "it was over before it could be killed");
    let last = lab.revisit(&format!("{WORDS} -o parts --resume"));
    assert!(matches!(last.code, Some(0 | 1)), "{last:?}");
    let ended = |out: &str| {
        let mut all = outcome(&lab.desk.file(out));
        all.retain(|name, _| !name.starts_with("studies/") && name != "state.json");
        all
    };
    assert_same(&ended("parts"), &ended("whole"), "killed and resumed");
    lab.desk.is_left_clean();
}

#[test]
fn a_study_is_not_resumed_with_another_seed() {
    let lab = Lab::with(&["zap"]);
    lab.revisit("zap --runs 70 --seed 7 -q -o out").exits(1);
    let said = lab
        .revisit("zap --runs 70 --seed 8 -q -o out --resume")
        .exits(2);
    assert!(said.err.contains("another seed"), "{said:?}");
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
}
