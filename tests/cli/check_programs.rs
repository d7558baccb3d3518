//! `ddfuzz check`: programs that seem to be another one, or to end before they do their work.

use std::path::Path;

use crate::check::checked;
use crate::ddfuzz::Desk;

#[test]
fn a_program_that_reads_nothing_shows_no_fix_without_a_minimization() {
    let desk = Desk::new();
    let reads = "read x; case $x in *z*) kill -SEGV $$;; esac";
    desk.script("program", reads);
    desk.write("in", "abcz");
    desk.call("triage in -o out -- ./program").exits(1);
    desk.script("program", "exit 1");
    let group = checked(&desk, "", 1);
    assert_eq!(group["status"], "cannot tell", "{group}");
    let why = group["why"].as_str().unwrap();
    assert!(why.ends_with("it read some when it failed"), "{group}");
    // What a call of min says of a new build is the same.
    let said = desk.call("min out").exits(0);
    assert!(said.err.contains("0 fixed, 1 undecided"), "{said:?}");
    // An older record does not say whether the program read anything.
    let file = Path::new(group["file"].as_str().unwrap()).with_file_name("crash.json");
    let record = std::fs::read_to_string(&file).unwrap();
    let mut record: serde_json::Value = serde_json::from_str(&record).unwrap();
    assert_eq!(
        record.as_object_mut().unwrap().remove("read"),
        Some(4.into())
    );
    std::fs::write(&file, record.to_string()).unwrap();
    let group = checked(&desk, "", 1);
    assert_eq!(group["status"], "cannot tell", "{group}");
    desk.script("program", "read x");
    assert_eq!(checked(&desk, "", 0)["status"], "fixed");
    // One that never read anything is fixed without.
    std::fs::remove_dir_all(desk.file("out")).unwrap();
    desk.script("program", "kill -SEGV $$");
    desk.call("triage in -o out -- ./program").exits(1);
    desk.script("program", "exit 0");
    assert_eq!(checked(&desk, "", 0)["status"], "fixed");
}
