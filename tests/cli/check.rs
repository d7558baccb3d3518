//! `ddfuzz check`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::ddfuzz::Desk;

/// All files below a directory with their contents.
fn files(root: &Path) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            let changed = path.metadata().unwrap().modified().unwrap();
            all.insert(path.clone(), (std::fs::read(&path).unwrap(), changed));
        }
    }
    all
}

#[test]
fn a_fixed_group_a_remaining_one_and_one_that_fails_otherwise_are_told_apart() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_bugs.c", "two_bugs");
    desk.write("odd", "kkk");
    desk.write("even", "kk");
    desk.call("triage odd even -o out -- ./two_bugs").exits(1);
    let before = files(&desk.file("out"));
    let result = desk.call("check out --json").exits(1).json();
    assert_eq!((&result["same"], &result["fixed"]), (&2.into(), &0.into()));
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/programs");
    let source = std::fs::read_to_string(source.join("two_bugs.c")).unwrap();
    let mended = source.replace("        odd_bug();", "        return 0;");
    let mended = desk.write("mended.c", mended);
    desk.compile(mended.to_str().unwrap(), "mended");
    let result = desk.call("check out --json -- ./mended").exits(1).json();
    assert_eq!((&result["same"], &result["fixed"]), (&1.into(), &1.into()));
    let other = source.replace("    *nowhere = 1;", "    __builtin_trap();");
    let other = desk.write(
        "other.c",
        other.replace("        odd_bug();", "        return 0;"),
    );
    desk.compile(other.to_str().unwrap(), "other");
    let result = desk.call("check out --json -- ./other").exits(1).json();
    assert_eq!((&result["other"], &result["fixed"]), (&1.into(), &1.into()));
    let groups = result["groups"].as_array().unwrap();
    let now = groups
        .iter()
        .find(|group| group["status"] == "other")
        .unwrap();
    assert_eq!(now["now"]["class"], "ill");
    let said = desk.call("check out -- ./other").exits(1);
    assert!(
        said.out.contains("1 failing in another way"),
        "{}",
        said.out
    );
    desk.call("check out -- ./no-such-program").exits(3);
    desk.call("check out -- true").exits(0);
    assert_eq!(files(&desk.file("out")), before);
    desk.is_left_clean();
}

#[test]
fn a_campaigns_directory_is_checked_by_its_reproducers() {
    let desk = Desk::new();
    desk.call("run --target crtplot --runs 60 --max-len 1000 --seed 1 -o out")
        .exits(1);
    let result = desk.call("check out --json").exits(1).json();
    assert_eq!(result["groups"][0]["status"], "same");
    let file = result["groups"][0]["file"].as_str().unwrap();
    assert!(file.ends_with("/minimized"), "{file}");
    let fixed = desk
        .call("check out --json --target crtplot-fixed")
        .exits(0)
        .json();
    assert_eq!(fixed["fixed"], 1);
    assert_eq!(fixed["groups"][0]["now"], serde_json::Value::Null);
    // The reproducer and the input as found.
    assert_eq!(fixed["groups"][0]["inputs"], 2);
    desk.write("known", result["groups"][0]["major"].as_str().unwrap());
    desk.call("check out --known known").exits(0);
}

#[test]
fn hangs_are_checked_and_groups_of_several_targets_need_a_program() {
    let desk = Desk::new();
    desk.script("loop", "x=$(cat); while [ \"$x\" = h ]; do :; done");
    desk.write("hang", "h");
    desk.call("triage hang --timeout 100ms -o out -- ./loop")
        .exits(1);
    let result = desk.call("check out --json").exits(1).json();
    assert_eq!(result["groups"][0]["status"], "same");
    assert_eq!(result["groups"][0]["kind"], "hang");
    desk.script("loop", "cat >/dev/null");
    desk.call("check out").exits(0);
    desk.write("crash", "a t");
    desk.call("triage crash -o other --target crtplot").exits(1);
    desk.call("merge out other -o both").exits(0);
    let error = desk.call("check both --json").exits(2).json();
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("several programs"), "{message}");
    desk.call("check nowhere").exits(2);
}
