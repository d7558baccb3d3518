//! `--minimize-share` and `--generator`.

use ddfuzz::campaign::{InvalidShare, Share};

use crate::ddfuzz::Desk;

#[test]
fn a_share_is_a_percentage_or_a_part_of_one() {
    for (text, part, shown) in [
        ("20%", 0.2, "20%"),
        ("0.2", 0.2, "20%"),
        ("100%", 1.0, "100%"),
        ("1", 1.0, "100%"),
        ("0.5%", 0.005, "0.5%"),
    ] {
        let share: Share = text.parse().unwrap();
        assert!((share.part() - part).abs() < 1e-12, "{text}");
        assert_eq!(share.to_string(), shown);
    }
    for text in [
        "", "0", "0%", "101%", "1.01", "-5%", "NaN", "inf", "%", "a%",
    ] {
        assert_eq!(text.parse::<Share>(), Err(InvalidShare), "{text}");
    }
    assert_eq!(Share::default().to_string(), "20%");
}

#[test]
fn a_guided_campaign_needs_coverage_and_the_error_says_what_gives_it() {
    let desk = Desk::new();
    let words = "run --json --runs 9 --minimize-share 30% --generator";
    let refused = desk.call(&format!("{words} guided --exec command -- cat"));
    let refused = refused.exits(3).json();
    assert_eq!(refused["error"]["kind"], "no-coverage");
    let hint = refused["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("afl-clang-fast"), "{hint}");
    desk.call(&format!("{words} classic -- cat")).exits(0);
    desk.call(&format!("{words} auto -o auto -- cat")).exits(0);
    desk.call("run --minimize-share 0% -- cat").exits(2);
}
