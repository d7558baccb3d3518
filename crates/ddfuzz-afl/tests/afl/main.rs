//! Tests the library in campaigns of `afl-fuzz`.

#[path = "../../../../tests/compiled/mod.rs"]
mod compiled;
mod fuzzing;
#[path = "../../../../tests/needs/mod.rs"]
mod needs;
mod programs;
mod seeds;

use fuzzing::{Campaign, Trimming};
use programs::Tools;

/// Checks whether `part` results from deleting bytes of `whole`.
fn is_subsequence(part: &[u8], whole: &[u8]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|byte| rest.any(|one| one == byte))
}

/// Trims a seed by AFL++'s own trimming and by this library, checks the result of the library, and
/// returns sizes and executions of both trimmings.
fn compared(tools: &Tools, program: &str, seed: &[u8]) -> [Trimming; 2] {
    let own = Campaign::on(tools, program, &[seed], None);
    let ours = Campaign::on(tools, program, &[seed], Some(&[]));
    assert!(
        ours.said
            .contains("libddfuzz_afl.so' installed successfully"),
        "{}",
        ours.said
    );
    assert!(!ours.said.contains("ddfuzz-afl:"), "{}", ours.said);
    let entry = ours.entry(0);
    assert!(
        is_subsequence(&entry, seed),
        "{}",
        String::from_utf8_lossy(&entry)
    );
    assert_eq!(ours.map_of(tools, &entry), ours.map_of(tools, seed));
    [own, ours].map(|campaign| {
        let trimming = campaign.trimming();
        assert_eq!(
            (trimming.before, trimming.after),
            (seed.len(), campaign.entry(0).len())
        );
        trimming
    })
}

#[test]
fn trimmed_entries_keep_their_coverage_and_are_smaller_than_by_afls_own_trimming() {
    let Some(tools) = Tools::found() else {
        return;
    };
    for (program, seeds) in [("script", seeds::scripts()), ("tree", seeds::trees())] {
        let mut sums = [0, 0];
        for (index, seed) in seeds.iter().enumerate() {
            let [own, ours] = compared(&tools, program, seed);
            println!(
                "{program} {index}: {} bytes; AFL's own trimming: {} bytes, {} executions; with \
                 the library: {} bytes, {} executions",
                own.before, own.after, own.executions, ours.after, ours.executions
            );
            let allowed = u64::from(ddfuzz_afl::default_steps(seed.len()));
            assert!(
                ours.executions <= allowed,
                "{} of {allowed}",
                ours.executions
            );
            sums[0] += own.after;
            sums[1] += ours.after;
        }
        assert!(sums[1] < sums[0], "{program}: {sums:?}");
    }
}

#[test]
fn a_campaign_goes_on_for_thousands_of_runs_behind_the_trimming_of_all_entries() {
    let Some(tools) = Tools::found() else {
        return;
    };
    let seeds = seeds::scripts();
    let seeds: Vec<&[u8]> = seeds.iter().map(Vec::as_slice).collect();
    for search in ddfuzz_afl::SEARCHES {
        let variables = [("DDFUZZ_AFL_SEARCH", search), ("DDFUZZ_AFL_STEPS", "300")];
        let campaign = Campaign::on(&tools, "script", &seeds, Some(&variables));
        assert!(!campaign.said.contains("ddfuzz-afl:"), "{}", campaign.said);
        let trimmings = campaign.trimmings();
        assert!(!trimmings.is_empty(), "{search}: {}", campaign.said);
        for trimming in trimmings {
            assert!(trimming.executions <= 300, "{search}: {trimming:?}");
            assert!(trimming.after <= trimming.before, "{search}: {trimming:?}");
        }
    }
}

#[test]
fn a_setting_that_cannot_be_used_is_said_and_the_campaign_runs() {
    let Some(tools) = Tools::found() else {
        return;
    };
    let seed: &[u8] = b"let a = 12;   print a;\n\n\nprint a;";
    let variables = [("DDFUZZ_AFL_SEARCH", "probably"), ("DDFUZZ_AFL_STEPS", "0")];
    let campaign = Campaign::on(&tools, "script", &[seed], Some(&variables));
    let said = &campaign.said;
    assert!(
        said.contains("ddfuzz-afl: DDFUZZ_AFL_SEARCH=probably: no search"),
        "{said}"
    );
    let trimming = campaign.trimming();
    assert_eq!((trimming.executions, trimming.after), (0, seed.len()));
}
