//! An exported test of a sanitizer's report, built and run by cargo-fuzz.

use crate::called::Checkout;
use crate::needs;
use crate::projects::{CPP_ASAN, nightly_works};

#[test]
fn an_exported_test_of_a_sanitizers_report_fails_until_the_bug_is_fixed() {
    if !nightly_works() {
        return needs::missing("nightly Rust", "`cargo +nightly` does not work");
    }
    let Some(checkout) = Checkout::of(CPP_ASAN) else {
        return;
    };
    let files = CPP_ASAN.artifacts();
    let words = format!(
        "triage sessions {}/freed-300 --json -o out",
        files.display()
    );
    let result = checkout.call(&words).exits(1).json();
    assert_eq!(result["groups"][0]["class"], "asan:heap-use-after-free");
    let major = result["groups"][0]["major"].as_str().unwrap();
    let words = "export -o out --into tests/found --fuzz-dir fuzz";
    checkout.ddfuzz(words).exits(0);
    let test = checkout.dir.join(format!("tests/found/g_{major}.rs"));
    let text = std::fs::read_to_string(test).unwrap();
    assert!(text.contains("SANITIZER: &str = \"address\""), "{text}");
    let test = |passes: bool| {
        let mut cargo = checkout.command("cargo");
        // With a backtrace of cargo-fuzz the end of the output would be that alone.
        cargo.env_remove("RUST_BACKTRACE");
        let output = cargo.args(["test", "--test", "found"]).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert_eq!(output.status.success(), passes, "{said}");
        said
    };
    let said = test(false);
    assert!(said.contains("heap-use-after-free"), "{said}");
    let source = checkout.dir.join("cpp/sessions.cpp");
    let text = std::fs::read_to_string(&source).unwrap();
    std::fs::write(&source, format!("#define FIXED\n{text}")).unwrap();
    test(true);
}
