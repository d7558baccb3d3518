//! `ddfuzz triage` on directories, whoever made them and whatever lies in them.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::ddfuzz::Desk;

const SHA1: &str = "da39a3ee5e6b4b0d3255bfef95601890afd80709";

/// Puts a file into directories below the desk.
fn put(desk: &Desk, file: &str, text: &str) {
    let path = desk.file(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Everything below a directory that reading must not change.
fn facts(root: &Path) -> Vec<(PathBuf, u32, i64, i64, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        let facts = path.symlink_metadata().unwrap();
        let bytes = match facts.is_file() {
            true => std::fs::read(&path).unwrap(),
            false => Vec::new(),
        };
        if facts.is_dir() {
            all.extend(self::facts(&path));
        }
        all.push((
            path,
            facts.mode(),
            facts.mtime_nsec(),
            facts.ctime_nsec(),
            bytes,
        ));
    }
    all.sort();
    all
}

#[test]
fn crashes_of_all_fuzzers_fall_into_the_same_groups() {
    let desk = Desk::new();
    put(&desk, "afl/default/fuzzer_stats", "");
    put(&desk, "afl/default/crashes/README.txt", "t");
    put(
        &desk,
        "afl/default/crashes/id:000000,sig:06,src:000000",
        "a t",
    );
    put(&desk, "afl/default/queue/id:000000,orig:t", "t");
    let hongg = "hongg/SIGSEGV.PC.1.STACK.2.CODE.1.ADDR.0x0.INSTR.mov.fuzz";
    put(&desk, hongg, "t t");
    put(&desk, "hongg/HONGGFUZZ.REPORT.TXT", "t");
    put(&desk, &format!("artifacts/ul/crash-{SHA1}"), "tttt");
    put(&desk, &format!("artifacts/ul/slow-unit-{SHA1}"), "x");
    put(&desk, "plain/t", "t");
    let said = desk
        .call("triage afl hongg artifacts plain -v --json --target crtplot")
        .exits(1);
    let result = said.json();
    assert_eq!(result["inputs"].as_array().unwrap().len(), 5);
    assert_eq!(result["groups"].as_array().unwrap().len(), 1);
    let group = &result["groups"][0];
    assert_eq!((&group["count"], &group["size"]), (&4.into(), &1.into()));
    assert_eq!(
        group["representative"],
        desk.file("plain/t").to_str().unwrap()
    );
    for line in [
        "afl/default/crashes: AFL++, 1 input, 1 skipped",
        "README.txt: not named like a crash file of AFL++",
        "queue: neither crashes nor hangs",
        "hongg: honggfuzz, 1 input, 1 skipped",
        "ul: libFuzzer, 2 inputs",
        "plain: files, 1 input",
        "named SIGABRT, ended SIGSEGV",
    ] {
        assert!(said.err.contains(line), "{line}: {}", said.err);
    }
    desk.is_left_clean();
}

#[test]
fn an_output_directory_of_ours_is_triaged_by_its_inputs() {
    let desk = Desk::new();
    let first = desk
        .call("run --json --target crtplot --runs 60 --max-len 1000 --seed 1 -o out")
        .exits(1)
        .json();
    let result = desk
        .call("triage out --json --target crtplot")
        .exits(1)
        .json();
    assert_eq!(result["groups"][0]["major"], first["groups"][0]["major"]);
    let inputs = result["inputs"].as_array().unwrap();
    let is_original =
        |input: &serde_json::Value| input["file"].as_str().unwrap().ends_with("/original");
    assert!(inputs.iter().all(is_original));
}

#[test]
fn odd_entries_have_a_row_each_and_nobody_waits_for_them() {
    let desk = Desk::new();
    std::fs::create_dir(desk.file("odd")).unwrap();
    let made = desk.command("mkfifo").arg("odd/fifo").status().unwrap();
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(desk.file("odd/socket")).unwrap();
    symlink(".", desk.file("odd/round")).unwrap();
    symlink("nowhere", desk.file("odd/dangling")).unwrap();
    symlink("self", desk.file("odd/self")).unwrap();
    symlink("empty", desk.file("odd/to-empty")).unwrap();
    put(&desk, "odd/empty", "");
    put(&desk, "odd/new\nline", "t");
    put(&desk, "odd/long", "0123456789 t");
    let undecodable = std::ffi::OsStr::from_bytes(b"odd/\xff\xfe");
    std::fs::write(desk.path().join(undecodable), "tt").unwrap();
    let words = "triage odd --json --max-len 10 --target crtplot";
    let said = desk.call(words).exits(1);
    let result = said.json();
    let inputs = result["inputs"].as_array().unwrap();
    let row = |name: &str| {
        let ends = |input: &&serde_json::Value| {
            (input["file"].as_str()).is_some_and(|file| file.ends_with(name))
        };
        inputs.iter().find(ends).unwrap_or_else(|| panic!("{name}"))
    };
    assert_eq!(inputs.len(), 9);
    assert_eq!(row("fifo")["error"], "it is a fifo, not a file");
    assert_eq!(row("socket")["error"], "it is a socket, not a file");
    assert_eq!(
        row("dangling")["error"],
        "it is a link that leads nowhere, not a file"
    );
    assert!(row("self")["error"].is_string());
    assert_eq!(row("long")["error"], "it is larger than 10 bytes");
    assert_eq!(row("odd/empty")["class"], serde_json::Value::Null);
    assert_eq!(row("to-empty")["tries"], 3);
    assert_eq!(row("new\nline")["class"], "segv");
    let given_as_bytes = |input: &&serde_json::Value| input["file"]["base64"].is_string();
    assert_eq!(inputs.iter().find(given_as_bytes).unwrap()["class"], "segv");
    assert_eq!(result["unread"], 5);
    assert!(said.err.contains("--max-len allows more"), "{}", said.err);
    assert!(said.err.contains("new\\nline") || !said.err.contains("new\nline"));
    desk.is_left_clean();
}

#[test]
fn that_nothing_was_found_is_not_said_of_files_that_were_not_read() {
    let desk = Desk::new();
    put(&desk, "in/healthy", "x");
    put(&desk, "in/long", "0123456789 t");
    desk.call("triage in --max-len 10 --target crtplot")
        .exits(2);
    desk.call("triage in/healthy --target crtplot").exits(0);
    std::fs::create_dir(desk.file("none")).unwrap();
    let said = desk.call("triage none --target crtplot").exits(0);
    assert!(said.out.contains("0 files"), "{}", said.out);
}

#[test]
fn what_is_given_is_only_read() {
    let desk = Desk::new();
    put(&desk, "in/below/one", "a t");
    put(&desk, "in/two", "x");
    for directory in ["in/below", "in"] {
        let mode = std::fs::Permissions::from_mode(0o555);
        std::fs::set_permissions(desk.file(directory), mode).unwrap();
    }
    let before = facts(&desk.file("in"));
    desk.call("triage in -o out --target crtplot").exits(1);
    desk.call("triage in -o out --resume --target crtplot")
        .exits(1);
    desk.call("triage in --against out --target crtplot")
        .exits(4);
    assert_eq!(facts(&desk.file("in")), before);
    for directory in ["in", "in/below"] {
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(desk.file(directory), mode).unwrap();
    }
}

#[test]
fn equal_contents_are_run_once_and_counted_each() {
    let desk = Desk::new();
    for index in 0..20 {
        put(
            &desk,
            &format!("in/{index:02}"),
            if index % 2 == 0 { "n" } else { "m" },
        );
    }
    let program = "cat >>$DESK/tmp/runs; exit 0";
    let words = ["--", "sh", "-c", program].map(std::ffi::OsStr::new);
    let result = desk
        .call_with("triage in --json --jobs 4", &words)
        .exits(0)
        .json();
    assert_eq!(
        (&result["contents"], &result["healthy"]),
        (&2.into(), &20.into())
    );
    // Three tries of either, and one without a tracer; a start without input before them is no run
    // of an input. Where nothing crashes, the first input is run once more alone.
    let mut runs = desk.read("tmp/runs");
    runs.sort_unstable();
    assert_eq!(String::from_utf8(runs).unwrap(), "mmmmnnnnn");
}

#[test]
fn a_hang_is_a_group_of_its_own_kind() {
    let desk = Desk::new();
    put(&desk, "in/hang", "h");
    put(&desk, "in/healthy", "x");
    let program = "x=$(cat); while [ \"$x\" = h ]; do :; done";
    let words = ["--", "sh", "-c", program].map(std::ffi::OsStr::new);
    let call = "triage in --json --timeout 50ms -o out";
    let result = desk.call_with(call, &words).exits(1).json();
    let group = &result["groups"][0];
    assert_eq!(
        (&group["kind"], &group["class"]),
        (&"hang".into(), &"hang".into())
    );
    assert_eq!(result["inputs"][0]["ended"], "timeout");
    assert!(desk.file("out/hangs").is_dir() && !desk.file("out/crashes").exists());
}

#[test]
fn the_output_directory_is_no_input_of_its_own() {
    let desk = Desk::new();
    put(&desk, "in/one", "a t");
    for _ in 0..2 {
        let words = "triage in --json -o in/out --resume --target crtplot";
        let result = desk.call(words).exits(1).json();
        assert_eq!(result["inputs"].as_array().unwrap().len(), 1);
    }
    let error = desk.call("triage in/out --json -o in/out --target crtplot");
    let error = error.exits(2).json();
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("is in the output directory"), "{message}");
}

