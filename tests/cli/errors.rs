//! Bad input: a clear error with its exit code, and nothing lost.

use serde_json::Value;

use crate::crashes;
use crate::ddfuzz::{Desk, keys};

/// The error of a call, as scripts see it; people see the same on stderr.
#[track_caller]
fn error(desk: &Desk, words: &str, code: i32) -> Value {
    let said = desk.call(&format!("--json {words}")).exits(code);
    let report = said.json();
    assert_eq!(keys(&report), ["error"]);
    let error = report["error"].clone();
    assert_eq!(keys(&error), ["hint", "kind", "message", "path"]);
    let message = error["message"].as_str().unwrap();
    assert!(said.err.contains(message), "{said:?}");
    if let Some(path) = error["path"].as_str() {
        assert!(path.starts_with('/'), "an absolute path: {path}");
    }
    let plain = desk.call(words).exits(code);
    assert_eq!(plain.out, "");
    assert!(plain.err.starts_with("error: "), "{plain:?}");
    assert!(!plain.err.contains("panicked"));
    error
}

#[test]
fn a_program_that_cannot_be_run_is_named() {
    let desk = Desk::new();
    desk.write("crash", "x");
    desk.write("text", "no program");
    let missing = ["/no/such/program", "no-such-program", "./no-such-program"];
    for command in ["run -o out --runs 1", "min crash", "triage crash"] {
        for program in missing {
            let error = error(&desk, &format!("{command} -- {program}"), 3);
            assert_eq!(error["kind"], "program-missing");
            assert!(error["message"].as_str().unwrap().contains(program));
            let is_named = program.contains('/');
            assert_eq!(error["path"].is_null(), !is_named, "{error}");
        }
        for program in ["./text", "/"] {
            let error = error(&desk, &format!("{command} -- {program}"), 3);
            assert_eq!(error["kind"], "program-not-executable");
        }
    }
    assert!(!desk.file("out").exists());
    assert!(!desk.file("crash.min").exists());
}

#[test]
fn a_program_that_the_system_refuses_is_no_healthy_program() {
    let desk = Desk::new();
    desk.write("crash", "x");
    let refused = [
        ("elf", "\x7fELF of no kind", "Exec format error"),
        (
            "script",
            "#!/no/such/interpreter\n",
            "/no/such/interpreter\", does not exist",
        ),
        ("windows", "#!/bin/sh\r\n", "carriage return"),
        ("relative", "#!./tool\n", "where the program runs"),
        ("bare", "echo it has no first line\n", "no #! line"),
        ("nothing", "", "empty"),
    ];
    for (name, text, why) in refused {
        let program = desk.write(name, text);
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(program, executable).unwrap();
        for command in ["run -o out --runs 1", "min crash", "triage crash"] {
            let error = error(&desk, &format!("{command} -- ./{name}"), 3);
            assert_eq!(error["kind"], "program-not-executable");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains(why), "{message}");
        }
    }
    assert!(!desk.file("out").exists());
}

#[test]
fn a_program_without_one_of_its_libraries_is_not_run() {
    let desk = Desk::new();
    desk.write("crash", "x");
    desk.write("part.c", "int part(void) { return 0; }\n");
    desk.write(
        "main.c",
        "int part(void);\nint main(void) { return part(); }\n",
    );
    for words in [
        "-shared -fPIC -o libpart.so part.c",
        "-o uses main.c -L. -lpart",
    ] {
        let compiled = desk.command("cc").args(words.split(' ')).status();
        assert!(compiled.expect("the tests need a C compiler").success());
    }
    for command in ["run -o out --runs 1", "min crash", "triage crash"] {
        let error = error(&desk, &format!("{command} -- ./uses"), 3);
        assert_eq!(error["kind"], "program-not-executable");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains("shared libraries: libpart.so"),
            "{message}"
        );
        assert!(error["hint"].as_str().unwrap().contains("LD_LIBRARY_PATH"));
    }
}

#[test]
fn a_program_of_this_directory_needs_its_slash() {
    let desk = Desk::new();
    desk.write("crash", "x");
    desk.write("prog-of-this-directory", "no program");
    let error = error(&desk, "min crash -- prog-of-this-directory", 3);
    assert_eq!(error["kind"], "program-missing");
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.contains("./prog-of-this-directory"), "{hint}");
}

#[test]
fn an_argument_that_is_a_file_only_here_is_warned_of() {
    let desk = Desk::new();
    let file = desk.write("settings", "x");
    let warned = |words: &str| {
        let said = desk.call(words).exits(0);
        said.err.contains("warning: the argument settings")
    };
    assert!(warned("triage settings -- cat settings"));
    assert!(!warned("triage settings --cwd . -- cat settings"));
    assert!(!warned("triage settings -q -- cat settings"));
    let absolute = file.display();
    assert!(!warned(&format!("triage settings -- cat {absolute}")));
}

