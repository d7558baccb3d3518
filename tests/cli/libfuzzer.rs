//! libFuzzer binaries as their users have them.

use std::path::Path;

use crate::ddfuzz::Desk;
use crate::needs;

/// A harness in `desk` that crashes on `(((` and on nothing else; `None`, and said so, without
/// clang and its libFuzzer.
fn harness(desk: &Desk, name: &str, sanitizers: &str) -> Option<()> {
    needs::program("clang")?;
    let source = desk.write(
        "nest.c",
        "#include <stddef.h>\n\
         #include <stdint.h>\n\
         int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {\n\
           size_t depth = 0;\n\
           for (size_t i = 0; i < size; i++)\n\
             if (data[i] == '(' && ++depth == 3) __builtin_trap();\n\
           return 0;\n\
         }\n",
    );
    let output = desk
        .command("clang")
        .args(["-g", "-O1", sanitizers, "-o", name])
        .arg(source)
        .output()
        .unwrap();
    if !output.status.success() {
        needs::missing("libFuzzer", &String::from_utf8_lossy(&output.stderr));
        return None;
    }
    Some(())
}

#[test]
fn a_crash_of_a_libfuzzer_binary_is_minimized_as_it_is_and_alike_by_every_way() {
    for sanitizers in ["-fsanitize=fuzzer", "-fsanitize=fuzzer,address"] {
        let desk = Desk::new();
        if harness(&desk, "nest", sanitizers).is_none() {
            return;
        }
        desk.write("crash", "a(b(c\n)(d)(e and more of that");
        let mut majors = Vec::new();
        for way in ["auto", "harness", "inject", "command"] {
            let words = format!("min crash --json -o {way} --exec {way} -- ./nest");
            let result = desk.call(&words).exits(0).json();
            assert_eq!(desk.read(way), b"(((", "{sanitizers} {way}");
            assert_eq!(result["claim"], "1-minimal");
            majors.push(result["outcome"]["major"].clone());
            desk.call(&format!("log verify {way}.log.jsonl")).exits(0);
        }
        majors.dedup();
        assert_eq!(majors.len(), 1, "{majors:?}");
        // Given a file as its users do, libFuzzer's main would make an exit status of the signal.
        for words in ["./nest @@", "./nest -runs=1 @@"] {
            let words = format!("triage crash --json -- {words}");
            let result = desk.call(&words).exits(1).json();
            assert_eq!(result["inputs"][0]["major"], majors[0], "{words}");
        }
        desk.is_left_clean();
    }
}

#[test]
fn a_campaign_finds_and_shrinks_a_crash_of_a_libfuzzer_binary() {
    let desk = Desk::new();
    if harness(&desk, "nest", "-fsanitize=fuzzer").is_none() {
        return;
    }
    let words = "run --runs 100 --max-len 2000 --seed 1 --json -o out -- ./nest";
    let result = desk.call(words).exits(1).json();
    assert_eq!(result["exec"], "harness");
    let group = &result["groups"][0];
    assert_eq!(group["size_after"], 3, "{result}");
    let file = group["file"].as_str().unwrap();
    assert_eq!(std::fs::read(file).unwrap(), b"(((");
    // Without ddfuzz: libFuzzer's own main, on the file.
    let script = Path::new(file).with_file_name("reproduce.sh");
    let shown = desk.command("sh").arg(script).output().unwrap();
    assert_eq!(shown.status.code(), Some(128 + 4), "{shown:?}");
}

#[test]
fn doctor_knows_a_libfuzzer_binary_with_and_without_its_symbols() {
    let desk = Desk::new();
    if harness(&desk, "nest", "-fsanitize=fuzzer").is_none() {
        return;
    }
    let words = "doctor --json --time 50ms --max-len 1000 -- ./nest";
    let report = desk.call(words).exits(0).json();
    assert_eq!(report["chosen"], "harness");
    assert_eq!(report["target"]["libfuzzer"], true);
    assert_eq!(report["target"]["counters"], true);
    let stripped = desk.command("strip").arg("nest").status().unwrap();
    assert!(stripped.success());
    let report = desk.call(words).exits(0).json();
    assert_eq!(report["chosen"], "inject");
    assert!(
        report["why"].as_str().unwrap().contains("coverage"),
        "{report}"
    );
    let ways = report["ways"].as_array().unwrap();
    let harness = ways.iter().find(|way| way["way"] == "harness").unwrap();
    assert!(
        harness["fix"].as_str().unwrap().contains("symbols"),
        "{harness}"
    );
}