#[test]
fn a_crash_that_comes_once_and_not_again_is_flaky_and_not_lost() {
    let desk = Desk::new();
    put(&desk, "in/1", "k");
    put(&desk, "in/2", "f");
    let program = "x=$(cat); [ \"$x\" = k ] && kill -ABRT $$; \
                   if [ \"$x\" = f ] && [ ! -e $DESK/tmp/f ]; then : >$DESK/tmp/f; kill -SEGV $$; fi; \
                   exit 0";
    let words = ["--", "sh", "-c", program].map(std::ffi::OsStr::new);
    let call = "triage in --json --jobs 1 --exec command -o out";
    let result = desk.call_with(call, &words).exits(1).json();
    let flaky = &result["inputs"][1];
    assert_eq!(
        (&flaky["class"], &flaky["hits"]),
        (&"segv".into(), &1.into())
    );
    assert_eq!((&flaky["tries"], &result["flaky"]), (&4.into(), &1.into()));
    assert!(desk.file("out/flaky").is_dir() && desk.file("out/crashes").is_dir());
}

/// The groups of a triage: kind, class, number of inputs and the file name of the representative.
fn groups_of(result: &serde_json::Value) -> Vec<String> {
    let groups = result["groups"].as_array().unwrap().iter();
    let mut groups: Vec<String> = groups
        .map(|group| {
            let file = Path::new(group["representative"].as_str().unwrap());
            let name = file.file_name().unwrap().to_str().unwrap().to_owned();
            let text = |field: &str| group[field].as_str().unwrap().to_owned();
            let (kind, class) = (text("kind"), text("class"));
            format!("{kind} {class} {} {name}", group["count"])
        })
        .collect();
    groups.sort();
    groups
}

