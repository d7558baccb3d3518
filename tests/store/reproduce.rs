//! The reproducer script, run for real.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ddfuzz::exec::{Limits, Program, Sandbox, Target};
use ddfuzz::files::atomic;
use ddfuzz::store::{EntryId, Kind, Store, StoreError};
use tempfile::TempDir;

use crate::compiled::output;
use crate::needs;
use crate::sample::{by_run, campaign, crash};

pub struct Fixture {
    root: TempDir,
    store: Store,
    id: EntryId,
}

pub fn filed(kind: Kind) -> Fixture {
    filed_as(kind, "segv")
}

pub fn filed_as(kind: Kind, class: &str) -> Fixture {
    let mut crash = crash("a", "b");
    crash.class.0 = class.to_owned();
    let root = tempfile::tempdir().unwrap();
    // A hostile name for the output directory itself.
    let out = root.path().join("o'ut $(x) \"dir\"");
    let mut store = Store::create_or_resume(&out, campaign("c1")).unwrap();
    let id = store
        .file(kind, &by_run(crash, 0), b"original input")
        .unwrap()
        .id;
    Fixture { root, store, id }
}

impl Fixture {
    /// With the script, which is gone with it.
    pub fn script_kept(self, target: &Target) -> (Fixture, PathBuf) {
        let script = self.script(target);
        (self, script)
    }

    pub fn minimize(&mut self, input: &[u8]) {
        self.store.write_minimized(&self.id, input).unwrap();
    }

    pub fn script(&self, target: &Target) -> PathBuf {
        self.store.write_reproduce(&self.id, target).unwrap()
    }
}

pub fn sh(script: &str) -> Target {
    Target {
        args: vec!["-c".into(), script.into()],
        ..Target::new(Program::Path("/bin/sh".into()))
    }
}

/// Runs a script that was just written.
pub fn run(script: &Path) -> Output {
    output(Command::new(script).current_dir("/"))
}

#[test]
fn the_input_as_found_is_fed_on_stdin_until_there_is_a_reproducer() {
    let mut fixture = filed(Kind::Crash);
    let script = fixture.script(&Target::new(Program::Path("/bin/cat".into())));
    assert_eq!(run(&script).stdout, b"original input");
    fixture
        .store
        .write_minimized(&fixture.id, b"min\0\n")
        .unwrap();
    let output = run(&script);
    assert_eq!(output.stdout, b"min\0\n");
    assert_eq!(output.status.code(), Some(0));
    fixture.store.write_minimized(&fixture.id, b"").unwrap();
    assert_eq!(run(&script).stdout, b"", "an empty reproducer is one");
}

#[test]
fn the_script_works_from_any_directory_and_by_any_shell() {
    let fixture = filed(Kind::Crash);
    let script = fixture.script(&Target::new(Program::Path("/bin/cat".into())));
    let folder = script.parent().unwrap();
    let by = |command: &mut Command| output(command).stdout;
    assert_eq!(
        by(Command::new("./reproduce.sh").current_dir(folder)),
        b"original input"
    );
    assert_eq!(
        by(Command::new("sh").arg("reproduce.sh").current_dir(folder)),
        b"original input"
    );
    let relative = Path::new(folder.file_name().unwrap()).join("reproduce.sh");
    let above = folder.parent().unwrap();
    assert_eq!(
        by(Command::new(&relative).current_dir(above)),
        b"original input"
    );
    // A hostile CDPATH prints where it went.
    let mut command = Command::new("sh");
    command
        .arg(&relative)
        .current_dir(above)
        .env("CDPATH", above);
    assert_eq!(by(&mut command), b"original input");
    if let Some(bash) = needs::program("bash") {
        assert_eq!(by(Command::new(bash).arg(&script)), b"original input");
    }
}

#[test]
fn the_input_stands_in_the_place_of_its_mark_and_stdin_is_empty() {
    let fixture = filed(Kind::Crash);
    let mut target = sh("cat \"$1\"; cat; echo \"|$2|$3\"");
    target
        .args
        .extend(["sh".into(), "@@".into(), "--in=@@,@@;".into(), "@".into()]);
    let text = String::from_utf8(run(&fixture.script(&target)).stdout).unwrap();
    let (input, rest) = text.split_once('|').unwrap();
    assert_eq!(input, "original input");
    let path = rest
        .strip_prefix("--in=")
        .unwrap()
        .split(',')
        .next()
        .unwrap();
    assert_eq!(rest, format!("--in={path},{path};|@\n"));
    assert!(!Path::new(path).exists(), "the copy is gone afterwards");
}

