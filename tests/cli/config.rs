//! `ddfuzz.toml`.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::ddfuzz::Desk;
use crate::needs;

const RUN: &str = "[common]\ntarget = \"crtplot\"\n\n[run]\nruns = 32\nmax-len = 500\nseed = 5\n";

fn desk(settings: &str) -> Desk {
    let desk = Desk::new();
    desk.write("ddfuzz.toml", settings);
    desk
}

/// The message of a call that is refused for its settings.
#[track_caller]
fn refused(desk: &Desk, words: &str) -> String {
    let said = desk.call(&format!("{words} --json")).exits(2).json();
    assert_eq!(said["error"]["kind"], "config", "{said}");
    let error = &said["error"];
    assert_ne!(error["hint"], "", "{said}");
    format!(
        "{} | {}",
        error["message"].as_str().unwrap(),
        error["hint"].as_str().unwrap_or("none")
    )
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_file_of_settings_says_what_the_command_line_does_not() {
    let desk = desk(RUN);
    let said = desk.call("run --json -v").exits(1);
    let result = said.json();
    assert_eq!(result["runs"], 32);
    assert!(
        said.err.contains("ddfuzz.toml adds --runs=32"),
        "{}",
        said.err
    );
    let arguments = &result["settings"]["arguments"];
    assert!(
        arguments.as_array().unwrap().contains(&"--runs=32".into()),
        "{result}"
    );
    let record: Value = serde_json::from_slice(&desk.read("ddfuzz-out/ddfuzz.json")).unwrap();
    assert_eq!(record["settings"]["arguments"], *arguments);
    let typed = record["command_line"].as_array().unwrap();
    assert_eq!(typed[1..], ["run", "--json", "-v"]);
    // With the settings left away no target is named.
    let plain = desk.call("run --json --no-config").exits(0).json();
    assert!(plain["targets"].is_array());
}

#[test]
fn a_campaign_by_settings_is_that_of_the_same_words() {
    let desk = desk(RUN);
    let by_file = desk.call("run --json -o one").exits(1).json();
    let words = "run --no-config --json -o two --target crtplot --runs 32 --max-len 500 --seed 5";
    let by_words = desk.call(words).exits(1).json();
    assert_eq!(by_words["settings"], Value::Null);
    for key in ["runs", "new_groups", "exec"] {
        assert_eq!(by_file[key], by_words[key], "{key}");
    }
    assert_eq!(
        by_file["groups"][0]["major"],
        by_words["groups"][0]["major"]
    );
}

#[test]
fn the_command_line_comes_first() {
    let desk = desk(&format!(
        "{RUN}log-inputs = true\nresume = true\nout = \"of-file\"\nsandbox = true\n\
         no-auto-dict = true\n"
    ));
    let words = "--no-resume --log-inputs=false --no-sandbox --no-auto-dict=false";
    let said = desk.call(&format!("run -v --runs 16 {words} -q -o mine -- cat"));
    let said = said.exits(0);
    assert!(
        said.err.contains("adds --max-len=500 --seed=5\n"),
        "{}",
        said.err
    );
    assert!(desk.file("mine").is_dir() && !desk.file("of-file").exists());
    // What takes back a flag that no command has is a wrong option.
    let wrong = desk.call("run --no-such-flag").exits(2);
    assert!(wrong.err.contains("--no-such-flag"), "{}", wrong.err);
    desk.call("show mine --no-resume").exits(2);
}

#[test]
fn options_that_may_be_repeated_replace_those_of_the_file() {
    let text =
        "[common]\ntarget = [\"./show\"]\nenv = [\"A=1\", \"B=2\"]\n[triage]\nresume = false\n";
    let desk = desk(text);
    desk.script("show", "test \"$A$B\" = \"$(cat)\" && kill -SEGV $$");
    desk.write("both", "12");
    desk.write("one", "3");
    desk.call("triage both").exits(1);
    desk.call("triage one").exits(0);
    desk.call("triage one --env A=3").exits(1);
}

#[test]
fn the_nearest_file_counts_and_its_paths_are_relative_to_it() {
    let desk =
        desk("[common]\ntarget = [\"./show\", \"@@\"]\n[run]\nout = \"results\"\nruns = 4\n");
    desk.script("show", "exit 0");
    let inner = desk.file("a/b");
    std::fs::create_dir_all(&inner).unwrap();
    let call = |words: &[&str]| {
        let mut command = desk.command(env!("CARGO_BIN_EXE_ddfuzz"));
        command.current_dir(&inner).args(words).output().unwrap()
    };
    assert_eq!(call(&["run", "-q"]).status.code(), Some(0));
    assert!(desk.file("results/ddfuzz.json").is_file());
    std::fs::write(desk.file("a/ddfuzz.toml"), "[run]\ntarget = \"no-such\"\n").unwrap();
    let nearer = call(&["run", "-q"]);
    assert_eq!(nearer.status.code(), Some(2));
    let named = call(&["run", "-q", "--config", "../../ddfuzz.toml"]);
    assert_eq!(named.status.code(), Some(0), "{named:?}");
}

#[test]
fn a_program_on_the_command_line_stands_in_for_the_target_and_a_test_for_both() {
    let desk = desk("[common]\ntarget = [\"false\"]\nexec = \"command\"\ncrash-exit = 3\n");
    desk.script("test.sh", "grep -q x");
    desk.write("input", "axb");
    desk.call("min input --test ./test.sh -o small -q").exits(0);
    assert_eq!(desk.read("small"), b"x");
    desk.script("three", "grep -q b || exit 0; exit 3");
    desk.call("min input -q --force -o small -- ./three")
        .exits(0);
    assert_eq!(desk.read("small"), b"b");
    let own = "[common]\ntarget = [\"false\"]\n[min]\ntest = \"test.sh\"\n";
    desk.write("ddfuzz.toml", own);
    desk.call("min input -o least -q").exits(0);
    assert_eq!(desk.read("least"), b"x");
}

#[test]
fn what_is_recorded_is_checked_unless_the_commands_own_table_names_another_target() {
    let desk = desk("[common]\ntarget = [\"true\"]\n");
    let words = "run -q --target crtplot --runs 32 --max-len 500 --seed 5 -o out";
    desk.call(words).exits(1);
    let same = desk.call("check out --json").exits(1).json();
    assert_eq!(same["same"], 1);
    desk.write("ddfuzz.toml", "[check]\ntarget = \"crtplot-fixed\"\n");
    let fixed = desk.call("check out --json").exits(0).json();
    assert_eq!(fixed["fixed"], 1);
}

#[test]
fn mistakes_are_told_with_their_line_and_the_nearest_name() {
    for (text, said) in [
        (
            "[run]\n\ntiem = \"9s\"\n",
            "line 3: tiem is not a key of [run] | did you mean time?",
        ),
        ("[rum]\n", "line 1: rum is not a table | did you mean run?"),
        (
            "[common]\nout = \"o\"\n",
            "line 2: out cannot be set for all commands",
        ),
        ("time = \"9s\"\n", "line 1: time is in no table"),
        (
            "[run]\ntime = true\n",
            "line 2: time is a text or a number, not true or false",
        ),
        (
            "[run]\nresume = \"yes\"\n",
            "line 2: resume is true or false, not a text",
        ),
        (
            "[run]\ntime = \"9 parsecs\"\n",
            "write a time with ms, s, m or h",
        ),
        ("[run]\nexec = \"fast\"\n", "possible values"),
        (
            "[log.verify]\nsvg = \"x\"\n",
            "line 2: svg is not a key of [log.verify]",
        ),
        (
            "[run]\nconfig = \"x\"\n",
            "config cannot be set in a settings file",
        ),
        ("[run\n", "line 1: it is not valid TOML"),
        // Also of a command that is not called.
        (
            "[triage]\nleaks = 3\n",
            "line 2: leaks is true or false, not a number",
        ),
    ] {
        let message = refused(&desk(text), "run");
        assert!(message.contains(said), "{text:?}: {message}");
    }
    // What only clap can see is told as settings of the file.
    let desk = desk("[triage]\nresume = true\n");
    let said = desk.call("triage x -- true").exits(2);
    assert!(
        said.err.contains("ddfuzz.toml adds --resume"),
        "{}",
        said.err
    );
    desk.call("run --help").exits(0);
    desk.call("run --config a --no-config").exits(2);
}

#[test]
fn hostile_files_are_refused() {
    let desk = Desk::new();
    desk.call("run --config none.toml").exits(2);
    let path = desk.file("ddfuzz.toml");
    std::fs::create_dir(&path).unwrap();
    assert!(refused(&desk, "run").contains("a directory, not a settings file"));
    std::fs::remove_dir(&path).unwrap();
    desk.write("ddfuzz.toml", b"[run]\n\xff\xfe\x00");
    assert!(refused(&desk, "run").contains("line 2: it is not UTF-8 text"));
    desk.write("ddfuzz.toml", "\0\0\0");
    assert!(refused(&desk, "run").contains("not valid TOML"));
    let large = std::fs::File::create(&path).unwrap();
    large.set_len(1 << 30).unwrap();
    assert!(refused(&desk, "run").contains("larger than"));
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("nowhere", &path).unwrap();
    assert!(refused(&desk, "run").contains("leads nowhere"));
    std::fs::remove_file(&path).unwrap();
    nest(&desk);
}

/// A file of tables in tables neither crashes the reader nor takes long.
#[track_caller]
fn nest(desk: &Desk) {
    desk.write(
        "ddfuzz.toml",
        format!("[run]\nruns = {}", "[".repeat(100_000)),
    );
    assert!(refused(desk, "run").contains("not valid TOML"));
}

#[test]
fn a_file_that_others_may_write_is_refused_with_the_reason() {
    let desk = desk(RUN);
    mode(&desk.file("ddfuzz.toml"), 0o666);
    let message = refused(&desk, "run");
    assert!(message.contains("can be written by everybody"), "{message}");
    assert!(message.contains("--no-config"), "{message}");
    mode(&desk.file("ddfuzz.toml"), 0o644);
    mode(desk.path(), 0o777);
    assert!(refused(&desk, "run").contains("its directory can be written by everybody"));
    // Where only owners may replace files, it is as safe as its own mode.
    mode(desk.path(), 0o1777);
    desk.call("run -q").exits(1);
    mode(desk.path(), 0o755);
    let path = desk.file("ddfuzz.toml");
    if let Err(error) = std::os::unix::fs::chown(&path, Some(65534), None) {
        needs::missing("chown", &error.to_string());
        return;
    }
    assert!(refused(&desk, "run").contains("belongs to the user nobody"));
    std::os::unix::fs::chown(&path, Some(4321), None).unwrap();
    mode(desk.path(), 0o1777);
    let message = refused(&desk, "run");
    assert!(message.contains("can be written by everybody"), "{message}");
}

#[test]
fn the_example_of_the_book_works() {
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src/configuration.md");
    let book = std::fs::read_to_string(book).unwrap();
    let (_, example) = book.split_once("```toml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let desk = desk(example);
    let called = "test \"$1\" = --strict && test \"$TZ$MODE\" = UTCfuzz || exit 9";
    let crash = "case $(head -c 1 \"$2\") in [a-z]) kill -SEGV $$ ;; esac";
    desk.script("parser", &format!("{called}\n{crash}\nexit 0"));
    desk.script("parser-fixed", &format!("{called}\ncat \"$2\""));
    let result = desk.call("run --json").exits(1).json();
    assert_eq!(result["runs"], 500, "{result}");
    assert_eq!(result["groups"][0]["size_after"], 1, "{result}");
    let record: Value = serde_json::from_slice(&desk.read("found/ddfuzz.json")).unwrap();
    assert_eq!(record["seed"], 7);
    let fixed = desk.call("check found --json").exits(0).json();
    assert_eq!(fixed["fixed"], 1, "{fixed}");
    desk.write("input", "xyz");
    let small = desk.call("min input --json").exits(0).json();
    assert_eq!(
        (&small["search"], &small["size_after"]),
        (&"ddmin".into(), &1.into())
    );
    desk.call("log verify input.min.log.jsonl").exits(0);
}
