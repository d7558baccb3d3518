//! The table in the terminal.

use ddfuzz::report::study::{rows, table};

use super::{HOSTILE, group, small, study, tally, utility};
use ddfuzz::store::Kind;

#[test]
fn a_table_has_a_line_for_each_utility_the_rates_and_the_published_ones() {
    let (studies, groups) = small();
    let text = table(&rows(&studies, &groups), None);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..4],
        [
            "UTILITY  MARK  RUNS   CRASHES  HANGS  MEMORY  EXIT>125  GROUPS  LEAST        REPLAY  LABEL   CHANNEL          PACKAGE        VERSION",
            "boxes    ●○    1,000  3        1      0       0         2       1 byte segv  10/10           stdin, cp a.txt  boxes-package  1.0",
            "cat      –     600    0        0      0       0         0                                    stdin            cat-package    1.0",
            "su                                                                                   setuid                   su-package     1.0",
        ]
    );
    for expected in [
        "\n  boxes: sh /out/crash/reproduce.sh\n",
        "\n2 utilities run, 1 crash (50.0 %",
        "1 could not be run (setuid 1)\n",
        "\nstdin    2          1     50.0 % (9.5–90.5)  1,200  4       0.3 % (0.1–0.9)\n",
        "\n1990          versions of UNIX        25–33 %",
        "\n2020          FreeBSD                 19 % (15 of 78)",
        "as the study of 2006 quotes it",
    ] {
        assert!(text.contains(expected), "{expected:?} in {text}");
    }
}

#[test]
fn lines_of_the_tables_fit_the_terminal_and_commands_stay_whole() {
    let (studies, groups) = small();
    let rows = rows(&studies, &groups);
    for width in [0, 1, 40, 79] {
        let text = table(&rows, Some(width));
        let tables = text.lines().filter(|line| {
            !line.starts_with("  ") && !line.contains("utilities run") && !line.contains(": ")
        });
        for line in tables.filter(|line| *line != "to reproduce:") {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        assert!(text.contains("  boxes: sh /out/crash/reproduce.sh\n"));
    }
}

#[test]
fn a_machine_is_named_where_there_are_several() {
    let of = |campaign: &str, host: &str, name: &str, place| {
        let record = utility(name, place, vec![tally("stdin", "all", 5, 1, 0)]);
        study(campaign, host, vec![record])
    };
    let one = table(&rows(&[of("c1", "a", "ul", 0)], &[]), None);
    assert!(!one.contains("HOST"), "{one}");
    let two = [of("c1", "a", "ul", 0), of("c2", "b", "cat", 1)];
    let two = table(&rows(&two, &[]), None);
    assert!(two.contains("HOST"), "{two}");
}

#[test]
fn a_hostile_name_stays_in_its_line() {
    let studies = [study(
        "c1",
        HOSTILE,
        vec![utility(HOSTILE, 0, vec![tally(HOSTILE, HOSTILE, 5, 1, 0)])],
    )];
    let text = table(
        &rows(&studies, &[group(HOSTILE, Kind::Crash, "x", 1)]),
        None,
    );
    let bad = |character: char| character.is_control() && character != '\n';
    assert!(!text.contains(bad) && !text.contains('\u{202e}'), "{text}");
}

#[test]
fn an_empty_study_says_so() {
    assert_eq!(table(&[], None), "no utility was run\n");
}
