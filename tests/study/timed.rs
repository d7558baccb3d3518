//! Studies that a time bounds.

use crate::lab::{Lab, groups, utility};

/// No worker comes to the end of its first runs in a row, and only those of the first one have no
/// options: what the others have found counts all the same.
#[test]
fn the_runs_of_all_workers_count_when_the_time_is_over() {
    let lab = Lab::with(&["dawdles"]);
    lab.desk.write("list", "stdin dawdles [-x -x -x -x]\n");
    let words = "--list list --time 5s --jobs 4 --seed 1 --minimize off --json";
    let result = lab.revisit(words).exits(1).json();
    assert_eq!(groups(&result, "dawdles").len(), 1, "{result}");
    let runs = utility(&result, "dawdles")["runs"].as_u64().unwrap();
    // Nobody has made as many in this time.
    assert!(runs < 4 * 64, "{result}");
    let words = "--list list --runs 64 --jobs 4 --seed 1 --minimize off --json --resume";
    let result = lab.revisit(words).json();
    assert_eq!(utility(&result, "dawdles")["runs"], runs + 64, "{result}");
}

/// Minimizing stands behind each utility's runs, and says so; the rate is that of the runs.
#[test]
fn what_is_minimized_is_told_and_the_whole_time_ends_it() {
    let lab = Lab::with(&["zap"]);
    let said = lab.revisit("zap --runs 200 --seed 3");
    let phase =
        |line: &&str| line.contains(" phase=minimizing ") && !line.contains(" minimizing=0 ");
    assert_eq!(said.err.lines().filter(phase).count(), 1, "{}", said.err);
    // The whole time is over before the runs are: it ends with what there is, as by its time.
    let words = "zap --runs 100000000 --total-time 3s --jobs 2 --seed 3 --json -o short";
    let result = lab.revisit(words).exits(1).json();
    assert_eq!(result["ended_by"], "time", "{result}");
    let runs = utility(&result, "zap")["runs"].as_u64().unwrap();
    assert!(runs > 0 && runs < 100_000_000, "{result}");
}
