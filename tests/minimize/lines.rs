//! The lines of the log, byte by byte.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use ddfuzz::delta::{Candidate, Config, Edit, Outcome, Replacement, Rule};
use ddfuzz::exec::{Limits, Program, Target, Way};
use ddfuzz::minimize::log::{
    CheckLine, ContentHash, EditRecord, EndLine, KeyRecord, Line, Phase, ReduceLine, Source,
    StartLine, TargetRecord, TestLine, What,
};
use ddfuzz::minimize::{Claim, Counts, CutOff, Process, ProofRef, Proved};
use ddfuzz::triage::Class;

use crate::crashes::{key, keys};

/// The line as written; reading gives the same line again.
fn written(line: &Line) -> String {
    let json = line.to_json().expect("JSON");
    assert_eq!(
        serde_json::from_slice::<Line>(&json).expect("a line"),
        *line
    );
    String::from_utf8(json).expect("UTF-8")
}

fn test_line() -> TestLine {
    TestLine {
        i: 3,
        hash: ContentHash::of(b"abc").short(),
        edit: EditRecord::Cut(vec![[0, 2], [5, 9]]),
        size: 3,
        outcome: Outcome::Unresolved,
        source: Source::Run,
        us: 250,
        spent_ms: None,
        pass: None,
        phase: None,
        cut_off: None,
        process: Process::Own,
        slip: None,
        missed: 0,
        minor: None,
        comparisons: None,
        input: None,
        changes: None,
    }
}

#[test]
fn a_test_line_has_the_fields_of_the_contract_and_no_others() {
    assert_eq!(
        written(&Line::Test(test_line())),
        "{\"kind\":\"test\",\"i\":3,\"hash\":\"6437b3ac38465133\",\"cut\":[[0,2],[5,9]],\"size\":3,\
         \"outcome\":\"UNRESOLVED\",\"source\":\"run\",\"us\":250}\n"
    );
}

#[test]
fn a_test_line_may_say_more() {
    let line = TestLine {
        pass: Some("sweep".to_owned()),
        phase: Some(Phase::Proof),
        cut_off: Some(CutOff::Time),
        process: Process::Shared,
        slip: Some(keys("a", "b")),
        minor: Some(crate::crashes::key("b")),
        input: Some(ddfuzz::minimize::log::Base64(b"abc".to_vec())),
        source: Source::Cache,
        ..test_line()
    };
    let json = written(&Line::Test(line));
    for field in [
        "\"pass\":\"sweep\"",
        "\"phase\":\"proof\"",
        "\"cut_off\":\"time\"",
        "\"process\":\"shared\"",
        "\"input\":\"YWJj\"",
        "\"cache\"",
    ] {
        assert!(json.contains(field), "{json}");
    }
}

#[test]
fn edits_are_cut_keep_or_set() {
    let edit = |edit: Edit| {
        let candidate = Candidate {
            rule: Rule::Pass("values"),
            edit,
            config: None,
            observed: false,
        };
        let line = TestLine {
            edit: (&candidate.edit).into(),
            ..test_line()
        };
        written(&Line::Test(line))
    };
    let config = Config::from_ranges([0..2, 4..5]).expect("ascending");
    assert!(edit(Edit::Keep(config)).contains("\"keep\":[[0,2],[4,5]]"));
    let replacement = Replacement {
        at: 1..3,
        with: b"00".to_vec(),
    };
    assert!(edit(Edit::Set(vec![replacement])).contains("\"set\":[[1,3,\"MDA=\"]]"));
    assert!(edit(Edit::Cut(Vec::new())).contains("\"cut\":[]"));
}

