//! libFuzzer binaries as their users have them.

use std::path::Path;

use crate::ddfuzz::{Desk, compiled};
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
    clang(desk, &source, name, sanitizers)
}

/// Compiles a harness, once for all tests; `None`, and said so, without clang and its libFuzzer.
fn clang(desk: &Desk, source: &Path, name: &str, sanitizers: &str) -> Option<()> {
    needs::program("clang")?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let text = std::fs::read(source).unwrap();
    let made = compiled::try_once(folder, name, (text, sanitizers), |own| {
        let program = own.join(name);
        let mut command = desk.command("clang");
        command.args(["-g", "-O1", sanitizers, "-o"]);
        let output = command.arg(&program).arg(source).output().unwrap();
        if !output.status.success() {
            needs::missing("libFuzzer", &String::from_utf8_lossy(&output.stderr));
            return None;
        }
        Some(program)
    })?;
    desk.put(&made, name);
    Some(())
}

#[test]
fn a_crash_of_a_libfuzzer_binary_is_minimized_as_it_is_and_alike_by_every_way() {
    for sanitizers in ["-fsanitize=fuzzer", "-fsanitize=fuzzer,address"] {
        let desk = Desk::new();
        if harness(&desk, "nest", sanitizers).is_none() {
            return;
        }
        desk.write("crash", "a(b(c\n)(d");
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
    assert_eq!(report["chosen"], "snapshot");
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

/// A harness that asks for as much memory as its input says, and does not use it.
const RESERVES: &str = r"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
static void *volatile kept;
__attribute__((noinline)) static void reserve(uint32_t size) {
  kept = malloc(size);
  free(kept);
}
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint32_t wanted;
  if (size < 5 || data[0] != 'S')
    return 0;
  memcpy(&wanted, data + 1, sizeof wanted);
  reserve(wanted);
  return 0;
}
";

#[test]
fn what_libfuzzer_calls_out_of_memory_is_grouped_and_minimized_as_that() {
    let desk = Desk::new();
    let source = desk.write("reserves.c", RESERVES);
    if clang(&desk, &source, "reserves", "-fsanitize=fuzzer,address").is_none() {
        return;
    }
    std::fs::create_dir(desk.file("artifacts")).unwrap();
    desk.write(
        "artifacts/oom-1",
        b"S\xff\xff\xff\xf0 and the rest of a file",
    );
    desk.write("artifacts/slow-unit-1", b"S\xff\xff\xff\x0f");
    let mut majors = Vec::new();
    for way in ["auto", "harness", "inject", "command"] {
        let words =
            format!("min artifacts/oom-1 --timeout 30s --json -o {way} --exec {way} -- ./reserves");
        let result = desk.call(&words).exits(0).json();
        assert_eq!(result["outcome"]["class"], "oom", "{way}: {result}");
        assert_eq!(desk.read(way), b"S000\xf0", "{way}");
        majors.push(result["outcome"]["major"].clone());
        desk.call(&format!("log verify {way}.log.jsonl")).exits(0);
    }
    majors.dedup();
    assert_eq!(majors.len(), 1, "{majors:?}");
    let triaged = desk
        .call("triage artifacts --timeout 30s --json -- ./reserves")
        .exits(1);
    let triaged = triaged.json();
    assert_eq!(triaged["groups"][0]["kind"], "oom", "{triaged}");
    assert_eq!(triaged["groups"][0]["major"], majors[0]);
    assert_eq!(
        triaged["healthy"], 1,
        "what took long is no failure: {triaged}"
    );
    // The same by what is watched, and by the script, which runs libFuzzer's own main.
    let watched = desk.call("watch artifacts --once --timeout 30s --json -o out -- ./reserves");
    assert_eq!(watched.json()["ooms"], 1);
    let mut folder = desk.file("out/oom");
    while !folder.join("reproduce.sh").exists() {
        let inside = std::fs::read_dir(&folder)
            .unwrap()
            .map(|one| one.unwrap().path());
        folder = inside.filter(|path| path.is_dir()).min().unwrap();
    }
    let script = folder.join("reproduce.sh");
    assert_eq!(
        std::fs::read(script.with_file_name("minimized")).unwrap(),
        b"S000\xf0"
    );
    let shown = desk.command("sh").arg(&script).output().unwrap();
    let said = String::from_utf8_lossy(&shown.stderr);
    assert!(
        said.contains("requested allocation size 0xf0303030"),
        "{said}"
    );
    assert!(!shown.status.success(), "{shown:?}");
    desk.is_left_clean();
}

#[test]
fn libfuzzers_own_flags_say_what_is_out_of_memory() {
    let desk = Desk::new();
    let source = desk.write("reserves.c", RESERVES);
    if clang(&desk, &source, "reserves", "-fsanitize=fuzzer,address").is_none() {
        return;
    }
    // 2.1 GiB, and 100 MiB.
    desk.write("huge", b"S\x00\x00\x00\x86");
    desk.write("large", b"S\x00\x00\x40\x06");
    // `triage` runs a healthy input three times, `min` twenty-one times.
    let min = "min --force --budget-tests 4 -o small";
    for (command, flag, input, code) in [
        ("triage", "-malloc_limit_mb=3000", "huge", 0),
        ("triage", "-rss_limit_mb=3000", "huge", 0),
        (min, "-runs=1", "huge", 0),
        (min, "-runs=1", "large", 3),
        (min, "-malloc_limit_mb=50", "large", 0),
    ] {
        let words = format!("{command} {input} --timeout 30s -- ./reserves {flag} @@");
        let said = desk.call(&words);
        assert_eq!(said.code, Some(code), "{flag} {input}: {said:?}");
    }
}

#[test]
fn an_input_that_only_took_long_is_told_from_a_failure() {
    let desk = Desk::new();
    if harness(&desk, "nest", "-fsanitize=fuzzer").is_none() {
        return;
    }
    desk.write("slow-unit-1", "(a");
    let error = desk
        .call("min slow-unit-1 --json -- ./nest")
        .exits(3)
        .json();
    let hint = error["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("took long"), "{hint}");
}

#[test]
fn a_libfuzzer_binary_that_is_given_files_is_warned_of() {
    let desk = Desk::new();
    if harness(&desk, "nest", "-fsanitize=fuzzer").is_none() {
        return;
    }
    let warnings = |words: &str| {
        let words = format!("run --json --runs 20 --max-len 8 --seed 1 --exec inject {words}");
        desk.call(&words).json()["warnings"].to_string()
    };
    let said = warnings("-o files -- ./nest @@");
    assert!(said.contains("omit @@ to fuzz it in process"), "{said}");
}
