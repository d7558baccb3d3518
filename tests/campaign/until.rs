//! `--until`: ends of a campaign by what it finds.

use std::time::Duration;

use ddfuzz::campaign::{CampaignStatus, InvalidUntil, Until, reached};

use crate::ddfuzz::Desk;
use crate::outcome::{assert_same, outcome};

fn course(groups: u64, since_new: Option<u64>, elapsed: u64) -> CampaignStatus {
    CampaignStatus {
        groups,
        since_new: since_new.map(Duration::from_secs),
        elapsed: Duration::from_secs(elapsed),
    }
}

#[test]
fn ends_are_read_as_they_are_written() {
    for (text, until) in [
        ("first", Until::First),
        ("3 groups", Until::Groups(3)),
        ("  1   group ", Until::Groups(1)),
        ("no new for 10m", Until::NoNewFor(Duration::from_secs(600))),
        (
            "no new for 1.5h",
            Until::NoNewFor(Duration::from_secs(5400)),
        ),
        (
            "no new for 250ms",
            Until::NoNewFor(Duration::from_millis(250)),
        ),
    ] {
        let read: Until = text.parse().unwrap();
        assert_eq!(read, until, "{text}");
        assert_eq!(read.to_string().parse(), Ok(read), "{text}");
    }
    for (text, error) in [
        ("", InvalidUntil::Unknown),
        ("last", InvalidUntil::Unknown),
        ("3", InvalidUntil::Unknown),
        ("-1 groups", InvalidUntil::Unknown),
        ("0 groups", InvalidUntil::NoGroups),
        ("no new for ever", InvalidUntil::NoTime),
        ("no new for 0s", InvalidUntil::NoTime),
        ("no new for 1e999h", InvalidUntil::NoTime),
    ] {
        assert_eq!(text.parse::<Until>(), Err(error), "{text}");
    }
}

#[test]
fn an_end_is_reached_when_its_groups_or_its_silence_are() {
    assert!(!Until::First.is_reached(&course(0, None, 900)));
    assert!(Until::First.is_reached(&course(1, Some(0), 1)));
    assert!(!Until::Groups(3).is_reached(&course(2, Some(0), 900)));
    assert!(Until::Groups(3).is_reached(&course(4, Some(0), 1)));
    let silence = Until::NoNewFor(Duration::from_secs(60));
    assert!(!silence.is_reached(&course(5, Some(59), 900)));
    assert!(silence.is_reached(&course(5, Some(60), 900)));
    // Where nothing was ever new, from the beginning.
    assert!(!silence.is_reached(&course(0, None, 59)));
    assert!(silence.is_reached(&course(0, None, 60)));
    let ends = [silence, Until::Groups(2)];
    assert_eq!(
        reached(&ends, &course(2, Some(1), 5)),
        Some(Until::Groups(2))
    );
    assert_eq!(reached(&ends, &course(1, Some(1), 5)), None);
}

#[test]
fn a_campaign_until_groups_ends_at_the_same_run_with_any_number_of_workers() {
    for (until, groups) in [("first", 1), ("2 groups", 2)] {
        let outcomes = ["1", "4"].map(|jobs| {
            let desk = Desk::new();
            let words = format!(
                "run --json --target nroff --runs 3000 --max-len 2000 --seed 7 --jobs {jobs} -o out"
            );
            let until = ["--until".as_ref(), until.as_ref()];
            let result = desk.call_with(&words, &until).exits(1).json();
            assert_eq!(result["ended_by"], "until", "{result}");
            assert!(result["new_groups"].as_u64() >= Some(groups), "{result}");
            assert!(result["runs"].as_u64() < Some(3000), "{result}");
            desk.is_left_clean();
            (result["runs"].clone(), outcome(&desk.file("out")))
        });
        let [(runs_of_one, one), (runs_of_four, four)] = outcomes;
        assert_eq!(runs_of_one, runs_of_four, "{until}");
        assert_same(&one, &four, until);
    }
}

#[test]
fn a_call_that_has_found_enough_begins_a_new_count_when_it_is_resumed() {
    let desk = Desk::new();
    let words = "run --json --target nroff --runs 3000 --max-len 2000 --seed 7 --until first";
    let first = desk.call(words).exits(1).json();
    let second = desk.call(&format!("{words} --resume")).exits(1).json();
    assert_eq!(second["ended_by"], "until");
    let count = |result: &serde_json::Value| result["groups"].as_array().unwrap().len();
    assert!(count(&second) > count(&first), "{second}");
    let all = desk
        .call("run --json --target nroff --runs 5 --resume")
        .json();
    assert_eq!(
        (&all["ended_by"], &all["runs"]),
        (&"runs".into(), &5.into())
    );
}

#[test]
fn silence_and_time_end_a_campaign_that_finds_nothing() {
    let desk = Desk::new();
    let words = "run --json --target crtplot-fixed --max-len 500 --seed 1 -o";
    let until = ["--until".as_ref(), "no new for 300ms".as_ref()];
    let silent = desk.call_with(&format!("{words} one --time 60s"), &until);
    assert_eq!(silent.exits(0).json()["ended_by"], "until");
    let said = desk.call_with("run --target crtplot-fixed --max-len 500 -o two", &until);
    let out = said.exits(0).out;
    assert!(
        out.contains("stopped by --until 'no new for 300ms'"),
        "{out}"
    );
    let timed = desk.call(&format!("{words} three --time 300ms")).exits(0);
    assert_eq!(timed.json()["ended_by"], "time");
    let wrong = desk.call("run --target ul --until later").exits(2);
    assert!(wrong.err.contains("no new for 10m"), "{}", wrong.err);
}