#[test]
fn hostile_arguments_arrive_as_they_are() {
    let fixture = filed(Kind::Crash);
    let hostile: Vec<OsString> = [
        "",
        " ",
        "'",
        "''",
        "a'b",
        "\"",
        "$HOME",
        "$(id)",
        "`id`",
        "\\",
        "\\n",
        "a\nb",
        "\n",
        "*",
        "~",
        "-e",
        "--",
        ";",
        "&",
        "|",
        ">x",
        "#",
        "!",
        "{a,b}",
        "ü",
        "'; touch pwned; '",
        "%s",
    ]
    .iter()
    .map(OsString::from)
    .chain([OsString::from_vec(vec![0xff, 0x01, 0x80])])
    .collect();
    let mut target = sh("printf '%s\\0' \"$@\"");
    target.args.push("sh".into());
    target.args.extend(hostile.clone());
    let expected: Vec<u8> = hostile
        .iter()
        .flat_map(|arg| [arg.as_bytes(), b"\0"].concat())
        .collect();
    assert_eq!(run(&fixture.script(&target)).stdout, expected);
}

#[test]
fn variables_are_set_also_where_no_shell_could() {
    let fixture = filed(Kind::Crash);
    let env: Vec<(OsString, OsString)> = vec![
        ("PLAIN".into(), "a b'c\n$d".into()),
        ("odd.name-1".into(), "x=y".into()),
        ("-i".into(), "dash".into()),
        ("EMPTY".into(), "".into()),
    ];
    let target = Target {
        env,
        ..Target::new(Program::Path("/usr/bin/env".into()))
    };
    let text = String::from_utf8(run(&fixture.script(&target)).stdout).unwrap();
    for line in [
        "PLAIN=a b'c\n$d\n",
        "\nodd.name-1=x=y\n",
        "\n-i=dash\n",
        "\nEMPTY=\n",
    ] {
        assert!(format!("\n{text}").contains(line), "{line:?} in {text:?}");
    }
}

#[test]
fn a_locale_is_set_where_there_is_none() {
    let fixture = filed(Kind::Crash);
    let script = fixture.script(&sh("echo \"$LANG\""));
    let mut command = Command::new(&script);
    command
        .env_remove("LANG")
        .env_remove("LC_ALL")
        .env_remove("LC_CTYPE");
    assert_eq!(output(&mut command).stdout, b"C.UTF-8\n");
    let mut command = Command::new(&script);
    command
        .env_remove("LC_ALL")
        .env_remove("LC_CTYPE")
        .env("LANG", "C");
    assert_eq!(output(&mut command).stdout, b"C\n");
}

#[test]
fn a_program_may_have_any_name() {
    let fixture = filed(Kind::Crash);
    for name in ["a=b", "it's", "$x y", "-n"] {
        let program = fixture.root.path().join(name);
        atomic::write_program(&program, b"#!/bin/sh\necho \"$K $1\"; cat\n").unwrap();
        let target = Target {
            args: vec!["arg".into()],
            env: vec![("K".into(), "v".into())],
            ..Target::new(Program::Path(program))
        };
        assert_eq!(
            run(&fixture.script(&target)).stdout,
            b"v arg\noriginal input",
            "{name}"
        );
    }
}

#[test]
fn the_scripts_status_is_the_programs() {
    let fixture = filed(Kind::Crash);
    for (script, status) in [("exit 0", 0), ("exit 77", 77), ("kill -SEGV $$", 139)] {
        let output = run(&fixture.script(&sh(script)));
        assert_eq!(output.status.code(), Some(status));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            said.contains(&format!("ended with status {status}")),
            "{said}"
        );
    }
}

#[test]
fn the_program_runs_in_an_empty_scratch_directory_that_is_removed() {
    let fixture = filed(Kind::Crash);
    let output = run(&fixture.script(&sh("ls -A; pwd; echo x > file")));
    let text = String::from_utf8(output.stdout).unwrap();
    let folder = Path::new(text.trim_end());
    assert!(
        folder.is_absolute(),
        "nothing is listed before the path: {text}"
    );
    assert!(!folder.exists());
}

