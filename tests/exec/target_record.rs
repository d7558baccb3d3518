//! Targets as records.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use ddfuzz::exec::{Program, Target, TargetRecord, Way};

#[test]
fn a_target_comes_back_whole_from_its_record() {
    let odd = OsString::from_vec(vec![b'a', 0xff, b'\n']);
    let target = Target {
        args: vec![odd.clone(), "@@".into()],
        env: vec![("K".into(), odd.clone())],
        cwd: Some(odd.clone().into()),
        crash_exit: Some(3),
        ..Target::new(Program::Path(odd.into()))
    };
    let text = serde_json::to_string(&TargetRecord::new(&target, Way::Inject)).unwrap();
    let record: TargetRecord = serde_json::from_str(&text).unwrap();
    assert_eq!(record.target(target.limits), Some(target));
}

#[test]
fn a_bundled_target_comes_back_by_name() {
    let target = Target::new(Program::Bundled("ul".to_owned()));
    let record = TargetRecord::new(&target, Way::Harness);
    assert_eq!(record.target(target.limits), Some(target));
}
