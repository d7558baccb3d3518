//! What is wrong with a project or the machine is said, with the command that helps.

use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::ddfuzz::{Desk, Said};

/// Calls `cargo ddfuzz` on the desk.
fn call(desk: &Desk, words: &str) -> Said {
    said(desk, words, |_| {})
}

fn said(desk: &Desk, words: &str, with: impl FnOnce(&mut Command)) -> Said {
    let mut command = desk.command(env!("CARGO_BIN_EXE_cargo-ddfuzz"));
    command.arg("ddfuzz").args(words.split_whitespace());
    with(&mut command);
    crate::called::run(command)
}

/// A project with one fuzz target, which is never built.
fn project(desk: &Desk) {
    std::fs::create_dir_all(desk.file("fuzz/fuzz_targets")).unwrap();
    desk.write(
        "fuzz/Cargo.toml",
        "[package]\nname = \"a-fuzz\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\
         [package.metadata]\ncargo-fuzz = true\n[workspace]\n\
         [[bin]]\nname = \"parse\"\npath = \"fuzz_targets/parse.rs\"\n",
    );
    desk.write(
        "fuzz/fuzz_targets/parse.rs",
        "fn main() { let x: u32 = ; }\n",
    );
}

#[test]
fn a_directory_without_a_project_is_told_how_to_make_one() {
    let desk = Desk::new();
    for words in [
        "run parse",
        "list",
        "triage parse",
        "min parse x",
        "clean parse",
    ] {
        let said = call(&desk, words).exits(2);
        assert!(
            said.err.contains("hint: create one: cargo fuzz init"),
            "{said:?}"
        );
    }
    let said = call(&desk, "list --fuzz-dir nowhere --json").exits(2);
    assert!(
        said.json()["error"]["path"]
            .as_str()
            .unwrap()
            .ends_with("nowhere")
    );
}

#[test]
fn a_fuzz_target_that_is_not_there_is_told_with_those_that_are() {
    let desk = Desk::new();
    project(&desk);
    let said = call(&desk, "run other").exits(2);
    assert!(
        said.err.contains("there is no fuzz target other"),
        "{said:?}"
    );
    assert!(said.err.contains("there are parse"), "{said:?}");
    assert!(said.err.contains("cargo fuzz add other"), "{said:?}");
}

#[test]
fn a_manifest_that_cargo_cannot_read_is_told_with_what_cargo_says() {
    let desk = Desk::new();
    project(&desk);
    let text = String::from_utf8(desk.read("fuzz/Cargo.toml")).unwrap();
    desk.write("fuzz/Cargo.toml", text.replace("\"0.0.0\"", "\"none\""));
    let said = call(&desk, "list").exits(2);
    assert!(
        said.err.contains("none") && said.err.contains("Cargo.toml"),
        "{said:?}"
    );
}

#[test]
fn targets_are_listed_from_anywhere_in_the_project() {
    let desk = Desk::new();
    project(&desk);
    std::fs::create_dir_all(desk.file("fuzz/corpus/parse")).unwrap();
    desk.write("fuzz/corpus/parse/a", "a");
    std::fs::create_dir_all(desk.file("fuzz/artifacts/parse")).unwrap();
    // A crash file and what `min` writes beside it.
    for ending in ["", ".min", ".min.log.jsonl"] {
        desk.write(&format!("fuzz/artifacts/parse/crash-1{ending}"), "a");
    }
    std::fs::create_dir_all(desk.file("src/deep")).unwrap();
    for below in [".", "fuzz", "src/deep"] {
        let said = said(&desk, "list --json", |command| {
            command.current_dir(desk.file(below));
        });
        let listed = said.exits(0).json();
        assert_eq!(listed["targets"][0]["name"], "parse", "{listed}");
        assert_eq!(listed["targets"][0]["corpus"], 1, "{listed}");
        assert_eq!(listed["targets"][0]["artifacts"], 1, "{listed}");
        assert!(listed["targets"][0]["groups"].is_null(), "{listed}");
    }
}

