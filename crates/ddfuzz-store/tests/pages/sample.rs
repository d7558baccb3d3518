//! Output directories to make pages of.

use std::fs;
use std::path::{Path, PathBuf};

use ddfuzz_exec::{Limits, Program, Target, TargetRecord, Way};
use ddfuzz_minimize::log::{Base64, Line, Log, StartLine};
use serde_json::{Value, json};

/// Text that would do harm in a page that did not escape it: markup that runs a script or loads a
/// file, ends of elements, attributes and comments, and controls that reverse text.
pub const HOSTILE: &str = "</pre></td><script>window.harmed=1</script><img src=x onerror=\"window.harmed=2\">\
    '\"--><a href=\"javascript:harmed=3\">\u{202e}fdp.exe\u{2066}\u{1b}[2J\u{0}<svg onload=harmed=4>{{7*7}}";

/// An output directory that is deleted when the value is dropped.
pub struct Sample {
    pub folder: tempfile::TempDir,
    count: u64,
}

/// What a group of a sample is made of.
pub struct Group<'a> {
    pub kind: &'a str,
    pub class: &'a str,
    pub severity: &'a str,
    pub message: &'a str,
    pub function: &'a str,
    pub source: &'a str,
    pub input: &'a [u8],
    /// Name of the utility that crashed, in a study.
    pub utility: Option<&'a str>,
}

impl Group<'_> {
    pub const PLAIN: Group<'static> = Group {
        kind: "crashes",
        class: "segv",
        severity: "high",
        message: "free(): invalid pointer",
        function: "parse_list",
        source: "list.c:4",
        input: b"GET /index.html HTTP/1.0\r\nHost: (((((\r\n\r\n",
        utility: None,
    };
}

impl Sample {
    pub fn new(target: &str, argument: &str) -> Sample {
        let folder = tempfile::tempdir().expect("a directory");
        let mut target = Target::new(Program::Path(PathBuf::from(target)));
        target.args = vec![argument.into()];
        let campaign = json!({
            "version": 1, "campaign": "0123456789abcdef", "command_line": ["ddfuzz", "run", "--", argument],
            "target": TargetRecord::new(&target, Way::Inject), "limits": null, "ways": ["inject"],
            "seed": 42, "started": "2026-01-31T12:00:00Z", "host": argument, "campaigns": [],
        });
        let sample = Sample { folder, count: 0 };
        sample.write("ddfuzz.json", campaign.to_string());
        let stats = (0..50).map(|at: u64| {
            let line = json!({"phase": "fuzzing", "time_ms": at * 5000, "runs": at * 10_000,
                "runs_per_s": 2000.0, "corpus": at * 3, "groups": at / 10, "crashes": at, "hangs": 0,
                "ooms": 0, "minimizing": 1, "edges": 100 + at, "edges_of": 400, "stability": 1.0,
                "minimizer_share": 0.125});
            line.to_string() + "\n"
        });
        sample.write("stats.jsonl", stats.collect::<String>());
        sample.write(
            "list.c",
            "struct list *parse(char *text)\n{\n    struct list *it = next(text);\n    \
             return it->tail ? it : parse(text + 1); /* <b>&amp; */\n}\n",
        );
        sample
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    /// Stores a group; returns the folder of its entry, relative to the output directory.
    pub fn group(&mut self, group: &Group<'_>) -> String {
        self.count += 1;
        let count = self.count;
        let key = format!("{count:012x}{}", "0".repeat(20));
        let frame = |own: bool, name: &str, line: Option<&str>| {
            json!({"module": if own { "exe" } else { "libc.so.6" }, "offset": 255, "function_start": null,
                   "name": name, "line": line, "own": own})
        };
        let target = TargetRecord::new(&Target::new(Program::Path("t".into())), Way::Inject);
        let of = (group.utility).map(|utility| json!({"utility": utility, "target": target}));
        let crash = json!({
            "v": 1, "of": of, "keys": {"major": key, "minor": key, "stable": null, "version": 1},
            "class": group.class, "ended": {"signal": 11}, "confidence": "high",
            "severity": group.severity, "severity_reason": "a write to a wild address", "way": "inject",
            "capture": "ptrace", "hits": 3, "tries": 3,
            "frames": [frame(false, "abort", None), frame(true, group.function, Some(group.source)),
                       frame(true, "main", Some("list.c:2"))],
            "limits": {"cpu_ms": 1, "wall_ms": 1, "memory": 1, "file_size": 1, "processes": 1},
            "found": {"by": "run", "campaign": "0123456789abcdef", "run": count, "input": "all:1:2"},
            "message": group.message, "stderr": group.message,
            "fault": {"address": "0xdeadbeef", "class": "unmapped", "access": "w"},
            "registers": {"rax": "0x1", "rip": "0x401000", "rsp": "0x7ffc00000000"},
        });
        let entry = format!("{}/{count:012x}/{count:012x}/{count:016x}", group.kind);
        let folder = self.root().join(&entry);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("original"), group.input).expect("a file");
        fs::write(folder.join("crash.json"), crash.to_string()).expect("a file");
        entry
    }