#[test]
fn the_program_runs_in_the_targets_directory_where_it_has_one() {
    let fixture = filed(Kind::Crash);
    let cwd = fixture.root.path().join("-c'w d");
    fs::create_dir(&cwd).unwrap();
    let target = Target {
        cwd: Some(cwd.clone()),
        ..sh("pwd; cat")
    };
    let expected = format!("{}\noriginal input", cwd.canonicalize().unwrap().display());
    assert_eq!(run(&fixture.script(&target)).stdout, expected.as_bytes());
}

#[test]
fn a_program_that_overwrites_its_input_file_spoils_a_copy() {
    let fixture = filed(Kind::Crash);
    let mut target = sh("echo spoiled > \"$1\"");
    target.args.extend(["sh".into(), "@@".into()]);
    let script = fixture.script(&target);
    run(&script);
    assert_eq!(
        fs::read(script.with_file_name("original")).unwrap(),
        b"original input"
    );
}

#[test]
fn a_bundled_program_is_run_from_the_output_directory_wherever_that_is_moved() {
    let mut fixture = filed(Kind::Crash);
    let target = Target::new(Program::Bundled("ul".to_owned()));
    let error = fixture
        .store
        .write_reproduce(&fixture.id, &target)
        .unwrap_err();
    assert!(matches!(error, StoreError::NotInstalled { .. }));
    let program = b"#!/bin/sh\necho bundled; cat\n";
    let path = fixture.store.install_program("ul", program).unwrap();
    assert!(path.starts_with(fixture.store.reader().root().join("bin")));
    assert_eq!(path.file_name().unwrap(), "ul");
    let script = fixture.script(&target);
    // A later version beside it changes nothing for the older script.
    fixture
        .store
        .install_program("ul", b"#!/bin/sh\necho fixed\n")
        .unwrap();
    assert_eq!(run(&script).stdout, b"bundled\noriginal input");
    let root = fixture.store.reader().root().to_owned();
    let moved = fixture.root.path().join("moved");
    let script = moved.join(script.strip_prefix(&root).unwrap());
    fs::rename(&root, &moved).unwrap();
    assert_eq!(run(&script).stdout, b"bundled\noriginal input");
}

#[test]
fn a_program_is_installed_under_a_plain_name_only() {
    let mut fixture = filed(Kind::Crash);
    for name in ["", ".", "..", "/", "a/b", "../x", "/x", "a/", "./a"] {
        assert!(fixture.store.install_program(name, b"x").is_err(), "{name}");
    }
    assert!(!fixture.store.reader().root().join("bin").exists());
}

#[test]
fn a_hang_is_ended_by_its_limit() {
    let fixture = filed(Kind::Hang);
    let limits = Limits::with_cpu(std::time::Duration::from_millis(50));
    let target = Target {
        limits,
        ..sh("while :; do :; done")
    };
    assert_eq!(
        run(&fixture.script(&target)).status.code(),
        Some(128 + libc::SIGXCPU)
    );
}

#[test]
fn memory_that_runs_away_is_ended_by_its_limit() {
    let fixture = filed(Kind::Oom);
    let target = sh("ulimit -d");
    let kibibytes = format!("{}\n", target.limits.memory / 1024);
    assert_eq!(run(&fixture.script(&target)).stdout, kibibytes.as_bytes());
}

#[test]
fn an_entry_folder_without_inputs_says_so() {
    let fixture = filed(Kind::Crash);
    let script = fixture.script(&Target::new(Program::Path("/bin/cat".into())));
    fs::remove_file(script.with_file_name("original")).unwrap();
    let output = run(&script);
    assert_eq!(output.status.code(), Some(70));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("the input is not beside this script")
    );
}

#[test]
fn the_home_of_a_program_from_a_sandbox_is_an_empty_directory_there_as_here() {
    let fixture = filed(Kind::Crash);
    let mut target = Target {
        env_only: true,
        sandbox: Sandbox::On,
        ..sh("test \"$HOME\" = \"$PWD\" && test -z \"$(/bin/ls -A \"$HOME\")\"; echo $?")
    };
    assert_eq!(run(&fixture.script(&target)).stdout, b"0\n");
    target.env_only = false;
    assert_eq!(run(&fixture.script(&target)).stdout, b"0\n");
    target.env = vec![("HOME".into(), "/elsewhere".into())];
    target.args = vec!["-c".into(), "echo $HOME".into()];
    assert_eq!(run(&fixture.script(&target)).stdout, b"/elsewhere\n");
}
