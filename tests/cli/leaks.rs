//! Inputs that do nothing but leak.

use crate::ddfuzz::Desk;
use crate::needs;

const LEAKY: &str = "#include <stdio.h>\n\
    #include <stdlib.h>\n\
    char *held;\n\
    int main(void) {\n\
      if (getchar() == 'l') held = malloc(99);\n\
      held = 0;\n\
      return 0;\n\
    }\n";

/// Compiles the leaking program; returns false, and says so, where the compiler has no
/// AddressSanitizer.
fn has_leaky(desk: &Desk) -> bool {
    let source = desk.write("leaky.c", LEAKY);
    let compiled = desk
        .command("cc")
        .args(["-O0", "-fsanitize=address", "-o", "leaky"])
        .arg(source)
        .output()
        .expect("the tests need a C compiler");
    if !compiled.status.success() {
        needs::missing("ASan", "the compiler has no -fsanitize=address");
    }
    compiled.status.success()
}

#[test]
fn of_an_input_that_leaks_min_says_that_leaks_are_not_minimized() {
    let desk = Desk::new();
    if !has_leaky(&desk) {
        return;
    }
    desk.write("leak", "leak");
    desk.write("sound", "sound");
    let error = desk.call("min leak --json -- ./leaky").exits(3).json();
    assert_eq!(error["error"]["kind"], "not-failing");
    let hint = error["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("leaks are not minimized"), "{hint}");
    assert!(hint.contains("(lsan:direct-leak)"), "{hint}");
    let error = desk.call("min sound --json -- ./leaky").exits(3).json();
    let hint = error["error"]["hint"].as_str().unwrap();
    assert!(hint.starts_with("give an input that crashes"), "{hint}");
}

const LEAKY_ENTRY: &str = "#include <stdint.h>\n\
    #include <stdlib.h>\n\
    char *held;\n\
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {\n\
      if (size && data[0] == 'l') held = malloc(99);\n\
      held = 0;\n\
      return 0;\n\
    }\n";

/// A main around the entry.
const ITS_MAIN: &str = "#include <stdio.h>\n\
    int main(void) {\n\
      uint8_t data[99];\n\
      return LLVMFuzzerTestOneInput(data, fread(data, 1, sizeof data, stdin));\n\
    }\n";

#[test]
fn triage_finds_the_leak_of_a_program_that_is_run_by_its_entry() {
    let Some(_) = needs::program("clang") else {
        return;
    };
    for (sanitizers, main) in [("fuzzer,address", ""), ("address", ITS_MAIN)] {
        let desk = Desk::new();
        let source = desk.write("leaky.c", LEAKY_ENTRY.to_owned() + main);
        let compiled = desk
            .command("clang")
            .args(["-O0", &format!("-fsanitize={sanitizers}"), "-o", "leaky"])
            .arg(source)
            .output()
            .unwrap();
        if !compiled.status.success() {
            return needs::missing("libFuzzer", "clang does not link -fsanitize=fuzzer,address");
        }
        desk.write("leak", "leak");
        desk.write("sound", "sound");
        let said = desk.call("triage leak sound --leaks --exec harness --json -- ./leaky");
        let inputs = said.exits(1).json();
        assert_eq!(inputs["inputs"][0]["class"], "lsan:direct-leak", "{inputs}");
        assert!(inputs["inputs"][1]["class"].is_null(), "{inputs}");
    }
}

#[test]
fn watch_looks_for_the_leak_of_a_content_that_it_has_run_as_a_file_of_the_corpus() {
    let desk = Desk::new();
    if !has_leaky(&desk) {
        return;
    }
    for folder in ["corpus", "found"] {
        std::fs::create_dir(desk.file(folder)).unwrap();
    }
    desk.write("corpus/a", "leak");
    desk.call("watch corpus --once --json -o out -- ./leaky")
        .exits(0);
    let name = format!("found/leak-{}", "5".repeat(40));
    desk.write(&name, "leak");
    let both = "watch corpus found --once --resume --json -o out -- ./leaky";
    let result = desk.call(both).exits(1).json();
    assert_eq!(result["groups"][0]["class"], "lsan:direct-leak", "{result}");
    // Once is enough.
    let again = desk.call(both).exits(0).json();
    assert_eq!(again["runs"], 0, "{again}");
}

#[test]
fn triage_looks_for_the_leak_of_a_content_that_it_has_run_as_a_file_of_the_corpus() {
    let desk = Desk::new();
    if !has_leaky(&desk) {
        return;
    }
    for folder in ["corpus", "found"] {
        std::fs::create_dir(desk.file(folder)).unwrap();
    }
    desk.write("corpus/a", "leak");
    desk.write(&format!("found/leak-{}", "5".repeat(40)), "leak");
    for jobs in [1, 4] {
        let call = format!("triage corpus found --jobs {jobs} --json -- ./leaky");
        let result = desk.call(&call).exits(1).json();
        for input in result["inputs"].as_array().unwrap() {
            assert_eq!(input["class"], "lsan:direct-leak", "{result}");
        }
    }
    // A later call that looks for leaks in all files finds what an earlier one did not look for.
    desk.call("triage corpus -o out -- ./leaky").exits(0);
    let later = "triage corpus -o out --resume --leaks --json -- ./leaky";
    for _ in 0..2 {
        let result = desk.call(later).exits(1).json();
        assert_eq!(result["groups"][0]["class"], "lsan:direct-leak", "{result}");
    }
}