    /// Adds a minimization of an entry's input, with its log and result: each edit replaces a range
    /// of the best input so far.
    pub fn minimize(&self, entry: &str, input: &[u8], edits: &[(usize, usize, &[u8])]) -> Vec<u8> {
        let mut best = input.to_vec();
        let target = TargetRecord::new(&Target::new(Program::Path("t".into())), Way::Inject);
        let start = StartLine::new(input, "full", target, None, Limits::default());
        let mut log = line(&Line::Start(Box::new(start)));
        for (i, (from, to, with)) in edits.iter().enumerate() {
            best.splice(*from..*to, with.iter().copied());
            let pass = if i < edits.len() / 2 {
                "blocks"
            } else {
                "bytes"
            };
            let mut test = json!({"kind": "test", "i": 2 * i, "hash": format!("{i:016x}"),
                "size": best.len(), "outcome": "FAIL", "source": "run", "us": 10, "pass": pass});
            match with.is_empty() {
                true => test["cut"] = json!([[from, to]]),
                false => test["set"] = json!([[from, to, Base64(with.to_vec())]]),
            }
            log += &format!("{test}\n");
            let rule = "complement";
            let step = json!({"kind": "reduce", "i": 2 * i, "rule": rule, "size": best.len()});
            log += &format!("{step}\n");
            test["i"] = json!(2 * i + 1);
            test["outcome"] = json!("PASS");
            log += &format!("{test}\n");
        }
        Log::parse(log.as_bytes()).expect("a log");
        self.write(&format!("{entry}/log.jsonl"), log);
        self.write(&format!("{entry}/minimized"), &best);
        let result = json!({"claim": "1-minimal", "size_before": input.len(),
            "size_after": best.len(), "tests": {"executed": 2 * edits.len(), "cached": 0},
            "minor_after": null, "proved": {"done": best.len(), "of": best.len()}});
        self.write(&format!("{entry}/minimized.json"), result.to_string());
        let script = "#!/bin/sh\nif [ \"${1-}\" = gdb ]; then\n    shift\nfi\n";
        self.write(&format!("{entry}/reproduce.sh"), script);
        best
    }

    /// Stores a study of three utilities, one of which has this name, crashes and hangs.
    pub fn study(name: &str) -> Sample {
        let mut sample = Sample::new("/bin/t", "x");
        for (kind, class) in [("crashes", "segv"), ("hangs", "hang")] {
            let entry = sample.group(&Group {
                kind,
                class,
                function: name,
                utility: Some(name),
                ..Group::PLAIN
            });
            sample.minimize(&entry, Group::PLAIN.input, &[(4, 20, b"")]);
        }
        let campaign = json!({
            "version": 1, "campaign": "0123456789abcdef", "command_line": ["ddfuzz", "revisit", name],
            "target": null, "limits": null, "ways": [], "seed": 42,
            "started": "2026-01-31T12:00:00Z", "host": name, "campaigns": [],
        });
        sample.write("ddfuzz.json", campaign.to_string());
        let tally = |channel: &str, kind: &str, runs: u64, crashes: u64, hangs: u64| {
            json!({"channel": channel, "kind": kind, "runs": runs, "crashes": crashes, "hangs": hangs,
                   "ooms": 0, "high_exits": 0, "slow": 0})
        };
        let utility = |place: u64, name: &str, tallies: Vec<Value>, groups: Value| {
            json!({"utility": name, "place": place, "package": "bsdextrautils",
                   "version": "2.38.1-5+deb12u3", "path": "/usr/bin/ul", "label": null,
                   "tallies": tallies, "groups": groups, "done": true})
        };
        let groups = json!([
            {"kind": "crash", "major": format!("{:012x}", 1), "runs": 3, "replayed": {"hits": 5, "tries": 5, "fixed_hits": null}},
            {"kind": "hang", "major": format!("{:012x}", 2), "runs": 1, "replayed": null}]);
        let all =
            (1..9).map(|kind| tally("stdin", &format!("printable+nul+lines {kind}"), 1200, 0, 0));
        let study = json!({
            "v": 1, "campaign": "0123456789abcdef", "host": name, "system": "Debian GNU/Linux 12",
            "kernel": "6.1", "started": "2026-01-31T12:00:00Z", "seed": 42, "list": "debian",
            "sandbox": ["landlock"],
            "utilities": [
                utility(0, name, vec![tally("stdin", "all", 1200, 3, 1), tally(name, name, 300, 0, 0)], groups),
                utility(1, "x86_64-linux-gnu-objcopy-with-a-long-name", all.collect(), json!([])),
                utility(2, "nl", vec![tally("file", "empty", 1, 0, 0)], json!([])),
            ],
        });
        sample.write("studies/0123456789abcdef.json", study.to_string());
        sample
    }