#[test]
fn what_an_input_shows_when_it_is_examined_again_is_stored_whatever_it_showed_before() {
    for other in ["ABRT", "FPE"] {
        let desk = Desk::new();
        put(&desk, "in/1", "unchanging");
        put(&desk, "in/2", "turns");
        put(&desk, "in/3", "turned");
        // The first run of an input that turns ends otherwise than all later ones.
        let program = format!(
            "x=$(cat); s=SEGV; if [ $x = unchanging ]; then s={other}; \
             elif [ ! -e $DESK/tmp/$x ]; then : >$DESK/tmp/$x; s=ABRT; fi; kill -$s $$"
        );
        let words = ["--", "sh", "-c", &program].map(std::ffi::OsStr::new);
        let call = "triage in --json --exec command -o out --jobs";
        let expected = match other {
            "ABRT" => vec!["crash abrt 1 1", "crash segv 2 2"],
            _ => vec!["crash fpe 1 1", "crash segv 2 2", "flaky abrt 2 2"],
        };
        let result = desk.call_with(&format!("{call} 1"), &words).exits(1).json();
        assert_eq!(groups_of(&result), expected, "{result}");
        let stored = |kind: &str| std::fs::read_dir(desk.file(kind)).map_or(0, Iterator::count);
        let flaky = usize::from(other != "ABRT");
        assert_eq!((stored("out/crashes"), stored("out/flaky")), (2, flaky));
        let call = format!("{call} 2 --resume");
        let resumed = desk.call_with(&call, &words).exits(1).json();
        let groups = groups_of(&resumed);
        assert_eq!(groups, expected[..2], "{resumed}");
        assert_eq!((stored("out/crashes"), stored("out/flaky")), (2, flaky));
    }
}

