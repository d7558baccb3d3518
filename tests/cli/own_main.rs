//! Programs with an entry function of a fuzzer and a `main` of their own.

use crate::ddfuzz::{Desk, Said};

/// A program whose entry function tells inputs apart by their first byte only, and whose `main`
/// aborts on an `M` before it calls the function. It writes nothing.
const SOURCE: &str = "#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
    #include <string.h>\nstatic volatile int place;\n\
    int ENTRY(const uint8_t *text, size_t length) {\n\
      if (length < 2) return 0;\n\
      if (text[0] == 'a') place = 1;\n\
      else if (text[0] == 'b') place += 2;\n\
      else if (text[0] == 'c') place ^= 3;\n\
      return 0; }\n\
    int main(void) { static uint8_t text[4096];\n\
      size_t length = fread(text, 1, sizeof text, stdin);\n\
      if (memchr(text, 'M', length)) abort();\n\
      return ENTRY(text, length); }\n";

/// A desk with the program `own`, whose entry function has this name.
fn desk(entry: &str) -> Desk {
    let desk = Desk::new();
    let source = desk.write("own.c", SOURCE.replace("ENTRY", entry));
    desk.compile(source.to_str().unwrap(), "own");
    std::fs::create_dir(desk.file("corpus")).unwrap();
    for text in ["ax", "ay", "bx", "cx", "dx"] {
        desk.write(&format!("corpus/{text}"), text);
    }
    desk
}

fn kept(said: &Said) -> u64 {
    said.json()["after"]["files"].as_u64().unwrap()
}

#[test]
fn a_corpus_is_cleaned_by_what_the_main_reaches() {
    for entry in ["LLVMFuzzerTestOneInput", "target_main"] {
        let desk = desk(entry);
        let said = desk.call("clean corpus -o out --json -- ./own").exits(0);
        assert!(
            said.json()["edges_before"].is_u64(),
            "{entry}: {}",
            said.err
        );
        // One for each branch; what takes none reaches no more than the last.
        assert_eq!(kept(&said), 3, "{entry}: {}", said.err);
    }
}

#[test]
fn inputs_of_an_unknown_effect_are_all_kept() {
    for entry in ["LLVMFuzzerTestOneInput", "target_main"] {
        let desk = desk(entry);
        let words = "clean corpus --in-place -o out --json --exec harness -- ./own";
        let said = desk.call(words).exits(0);
        assert!(
            said.json()["edges_before"].is_null(),
            "{entry}: {}",
            said.err
        );
        assert_eq!(kept(&said), 5, "{entry}: {}", said.err);
        assert!(said.err.contains("all of them are kept"), "{}", said.err);
    }
}

#[test]
fn a_crash_of_the_main_is_found_and_minimized() {
    let desk = desk("LLVMFuzzerTestOneInput");
    desk.write("crash", "some Mistake");
    let result = desk
        .call("min crash -o small --json -- ./own")
        .exits(0)
        .json();
    assert_eq!(result["claim"], "1-minimal", "{result}");
    assert_eq!(desk.read("small"), b"M");
    let inputs = desk.call("triage crash --json -- ./own").exits(1).json();
    assert_eq!(inputs["inputs"][0]["class"], "abrt", "{inputs}");
}
