//! The JSON result of `min`.

use std::time::Duration;

use ddfuzz::minimize::MinRecord;
use ddfuzz::minimize::log::{KeyRecord, StartLine};
use ddfuzz::triage::Class;

use crate::crashes::key;
use crate::failures::all_of;
use crate::scripted::{outcomes, run, start};

#[test]
fn it_has_the_keys_of_the_contract() {
    let (result, _) = run(b"12345678", &mut outcomes(all_of(b"178")));
    let held = KeyRecord {
        class: Class("segv".to_owned()),
        major: key("a"),
        minor: key("b"),
    };
    let start = StartLine {
        key: Some(held),
        ..start(b"12345678")
    };
    let wall = Duration::from_millis(1500);
    let mut record = MinRecord::new(&result.expect("a result"), &start, wall);
    record.output = Some("/out/INPUT.min".into());
    let expected = format!(
        "{{\"claim\":\"1-minimal\",\"size_before\":8,\"size_after\":3,\"tests\":{{\"executed\":17,\
         \"cached\":0,\"repeated\":10,\"predicted\":0,\"speculative\":0,\"checks\":7}},\
         \"proved\":{{\"done\":3,\"of\":3}},\"search\":\"ddmin\",\"outcome\":{{\"class\":\"segv\",\
         \"major\":\"{}\",\"minor\":\"{}\"}},\"minor_after\":null,\"rate\":{{\"hits\":3,\"tries\":3}},\
         \"wall_ms\":1500,\"output\":\"/out/INPUT.min\",\"log\":null,\"slips\":[]}}",
        key("a").short(),
        key("b").short()
    );
    assert_eq!(serde_json::to_string(&record).expect("JSON"), expected);
}

#[test]
fn for_an_interestingness_test_the_outcome_is_null() {
    let (result, _) = run(b"12345678", &mut outcomes(all_of(b"178")));
    let record = MinRecord::new(
        &result.expect("a result"),
        &start(b"12345678"),
        Duration::ZERO,
    );
    let json = serde_json::to_value(&record).expect("JSON");
    let null = serde_json::json!({"class": null, "major": null, "minor": null});
    assert_eq!(json["outcome"], null);
}
