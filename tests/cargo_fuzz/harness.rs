//! Harnesses that cannot be built, or be fuzzed, are told apart from those that can.

use crate::called::Checkout;
use crate::projects::TWO_PANICS;

/// A project whose harness does this with `data`.
fn doing(body: &str) -> Option<Checkout> {
    let checkout = Checkout::of(TWO_PANICS)?;
    let source = format!(
        "#![no_main]\nuse libfuzzer_sys::fuzz_target;\nfuzz_target!(|data: &[u8]| {{ {body} }});\n"
    );
    std::fs::write(checkout.dir.join("fuzz/fuzz_targets/parse.rs"), source).unwrap();
    Some(checkout)
}

const RUN: &str = "run parse --runs 200 --json -o out --jobs 1";

#[test]
fn a_build_that_fails_is_told_with_the_command_that_shows_it() {
    let Some(checkout) = doing("let x: u32 = ;") else {
        return;
    };
    let said = checkout.call(RUN).exits(3);
    assert!(said.err.contains("expected expression"), "{said:?}");
    assert!(
        said.err.contains("cargo fuzz could not build parse"),
        "{said:?}"
    );
    assert!(said.err.contains("fuzz build parse"), "{said:?}");
    assert!(!checkout.dir.join("out").exists());
}

#[test]
fn a_harness_that_fails_on_every_input_is_not_fuzzed() {
    let Some(checkout) = doing("panic!(\"always, on {} bytes\", data.len());") else {
        return;
    };
    for engine in ["libafl", "libfuzzer"] {
        let said = checkout.call(&format!("{RUN} --engine {engine}")).exits(3);
        let error = &said.json()["error"];
        assert_eq!(error["kind"], "harness", "{error}");
        assert!(
            error["hint"]
                .as_str()
                .unwrap()
                .contains("cargo fuzz run parse")
        );
        assert!(!checkout.dir.join("out").exists());
    }
}

#[test]
fn what_libfuzzer_finds_is_kept_where_it_cannot_go_on() {
    let Some(checkout) = doing("assert!(!data.is_empty(), \"nothing to parse\");") else {
        return;
    };
    let seed = checkout.dir.join("seed");
    std::fs::write(&seed, "a seed").unwrap();
    let words = "run parse --engine libfuzzer --time 60s --json -o out --jobs 1 --seeds seed";
    let said = checkout.call(words).exits(1).json();
    assert_eq!(said["groups"].as_array().unwrap().len(), 1, "{said}");
    let warning = said["warnings"][0].as_str().unwrap();
    assert!(
        warning.contains("first inputs") && warning.contains("--engine libafl"),
        "{warning}"
    );
    for option in ["--seeds nowhere", "--dict nowhere"] {
        let words = format!("run parse --engine libfuzzer --json -o other --jobs 1 {option}");
        let error = &checkout.call(&words).exits(2).json()["error"];
        assert!(
            error["hint"].as_str().unwrap().contains("nowhere"),
            "{error}"
        );
    }
}

#[test]
fn a_harness_that_ignores_its_input_is_fuzzed_with_a_warning() {
    let Some(checkout) = doing("std::hint::black_box(data.len());") else {
        return;
    };
    let said = checkout.call(RUN).exits(0);
    assert!(said.err.contains("does the same on"), "{said:?}");
    assert!(said.err.contains("fuzz_targets/parse.rs"), "{said:?}");
    assert_eq!(said.json()["runs"], 200);
}