#[test]
fn a_machine_without_cargo_fuzz_or_a_nightly_toolchain_is_told_how_to_get_them() {
    let desk = Desk::new();
    project(&desk);
    std::fs::create_dir(desk.file("bin")).unwrap();
    let cargo = std::env::var_os("CARGO").unwrap();
    let cargo = cargo.to_string_lossy();
    // A cargo that knows of no further commands, and a compiler of this version.
    desk.script(
        "bin/cargo",
        &format!("[ \"$1\" != fuzz ] || exit 101; exec {cargo} \"$@\""),
    );
    let path = format!("{}:/usr/bin:/bin", desk.file("bin").display());
    let with = |version: &str| {
        desk.script(
            "bin/rustc",
            &format!("[ -z \"$RUSTUP_TOOLCHAIN\" ] && echo 'rustc {version}'"),
        );
        said(&desk, "run parse", |command| {
            command.env("PATH", &path);
            command
                .env_remove("RUSTUP_TOOLCHAIN")
                .env_remove("RUSTC")
                .env_remove("RUSTC_BOOTSTRAP");
        })
        .exits(3)
    };
    let told = with("1.95.0 (59807616e 2026-04-14)");
    assert!(
        told.err.contains("rustup toolchain install nightly"),
        "{told:?}"
    );
    assert!(told.err.contains("--sanitizer none"), "{told:?}");
    let told = with("1.97.0-nightly (59807616e 2026-04-14)");
    assert!(
        told.err
            .contains("hint: install it: cargo install cargo-fuzz"),
        "{told:?}"
    );
}

#[test]
fn a_project_is_not_made_where_there_is_one() {
    let desk = Desk::new();
    project(&desk);
    let said = call(&desk, "init").exits(2);
    assert!(said.err.contains("cargo ddfuzz run"), "{said:?}");
}

#[test]
fn settings_of_the_project_hold_and_its_target_stays_the_one_that_is_named() {
    let desk = Desk::new();
    project(&desk);
    desk.write(
        "ddfuzz.toml",
        "[common]\ntarget = \"ul\"\n[run]\ntime = \"3s\"\nengine = \"libafl\"\n",
    );
    let said = call(&desk, "run other").exits(2);
    assert!(said.err.contains("engine"), "{said:?}");
    desk.write(
        "ddfuzz.toml",
        "[common]\ntarget = \"ul\"\n[run]\ntime = \"3s\"\n",
    );
    let said = call(&desk, "run other -v").exits(2);
    assert!(said.err.contains("--time=3s"), "{said:?}");
    assert!(
        said.err.contains("there is no fuzz target other"),
        "{said:?}"
    );
}

#[test]
fn a_build_ends_with_the_call_that_is_stopped() {
    let desk = Desk::new();
    project(&desk);
    std::fs::create_dir(desk.file("bin")).unwrap();
    let cargo = std::env::var_os("CARGO").unwrap();
    let cargo = cargo.to_string_lossy();
    // A build that takes long.
    let started = desk.file("started");
    desk.script(
        "bin/cargo",
        &format!(
            "[ \"$1\" = fuzz ] || exec {cargo} \"$@\"; case $2 in build) >{}; sleep 300;; esac",
            started.display()
        ),
    );
    desk.script(
        "bin/rustc",
        "echo 'rustc 1.97.0-nightly (59807616e 2026-04-14)'",
    );
    let mut command = desk.command(env!("CARGO_BIN_EXE_cargo-ddfuzz"));
    command
        .args(["ddfuzz", "run", "parse"])
        .env(
            "PATH",
            format!("{}:/usr/bin:/bin", desk.file("bin").display()),
        )
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("RUSTC");
    let mut call = command.spawn().unwrap();
    while !started.exists() && call.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let id = Pid::from_raw(call.id() as i32);
    kill(id, Signal::SIGTERM).unwrap();
    assert_eq!(call.wait().unwrap().code(), Some(130));
    desk.is_left_clean();
}