    /// Stores 3 groups: one minimized, of a text; one of binary bytes; and a hang.
    pub fn usual() -> Sample {
        let mut sample = Sample::new("/usr/bin/parser", "--strict");
        let entry = sample.group(&Group::PLAIN);
        let edits: [(usize, usize, &[u8]); 4] =
            [(31, 33, b""), (4, 26, b""), (0, 3, b"G"), (2, 8, b"")];
        sample.minimize(&entry, Group::PLAIN.input, &edits);
        let binary: Vec<u8> = (0..=255).cycle().take(3000).collect();
        let entry = sample.group(&Group {
            class: "asan:heap-buffer-overflow",
            severity: "medium",
            message: "AddressSanitizer: heap-buffer-overflow (READ of size 4)\nsecond line",
            function: "decode_block",
            input: &binary,
            ..Group::PLAIN
        });
        sample.minimize(
            &entry,
            &binary,
            &[(2000, 3000, b""), (500, 1990, b""), (0, 490, b"")],
        );
        sample.group(&Group {
            kind: "hangs",
            class: "hang",
            severity: "low",
            message: "",
            input: b"aaaa",
            ..Group::PLAIN
        });
        sample
    }
}

fn line(line: &Line) -> String {
    String::from_utf8(line.to_json().expect("JSON")).expect("text")
}

/// The result of a cleanup, as in `clean.json`, of which one kept file and one group have this name.
pub fn cleanup(name: &str) -> Value {
    let kept = (0..30_u64).map(|at| {
        let from = if at == 0 { format!("/in/{name}") } else { format!("/in/queue/id:{at:06},src:000000,op:havoc,rep:8") };
        json!({"file": format!("/out/{at}"), "from": from, "content": "00", "size": 10 + at,
               "why": "it is the only kept file that reaches 17 of its features", "size_before": 4000,
               "us": 5 + at * at, "features": 900, "only_here": at % 3, "claim": "1-minimal"})
    });
    json!({
        "before": {"files": 12345, "bytes": 4000000}, "after": {"files": 30, "bytes": 900},
        "edges_before": 100, "edges_after": 100, "features_before": 2000, "features_after": 2000,
        "flaky_features": 7, "flaky_files": 2,
        "steps": [{"step": "duplicates", "files": 345, "bytes": 1000},
                  {"step": "subset", "files": 11970, "bytes": 3998960},
                  {"step": "trimming", "files": 0, "bytes": 10}],
        "duplicates": 345, "crashes": 2, "hangs": 0, "ooms": 0, "trimmed_bytes": 10,
        "kept": kept.collect::<Vec<Value>>(),
        "groups": [{"folder": "crashes", "major": "0123456789ab", "class": name, "count": 2}],
        "cover": {"weight": 110, "lower_bound": 100, "optimal": false},
        "missing": [{"edge": 4, "counts": [8, 15], "file": name}],
        "unread": [{"file": name, "why": "Permission denied (os error 13)"}],
        "spread": {"sizes_before": [0, 1, 5, 90, 800, 6000, 4000], "sizes_after": [0, 1, 9, 20],
                   "times_before": [3, 70, 800], "times_after": [1, 20]},
        "runs": 12000, "trim_runs": 4500, "known": 17, "max_len": 1048576, "exec": "harness",
        "corpus": ["/in"], "out": "/out/corpus", "old": null, "wall_ms": 12345
    })
}
