//! Ends, exit codes and ways to minimize of guided campaigns.

use super::targets::{Built, assert_whole, call, ended, gates, minimal};
use crate::ddfuzz::Desk;
use crate::outcome::{files, record};

#[test]
fn a_count_of_runs_is_kept_to_the_run_with_any_number_of_workers() {
    for (jobs, runs) in [(1, 1), (1, 5000), (2, 1), (2, 5000), (3, 777)] {
        let desk = Desk::new();
        if gates(&desk, "gates", Built::Harness, &[]).is_none() {
            return;
        }
        let words = format!("run --json --seed 1 --jobs {jobs} --runs {runs} -o out");
        let result = desk.call(&format!("{words} -- ./gates")).json();
        assert_eq!(result["runs"], runs, "{jobs}: {result}");
        assert_eq!(result["ended_by"], "runs");
        // A new count on the same corpus.
        let more = desk.call(&format!("{words} --resume -- ./gates")).json();
        assert_eq!(
            (&more["runs"], &more["resumed"]),
            (&runs.into(), &true.into())
        );
        desk.is_left_clean();
    }
}

#[test]
fn a_campaign_ends_when_it_has_found_enough_or_its_time_is_over() {
    let desk = Desk::new();
    if gates(&desk, "gates", Built::Harness, &[]).is_none() {
        return;
    }
    let call = |out: &str, [option, end]: [&str; 2]| {
        let words = format!("run --json --seed 1 --max-len 64 -o {out}");
        call(&desk, &words, &[option, end, "--", "./gates"])
    };
    let first = call("first", ["--until", "first"]).exits(1).json();
    assert_eq!(first["ended_by"], "until");
    let two = call("two", ["--until", "2 groups"]).exits(1).json();
    assert!(two["new_groups"].as_u64() >= Some(2), "{two}");
    let quiet = call("quiet", ["--until", "no new for 2s"]).exits(1).json();
    assert_eq!(quiet["ended_by"], "until", "{quiet}");
    let timed = call("timed", ["--time", "500ms"]).json();
    assert_eq!(timed["ended_by"], "time");
    assert!(timed["seconds"].as_f64() >= Some(0.5), "{timed}");
    desk.is_left_clean();
}

#[test]
fn the_exit_code_says_whether_something_is_new() {
    let desk = Desk::new();
    if gates(&desk, "gates", Built::Harness, &["-DFEW"]).is_none() {
        return;
    }
    let words = "run --json --seed 1 --max-len 16 --runs 20000 -o";
    let found = desk
        .call(&format!("{words} out -- ./gates"))
        .exits(1)
        .json();
    let resumed = desk.call(&format!("{words} out --resume -- ./gates"));
    assert_eq!(resumed.exits(4).json()["new_groups"], 0);
    let major = found["groups"][0]["major"].as_str().unwrap();
    desk.write("known", format!("{major}\n"));
    let muted = desk
        .call(&format!("{words} muted --known known -- ./gates"))
        .exits(4)
        .json();
    assert_eq!(muted["new_groups"], 0);
    assert!(ended(&desk.file("muted")).is_empty(), "{muted}");
    // A harness that nothing crashes.
    let none = gates(&desk, "empty", Built::Harness, &["-DFEW", "-DNONE"]);
    if none.is_some() {
        let nothing = desk
            .call(&format!("{words} none -- ./empty"))
            .exits(0)
            .json();
        assert_eq!(nothing["groups"].as_array().unwrap().len(), 0);
    }
}

#[test]
fn groups_are_minimized_when_the_user_wants_them_to_be() {
    for when in ["inline", "after", "worker", "off"] {
        for jobs in [1, 2] {
            let desk = Desk::new();
            if gates(&desk, "gates", Built::Harness, &[]).is_none() {
                return;
            }
            let words = format!(
                "run --json --seed 1 --max-len 64 --runs 10000 --jobs {jobs} --minimize {when} -o out"
            );
            let result = desk.call(&format!("{words} -- ./gates")).exits(1).json();
            assert_eq!(result["runs"], 10000, "{when}");
            assert!(
                result["new_groups"].as_u64() >= Some(2),
                "{when} {jobs}: {result}"
            );
            match when {
                "off" => assert!(
                    files(&desk.file("out"))
                        .iter()
                        .all(|p| !p.ends_with("minimized"))
                ),
                _ => drop(minimal(&result)),
            }
            assert_whole(&desk.file("out"));
            desk.is_left_clean();
        }
    }
}