#[test]
fn a_target_that_runs_as_root_is_warned_of() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let desk = Desk::new();
    desk.write("input", "x");
    std::fs::create_dir(desk.file("home")).unwrap();
    std::fs::copy("/bin/cat", desk.file("home/cat")).unwrap();
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(desk.file("home"), closed).unwrap();
    let home = desk.file("home").display().to_string();
    for words in ["--cwd home -- cat", "-- home/cat"] {
        let said = desk.call(&format!("triage input {words}")).exits(0);
        let warning = format!("runs as root, because the user nobody cannot access {home}, which");
        assert_eq!(said.err.matches(&warning).count(), 1, "{said:?}");
    }
    for words in ["-- cat", "--sandbox -- home/cat"] {
        let said = desk.call(&format!("triage input {words}")).exits(0);
        assert!(!said.err.contains("as root"), "{said:?}");
    }
    let error = error(&desk, "triage input --sandbox --cwd home -- cat", 3);
    assert!(error["message"].as_str().unwrap().contains("--cwd"));
    assert!(
        error["hint"]
            .as_str()
            .unwrap()
            .contains("another directory")
    );
}

#[test]
fn inputs_that_are_no_files_are_wrong_usage() {
    let desk = Desk::new();
    std::fs::create_dir(desk.file("folder")).unwrap();
    for input in ["folder", "missing"] {
        let error = error(&desk, &format!("min {input} --target crtplot"), 2);
        assert!(error["message"].as_str().unwrap().contains(input));
    }
    error(&desk, "triage missing --target crtplot", 2);
}

#[test]
fn inputs_that_do_not_fail_fail_the_baseline() {
    let desk = Desk::new();
    desk.write("empty", "");
    desk.write("healthy", "hello");
    for input in ["empty", "healthy"] {
        let error = error(&desk, &format!("min {input} --target crtplot"), 3);
        assert_eq!(error["kind"], "not-failing");
        assert!(!desk.file(&format!("{input}.min")).exists());
        assert!(!desk.file(&format!("{input}.min.log.jsonl")).exists());
    }
}

#[test]
fn wrong_usage_is_explained() {
    let desk = Desk::new();
    desk.write("crash", "t");
    for words in [
        "run --target no-such-target",
        "run --target crtplot -- cat",
        "run --target crtplot --search no-such-search",
        "run --target crtplot --timeout 0",
        "run --target crtplot --memory 0",
        "run --target crtplot --jobs 0",
        "run --target crtplot --time soon",
        "run --target crtplot --known missing",
        "run --target crtplot --cwd missing",
        "run --target crtplot --env nonsense",
        "run --target crtplot --exec inject --freeze-start",
        "min crash",
        "min",
        "merge",
        "no-such-command",
        "min crash --target crtplot --resume --force",
    ] {
        let error = error(&desk, words, 2);
        let message = error["message"].as_str().unwrap();
        assert!(!message.starts_with("error"), "{message}");
    }
    assert!(!desk.file("ddfuzz-out").exists());
}

#[test]
fn known_groups_must_be_keys() {
    let desk = Desk::new();
    desk.write("known", "# fine\nabcd1234abcd\nno key\n");
    let error = error(&desk, "run --target crtplot --known known -o out", 2);
    assert!(error["message"].as_str().unwrap().contains("line 3"));
}

#[test]
fn output_directories_that_are_not_ours_are_left_alone() {
    let desk = Desk::new();
    desk.write("file", "x");
    std::fs::create_dir(desk.file("foreign")).unwrap();
    desk.write("foreign/thesis", "x");
    for out in ["file", "foreign"] {
        let error = error(&desk, &format!("run --target crtplot --runs 1 -o {out}"), 2);
        assert_eq!(error["kind"], "not-an-output-directory");
    }
    let names = std::fs::read_dir(desk.file("foreign")).unwrap().count();
    assert_eq!(names, 1);
    for words in ["show missing", "show foreign", "merge foreign -o new"] {
        error(&desk, words, 2);
    }
}

#[test]
fn an_output_directory_of_another_version_is_left_alone() {
    let desk = Desk::new();
    desk.call("run --target crtplot --runs 20 --max-len 500 --seed 1 -o out")
        .exits(1);
    let file = String::from_utf8(desk.read("out/ddfuzz.json")).unwrap();
    let newer = file.replacen("\"version\": 1", "\"version\": 99", 1);
    desk.write("out/ddfuzz.json", &newer);
    for words in ["run --target crtplot --runs 1 -o out", "show out"] {
        let error = error(&desk, words, 2);
        assert_eq!(error["kind"], "other-version");
        assert!(error["message"].as_str().unwrap().contains("99"));
    }
    assert_eq!(desk.read("out/ddfuzz.json"), newer.as_bytes());
}