#[test]
fn check_and_reduce_lines_are_those_of_the_contract() {
    let check = CheckLine {
        what: What::Confirm,
        outcome: Outcome::Fail,
        us: 9,
        cpu_us: None,
        read: None,
        slowest_us: None,
        minor: None,
        cut_off: None,
        process: Process::Own,
        slip: None,
        missed: 0,
        passing: false,
    };
    assert_eq!(
        written(&Line::Check(check)),
        "{\"kind\":\"check\",\"what\":\"confirm\",\"outcome\":\"FAIL\",\"us\":9}\n"
    );
    let reduce = ReduceLine {
        i: 7,
        rule: Rule::Complement.name().to_owned(),
        size: 12,
    };
    assert_eq!(
        written(&Line::Reduce(reduce)),
        "{\"kind\":\"reduce\",\"i\":7,\"rule\":\"complement\",\"size\":12}\n"
    );
}

#[test]
fn the_end_line_names_tests_and_checks_that_prove() {
    let end = EndLine {
        claim: Claim::OneMinimal,
        size: 3,
        blake3: ContentHash::of(b"abc"),
        tests: Counts {
            executed: 1,
            cached: 2,
            repeated: 3,
            predicted: 4,
            speculative: 5,
            checks: 6,
        },
        proved: Proved { done: 2, of: 2 },
        proof: vec![ProofRef::Test(4), ProofRef::Check(What::Axiom)],
        passing: None,
    };
    assert_eq!(
        written(&Line::End(end)),
        "{\"kind\":\"end\",\"claim\":\"1-minimal\",\"size\":3,\
         \"blake3\":\"6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85\",\
         \"tests\":{\"executed\":1,\"cached\":2,\"repeated\":3,\"predicted\":4,\"speculative\":5,\
         \"checks\":6},\"proved\":{\"done\":2,\"of\":2},\"proof\":[4,\"axiom\"]}\n"
    );
}

#[test]
fn the_start_line_begins_with_its_version_and_loses_nothing() {
    let target = Target {
        args: vec![
            "-t".into(),
            OsString::from_vec(vec![b'a', 0xff]),
            "@@".into(),
        ],
        env: vec![("TERM".into(), "xterm".into())],
        cwd: Some("/somewhere".into()),
        crash_exit: Some(77),
        ..Target::new(Program::Path("/bin/program".into()))
    };
    let held = KeyRecord {
        class: Class("segv".to_owned()),
        major: key("a"),
        minor: key("b"),
    };
    let record = TargetRecord::new(&target, Way::Inject);
    let start = StartLine {
        seed: Some(7),
        ..StartLine::new(
            b"abc",
            "ddmin",
            record.clone(),
            Some(held),
            Limits::default(),
        )
    };
    let json = written(&Line::Start(Box::new(start)));
    assert!(
        json.starts_with("{\"v\":1,\"kind\":\"start\",\"input_blake3\":\"6437b3ac"),
        "{json}"
    );
    for field in [
        "size", "search", "target", "key", "limits", "ddfuzz", "program", "bundled", "way", "seed",
    ] {
        assert!(json.contains(&format!("\"{field}\":")), "{field}: {json}");
    }
    assert!(
        json.contains("[\"-t\",{\"base64\":\"Yf8=\"},\"@@\"]"),
        "{json}"
    );
    assert_eq!(record.target(target.limits), Some(target));
}

#[test]
fn a_bundled_target_is_known_by_name() {
    let target = Target::new(Program::Bundled("ul".to_owned()));
    let record = TargetRecord::new(&target, Way::Harness);
    assert_eq!(
        (record.program.clone(), record.bundled.as_deref()),
        (None, Some("ul"))
    );
    assert_eq!(record.target(target.limits), Some(target));
}

#[test]
fn a_hash_of_another_shape_is_no_hash() {
    for hash in [
        "",
        "6437B3AC38465133",
        "+437b3ac38465133",
        "6437b3ac3846513",
        "äöüäöüäö",
    ] {
        let parsed: Result<ddfuzz::minimize::log::ShortHash, _> =
            serde_json::from_value(serde_json::json!(hash));
        assert!(parsed.is_err(), "{hash}");
    }
}
