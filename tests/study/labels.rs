//! Utilities that cannot be run as others are: each gets a line that says so, and the study goes
//! on.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use crate::lab::{Lab, groups, utility};

#[test]
fn each_odd_utility_has_its_label_and_the_study_goes_on() {
    let lab = Lab::with(&["loops", "waits", "kills", "privileged", "zap"]);
    let setuid = Permissions::from_mode(0o4755);
    std::fs::set_permissions(lab.path("privileged"), setuid).unwrap();
    let said = lab.revisit(
        "loops waits kills privileged nowhere reboot zap --channel stdin --runs 90 --seed 1 --json \
         --timeout 200ms",
    );
    let result = said.exits(1).json();
    let label = |name: &str| utility(&result, name)["label"].clone();
    assert_eq!(label("loops"), "loops-on-empty-input");
    assert_eq!(label("waits"), "waits-on-empty-input");
    assert_eq!(label("kills"), "kills-its-process-group");
    assert_eq!(label("privileged"), "setuid");
    assert_eq!(label("nowhere"), "missing");
    assert_eq!(label("reboot"), "denied");
    assert!(label("zap").is_null());
    assert_eq!(
        utility(&result, "loops")["hangs"],
        0,
        "it never ends: {result}"
    );
    assert_eq!(utility(&result, "nowhere")["runs"], 0);
    assert_eq!(groups(&result, "zap").len(), 1, "{result}");
    lab.desk.is_left_clean();
}

#[test]
fn crashes_of_a_program_that_is_gone_do_not_end_a_study() {
    let lab = Lab::with(&["zap", "high"]);
    let words = "zap high --channel stdin --seed 3 -o out";
    let said = lab.revisit(&format!("{words} --runs 200 --minimize off"));
    said.exits(1);
    std::fs::remove_file(lab.path("zap")).unwrap();
    for resumed in ["--resume", ""] {
        let said = lab.revisit(&format!("{words} --runs 10 {resumed}"));
        assert!(
            said.err.contains("is not minimized: there is no program"),
            "{said:?}"
        );
        let result = lab.desk.call("show out --json").exits(0).json();
        assert_eq!(utility(&result, "zap")["label"], "missing", "{result}");
    }
}

#[test]
fn a_script_whose_command_never_ends_is_said_to_loop() {
    let lab = Lab::with(&["loops"]);
    let script = "#!/bin/sh\n\"${0%/*}/loops\"\nexit\n";
    std::fs::write(lab.path("wraps"), script).unwrap();
    std::fs::set_permissions(lab.path("wraps"), Permissions::from_mode(0o755)).unwrap();
    let words = "wraps --channel stdin --runs 3 --seed 1 --json --timeout 300ms";
    let result = lab.revisit(words).exits(0).json();
    let label = &utility(&result, "wraps")["label"];
    assert_eq!(label, "loops-on-empty-input", "{result}");
}

#[test]
fn a_program_that_the_system_cannot_execute_does_not_end_the_study() {
    let lab = Lab::with(&["zap"]);
    std::fs::write(lab.path("broken"), "\x7fELF and nothing more").unwrap();
    std::fs::set_permissions(lab.path("broken"), Permissions::from_mode(0o755)).unwrap();
    let said = lab.revisit("broken zap --runs 200 --seed 1 --json");
    let result = said.exits(1).json();
    assert_eq!(utility(&result, "broken")["label"], "does-not-start");
    assert_eq!(groups(&result, "zap").len(), 1, "{result}");
}

#[test]
fn a_utility_in_no_list_is_run_by_the_channels_asked_for_alone() {
    let lab = Lab::with(&["zap"]);
    let words = "zap --runs 300 --seed 1 --json --minimize off";
    let said = lab.revisit(&format!("{words} --channel file -o one"));
    let result = said.exits(0).json();
    assert_eq!(utility(&result, "zap")["channel"], "file", "{result}");
    let said = lab.revisit(&format!("{words} --channel two_files -o none"));
    let result = said.exits(0).json();
    assert_eq!(utility(&result, "zap")["label"], "no-channel", "{result}");
    assert_eq!(utility(&result, "zap")["runs"], 0);
}

#[test]
fn what_was_refused_yesterday_has_no_label_of_it_when_it_is_run() {
    let lab = Lab::with(&["mail", "plain"]);
    let words = "mail later plain --runs 90 --seed 1 --json -o out --minimize off";
    let result = lab.revisit(words).exits(0).json();
    assert_eq!(utility(&result, "mail")["label"], "denied");
    assert_eq!(utility(&result, "later")["label"], "missing");
    std::fs::copy(lab.path("mail"), lab.path("later")).unwrap();
    let result = lab
        .revisit(&format!("{words} --allow mail --resume"))
        .json();
    for name in ["mail", "later"] {
        let utility = utility(&result, name);
        assert!(utility["label"].is_null(), "{utility}");
        assert_eq!(utility["runs"], 30, "{utility}");
    }
}
