//! Ends of guided campaigns that are not their usual ones.

use crate::ddfuzz::Desk;
use crate::needs;

/// A harness of libFuzzer with one crash; `None`, and said so, where it cannot be built.
fn harness(desk: &Desk, name: &str, body: &str) -> Option<()> {
    needs::program("clang")?;
    let source = format!(
        "#include <stddef.h>\n#include <stdint.h>\n#include <unistd.h>\n\
         int LLVMFuzzerTestOneInput(const uint8_t *text, size_t length) {{\n{body}\nreturn 0; }}\n"
    );
    let file = desk.write(&format!("{name}.c"), source);
    let status = desk
        .command("clang")
        .args(["-O1", "-fsanitize=fuzzer", "-o"])
        .args([&desk.file(name), &file])
        .status()
        .unwrap();
    if !status.success() {
        needs::missing("clang with libFuzzer", "a harness cannot be linked");
        return None;
    }
    Some(())
}

#[test]
fn a_campaign_that_can_mutate_nothing_makes_its_runs_and_ends() {
    let desk = Desk::new();
    if harness(&desk, "empty", "").is_none() {
        return;
    }
    let words = "run --json --seed 1 --jobs 1 --max-len 0 --runs 300 -o out -- ./empty";
    let result = desk.call(words).exits(0).json();
    assert_eq!(result["runs"], 300, "{result}");
    assert_eq!(result["ended_by"], "runs", "{result}");
}

#[test]
fn workers_of_slow_targets_report_between_few_runs() {
    let desk = Desk::new();
    if harness(&desk, "slow", "usleep(200000);").is_none() {
        return;
    }
    // 64 runs at once would take 13 s.
    let words = "run --json --seed 1 --jobs 1 --max-len 8 --time 4s -o out -- ./slow";
    let result = desk.call(words).exits(0).json();
    let began = result["seconds"].as_f64().unwrap();
    let runs = result["runs"].as_u64().unwrap();
    assert!(runs > 0 && runs < 64, "{runs} in {began} s");
}

#[test]
fn inputs_that_two_workers_keep_count_once() {
    let desk = Desk::new();
    let body = "if (length > 1 && text[0] == 'a') return text[1] == 'b';";
    if harness(&desk, "places", body).is_none() {
        return;
    }
    for resumed in ["", " --resume"] {
        let words = format!(
            "run --json --seed 1 --jobs 2 --max-len 8 --runs 20000{resumed} -o out -- ./places"
        );
        desk.call(&words).exits(0);
        let kept = std::fs::read_dir(desk.file("out/corpus")).unwrap().count() as u64;
        let stats = String::from_utf8(desk.read("out/stats.jsonl")).unwrap();
        let last = stats.lines().last().unwrap();
        let last: serde_json::Value = serde_json::from_str(last).unwrap();
        assert_eq!(last["corpus"], kept, "{last}");
    }
}
