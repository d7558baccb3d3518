//! `cargo ddfuzz install-runner`: one line of a file, after it was shown.

use crate::ddfuzz::{Desk, Said};

fn call(desk: &Desk, words: &str) -> Said {
    let mut command = desk.command(env!("CARGO_BIN_EXE_cargo-ddfuzz"));
    command.arg("ddfuzz").args(words.split_whitespace());
    crate::called::run(command)
}

const WORDS: &str = "install-runner --target x86_64-unknown-linux-gnu";
const FILE: &str = ".cargo/config.toml";

#[test]
fn nothing_is_changed_unless_somebody_agrees() {
    let desk = Desk::new();
    let said = call(&desk, WORDS).exits(2);
    assert!(said.err.contains("+runner = \"ddfuzz-runner\""), "{said:?}");
    assert!(said.err.contains("--yes"), "{said:?}");
    assert!(!desk.file(".cargo").exists());
}

#[test]
fn the_runner_is_put_in_and_taken_out_and_all_else_stays() {
    let desk = Desk::new();
    std::fs::create_dir(desk.file(".cargo")).unwrap();
    let text =
        "# ours\n[build]\njobs = 3 # few\n\n[target.x86_64-unknown-linux-gnu]\nlinker = \"cc\"\n";
    desk.write(FILE, text);
    call(&desk, &format!("{WORDS} --yes")).exits(0);
    let now = String::from_utf8(desk.read(FILE)).unwrap();
    assert_eq!(now, format!("{text}runner = \"ddfuzz-runner\"\n"));
    let again = call(&desk, &format!("{WORDS} --yes --json"))
        .exits(0)
        .json();
    assert_eq!(again["changed"], false);
    call(&desk, &format!("{WORDS} --yes --remove")).exits(0);
    assert_eq!(desk.read(FILE), text.as_bytes());
}

#[test]
fn lines_that_end_with_a_carriage_return_still_do() {
    let desk = Desk::new();
    std::fs::create_dir(desk.file(".cargo")).unwrap();
    let text = "# ours\r\n[target.x86_64-unknown-linux-gnu]\r\nlinker = \"cc\"\r\n";
    desk.write(FILE, text);
    call(&desk, &format!("{WORDS} --yes")).exits(0);
    let now = String::from_utf8(desk.read(FILE)).unwrap();
    assert_eq!(now, format!("{text}runner = \"ddfuzz-runner\"\r\n"));
    call(&desk, &format!("{WORDS} --yes --remove")).exits(0);
    assert_eq!(desk.read(FILE), text.as_bytes());
}

#[test]
fn a_private_file_stays_private_and_a_link_stays_a_link() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::new();
    std::fs::create_dir(desk.file(".cargo")).unwrap();
    let dotfile = desk.write("dotfile", "[registry]\ntoken = \"x\"\n");
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(&dotfile, private).unwrap();
    std::os::unix::fs::symlink(&dotfile, desk.file(FILE)).unwrap();
    call(&desk, &format!("{WORDS} --yes")).exits(0);
    assert!(desk.file(FILE).is_symlink());
    let text = String::from_utf8(desk.read("dotfile")).unwrap();
    assert!(text.ends_with("runner = \"ddfuzz-runner\"\n"), "{text}");
    let mode = dotfile.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn no_empty_file_is_left_where_only_the_runner_was() {
    let desk = Desk::new();
    call(&desk, &format!("{WORDS} --yes")).exits(0);
    let now = String::from_utf8(desk.read(FILE)).unwrap();
    assert_eq!(
        now,
        "[target.x86_64-unknown-linux-gnu]\nrunner = \"ddfuzz-runner\"\n"
    );
    call(&desk, &format!("{WORDS} --yes --remove")).exits(0);
    assert!(!desk.file(".cargo").exists());
    // What others have put into the directory stays.
    call(&desk, &format!("{WORDS} --yes")).exits(0);
    desk.write(".cargo/other", "ours");
    call(&desk, &format!("{WORDS} --yes --remove")).exits(0);
    assert!(!desk.file(FILE).exists() && desk.file(".cargo/other").exists());
}

#[test]
fn another_runner_and_a_file_that_is_no_toml_are_left_alone() {
    let desk = Desk::new();
    std::fs::create_dir(desk.file(".cargo")).unwrap();
    for text in [
        "[target.x86_64-unknown-linux-gnu]\nrunner = [\"qemu\", \"-L\", \"/\"]\n",
        "[target\n",
        "target = 3\n",
    ] {
        desk.write(FILE, text);
        let said = call(&desk, &format!("{WORDS} --yes")).exits(2);
        assert!(said.err.contains("config.toml"), "{said:?}");
        assert_eq!(desk.read(FILE), text.as_bytes());
    }
}