#[test]
fn a_resumed_campaign_has_the_inputs_and_settings_of_its_start() {
    let desk = Desk::new();
    if gates(&desk, "gates", Built::Harness, &[]).is_none() {
        return;
    }
    std::fs::create_dir(desk.file("seeds")).unwrap();
    desk.write("seeds/a", "a seed");
    desk.write("words", "word=\"listed\"\n");
    let words = "run --json --seed 1 --max-len 64 --runs 1 --jobs 1 --minimize off --timeout 3s";
    let inputs = "--seeds seeds --dict words -o out -- ./gates";
    desk.call(&format!("{words} {inputs}"));
    let settings = || record(&desk.file("out/state.json"))["state"]["settings"].clone();
    let begun = settings();
    assert_eq!(begun["generator"], "guided", "{begun}");
    assert_eq!(begun["has_time_limit"], true, "{begun}");
    assert_eq!(begun["dictionary"].as_array().unwrap().len(), 1, "{begun}");
    std::fs::remove_file(desk.file("words")).unwrap();
    let resume = "run --json --resume --runs 1 --jobs 1 --minimize off -o out";
    assert_eq!(desk.call(resume).json()["resumed"], true);
    assert_eq!(settings(), begun);
    let words_of_program = || settings()["program_words"].clone();
    assert!(!words_of_program().as_array().unwrap().is_empty());
    desk.call(&format!("{resume} --no-auto-dict"));
    assert_eq!(words_of_program(), serde_json::Value::Null);
    let said = desk.call(&format!("{resume} --generator classic"));
    let said = said.exits(2).json();
    let message = said["error"]["message"].as_str().unwrap();
    assert!(message.contains("--generator guided"), "{said}");
    // What is gone is not left out without a word.
    std::fs::rename(desk.file("seeds"), desk.file("away")).unwrap();
    let said = desk.call(resume).exits(2).json();
    let hint = said["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("--seeds"), "{said}");
    desk.call(&format!("{resume} --seeds away"));
    let seeds = settings()["seeds"].to_string();
    assert!(seeds.contains("/away"), "{seeds}");
    // A generator that was chosen stays, too.
    let classic = "--generator classic -o classic -- ./gates";
    desk.call(&format!("{words} {classic}"));
    desk.call("run --json --resume --runs 1 --minimize off -o classic");
    let state = record(&desk.file("classic/state.json"));
    assert_eq!(state["state"]["settings"]["generator"], "classic");
    // That inputs are not mutated by their structure stays so.
    std::fs::create_dir(desk.file("json")).unwrap();
    desk.write("json/a", "{\"a\": [1, 2, {\"b\": null}], \"c\": \"d\"}");
    let plain = "--seeds json --mutate-structure off -o plain -- ./gates";
    desk.call(&format!("{words} {plain}"));
    desk.call("run --json --resume --runs 1 --jobs 1 --minimize off -o plain");
    let state = record(&desk.file("plain/state.json"));
    let settings = &state["state"]["settings"];
    assert_eq!(settings["mutated_structure"], serde_json::Value::Null);
    assert_eq!(settings["seeds"].as_array().unwrap().len(), 1);
    desk.is_left_clean();
}

#[test]
fn a_target_with_coverage_can_have_the_classic_generator_and_one_without_only_that() {
    let desk = Desk::new();
    if gates(&desk, "gates", Built::Harness, &[]).is_none() {
        return;
    }
    let words = "run --json --seed 1 --max-len 500 --runs 300 --jobs 2";
    let words = |generator: &str, out: &str, program: &str| {
        format!("{words} --generator {generator} -o {out} -- {program}")
    };
    // A function of its seed, as the guided one is not.
    let one = desk.call(&words("classic", "one", "./gates")).json();
    let other = desk.call(&words("classic", "other", "./gates")).json();
    let majors = |result: &serde_json::Value| -> Vec<String> {
        let groups = result["groups"].as_array().unwrap().iter();
        groups
            .map(|group| format!("{} {}", group["major"], group["runs_seen"]))
            .collect()
    };
    assert_eq!(majors(&one), majors(&other));
    assert!(!desk.file("one/corpus").exists() || files(&desk.file("one/corpus")).is_empty());
    let refused = desk
        .call(&words("guided --exec command", "refused", "cat"))
        .exits(3)
        .json();
    assert_eq!(refused["error"]["kind"], "no-coverage");
    assert!(!desk.file("refused").exists());
}