#[test]
fn a_crash_in_every_second_run_is_filed_as_flaky_with_its_rate() {
    let desk = Desk::new();
    put(&desk, "in/1", "every second");
    put(&desk, "in/2", "always");
    let program = "x=$(cat); [ \"$x\" = always ] && kill -ABRT $$; \
                   if [ -e $DESK/tmp/odd ]; then rm $DESK/tmp/odd; exit 0; fi; \
                   : >$DESK/tmp/odd; kill -SEGV $$";
    let words = ["--", "sh", "-c", program].map(std::ffi::OsStr::new);
    let call = "triage in --json --jobs 1 --exec command -o out";
    let result = desk.call_with(call, &words).exits(1).json();
    let inputs = result["inputs"].as_array().unwrap().iter();
    let rates = inputs.map(|input| (input["hits"].as_u64(), input["tries"].as_u64()));
    let rates: Vec<_> = rates.collect();
    assert_eq!(rates, [(Some(1), Some(3)), (Some(3), Some(3))]);
    assert_eq!(result["flaky"], 1);
    let filed = |kind: &str| std::fs::read_dir(desk.file(kind)).unwrap().count();
    assert_eq!((filed("out/flaky"), filed("out/crashes")), (1, 1));
}

#[test]
fn results_and_logs_of_searches_are_no_inputs() {
    let desk = Desk::new();
    std::fs::create_dir(desk.file("crashes")).unwrap();
    let name = "crashes/id:000000,sig:11,src:000000,op:havoc";
    desk.write(name, "xxx a t xxx");
    desk.call(&format!("min {name} --target crtplot")).exits(0);
    assert!(desk.file(&format!("{name}.min.log.jsonl")).exists());
    let result = desk
        .call("triage crashes --target crtplot --json")
        .exits(1)
        .json();
    assert_eq!(result["inputs"].as_array().unwrap().len(), 1, "{result}");
}

#[test]
fn an_input_that_kills_what_has_started_its_run_keeps_no_other_from_being_examined() {
    let desk = Desk::new();
    desk.script(
        "program",
        "read x; case $x in die) kill -ABRT $$;; both) kill -KILL $PPID;; esac",
    );
    put(&desk, "in/1", "both");
    put(&desk, "in/2", "die");
    let words = "triage in --jobs 1 --exec command -o out --json -- ./program";
    let result = desk.call(words).exits(1).json();
    let class = |at: usize| result["inputs"][at]["class"].as_str();
    assert_eq!((class(0), class(1)), (None, Some("abrt")), "{result}");
    assert_eq!(result["groups"].as_array().unwrap().len(), 1, "{result}");
    desk.is_left_clean();
}