#[test]
fn an_output_directory_in_use_is_left_to_its_writer() {
    let desk = Desk::new();
    let mut writer = desk.start("run --target crtplot --max-len 500 --seed 1 -o out");
    while !desk.file("out/state.json").exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    desk.write("crash", "t");
    for words in [
        "run --target crtplot --runs 1 -o out",
        "run --target crtplot --runs 1 -o out --resume",
        "min crash --target crtplot -o out",
    ] {
        let error = error(&desk, words, 2);
        assert_eq!(error["kind"], "in-use");
        let holder = format!("process {}", writer.id());
        assert!(error["message"].as_str().unwrap().contains(&holder));
    }
    // Reading is free.
    desk.call("show out").exits(0);
    writer.kill().unwrap();
    writer.wait().unwrap();
    desk.is_left_clean();
}

#[test]
fn a_damaged_record_is_named() {
    let desk = Desk::new();
    desk.call("run --target crtplot --runs 20 --max-len 500 --seed 1 -o out")
        .exits(1);
    desk.write("out/state.json", "{\"campaign\":");
    let error = error(&desk, "run --target crtplot --runs 1 -o out --resume", 2);
    assert_eq!(error["kind"], "damaged");
    assert!(error["path"].as_str().unwrap().ends_with("out/state.json"));
}

#[test]
fn a_resumed_campaign_keeps_its_target_and_seed() {
    let desk = Desk::new();
    desk.call("run --target crtplot --runs 20 --max-len 500 --seed 1 -o out")
        .exits(1);
    for words in ["--target ul", "--target crtplot --seed 2"] {
        let error = error(&desk, &format!("run --resume --runs 1 -o out {words}"), 2);
        assert_eq!(error["kind"], "usage");
    }
    // As where it was killed before it had stored how it began.
    std::fs::remove_file(desk.file("out/state.json")).unwrap();
    let said = desk.call("run --resume --runs 1 --max-len 500 -o out");
    assert!(
        said.err.contains("does not record with which seeds"),
        "{said:?}"
    );
}

#[test]
fn a_way_that_does_not_work_says_why() {
    let desk = Desk::new();
    desk.write("crash", crashes::for_ul());
    let error = error(&desk, "run --runs 1 --exec harness -o out -- cat", 3);
    assert_eq!(error["kind"], "way-unfit");
    assert!(error["message"].as_str().unwrap().contains("target_main"));
}

#[test]
fn networks_and_monitors_are_for_campaigns_that_have_workers() {
    let desk = Desk::new();
    for option in [
        "--broker=9",
        "--join 127.0.0.1:9",
        "--statsd 127.0.0.1:9",
        "--prometheus 127.0.0.1:9",
    ] {
        let words = format!("run -o out --runs 1 {option} --target ul");
        let error = error(&desk, &words, 2);
        let name = option.split([' ', '=']).next().unwrap();
        assert!(error["message"].as_str().unwrap().starts_with(name));
        assert!(error["hint"].as_str().unwrap().contains("ddfuzz merge"));
    }
    assert!(!desk.file("out").exists());
}

#[test]
fn a_file_that_does_not_exist_is_told_with_where_it_is_missing() {
    let desk = Desk::new();
    desk.write("there", "x");
    for (words, code) in [
        ("min nope --target ul", 2),
        ("triage nope --target ul", 2),
        ("triage there --known nope --target ul", 2),
        ("log verify nope", 2),
        ("log replay nope", 2),
        ("log show nope", 2),
        ("clean nope -o out --target ul", 2),
        ("diff there nope --target ul", 2),
        ("diff nope there --target ul", 2),
        ("max nope --target ul", 2),
        ("run --runs 1 --seeds nope --target ul", 2),
        ("run --runs 1 --dict nope --target ul", 2),
        ("run --runs 1 --known nope --target ul", 2),
    ] {
        let error = error(&desk, words, code);
        let hint = error["hint"].as_str().unwrap_or_default();
        let expected = format!(
            "there is no nope in {}: check the path",
            desk.path().display()
        );
        assert!(hint.starts_with(&expected), "{words}: {error}");
        assert!(
            error["message"].as_str().unwrap().contains("nope"),
            "{words}: {error}"
        );
    }
    // The first part of a path that is missing is named.
    let error = error(&desk, "min there/no/such --target ul", 2);
    assert_eq!(error["kind"], "file");
    let error = self::error(&desk, "min no/such/file --target ul", 2);
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.starts_with("there is no no in "), "{hint}");
    for words in ["check nope", "show nope", "merge nope -o merged"] {
        let error = self::error(&desk, words, 2);
        assert!(
            error["hint"]
                .as_str()
                .unwrap()
                .starts_with("give the directory"),
            "{error}"
        );
    }
}
