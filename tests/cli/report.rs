//! `ddfuzz report` and `--html`.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::Value;

use crate::ddfuzz::Desk;

/// A directory with a small campaign in `out`, whose page is kept current.
fn campaign() -> Desk {
    let desk = Desk::new();
    let words = "run --json --target ul --runs 400 --max-len 2000 --seed 7 -o out --html";
    desk.call(words).exits(1);
    desk
}

fn ranges<'a>(bytes: &'a [u8], ranges: &Value) -> Vec<&'a [u8]> {
    let ranges = ranges.as_array().unwrap().iter();
    let at = |number: &Value| number.as_u64().unwrap() as usize;
    ranges
        .map(|range| &bytes[at(&range[0])..at(&range[1])])
        .collect()
}

#[test]
fn the_page_of_a_campaign_and_the_data_behind_it() {
    let desk = campaign();
    let page = String::from_utf8(desk.read("out/report.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert!(
        page.contains("kept in the minimized input") && page.contains("1-minimal"),
        "{page}"
    );
    let report = desk.call("report out --json").exits(0).json();
    let group = &report["groups"][0];
    assert_eq!(group["size_after"], 517);
    assert!(page.contains(&format!(
        "id=\"crash-{}\"",
        group["major"].as_str().unwrap()
    )));
    // The ranges of the log are the bytes of the files.
    let original = std::fs::read(group["original"].as_str().unwrap()).unwrap();
    let minimized = std::fs::read(group["file"].as_str().unwrap()).unwrap();
    let kept = ranges(&original, &group["kept"]).concat();
    let written = ranges(&minimized, &group["replaced"]).concat();
    assert_eq!(kept.len() + written.len(), minimized.len());
    assert_ne!(report["stats"].as_array().unwrap().len(), 0);
    let commands = group["commands"].as_array().unwrap();
    assert_eq!(commands[0]["name"], "shell");
    // It is typed in the output directory.
    let shown = std::process::Command::new("sh")
        .args(["-c", commands[0]["command"].as_str().unwrap()])
        .current_dir(desk.file("out"))
        .output()
        .unwrap();
    assert_eq!(shown.status.code(), Some(128 + libc::SIGSEGV), "{shown:?}");
    desk.is_left_clean();
}

#[test]
fn a_page_is_written_where_it_is_wanted_and_over_no_other_file() {
    let desk = campaign();
    desk.call("report out -o page.html").exits(0);
    desk.call("report out -o page.html").exits(0);
    let said = desk.call("report out -o -").exits(0);
    assert!(said.out.contains("<!-- ddfuzz -->"));
    desk.write("mine.html", "mine");
    desk.call("report out -o mine.html").exits(2);
    assert_eq!(desk.read("mine.html"), b"mine");
    desk.write("out/report.html", "mine");
    desk.call("report out").exits(2);
    desk.call("run --target ul --runs 4 --resume -o out --html")
        .exits(2);
    assert_eq!(desk.read("out/report.html"), b"mine");
    desk.call("report nowhere").exits(2);
    // Nobody can make a file there.
    let refused = desk.call("report out -o /sys/page.html").exits(2);
    assert!(refused.err.contains("`-` is stdout"), "{refused:?}");
}

#[test]
fn a_group_becomes_the_text_of_an_issue() {
    let desk = campaign();
    let report = desk.call("report out --json").exits(0).json();
    let major = report["groups"][0]["major"].as_str().unwrap();
    let said = desk
        .call(&format!("report out --markdown {}", &major[..6]))
        .exits(0);
    assert!(said.out.starts_with("<!-- ddfuzz -->\n# "), "{said:?}");
    for part in ["**Stack**", "1-minimal", "base64 -d", "reproduce.sh"] {
        assert!(said.out.contains(part), "{part} in {said:?}");
    }
    desk.call(&format!("report out --markdown {major} -o issue.md"))
        .exits(0);
    assert_eq!(desk.read("issue.md"), said.out.as_bytes());
    desk.call("report out --markdown 0000000").exits(2);
}

#[test]
fn a_campaign_becomes_the_summary_that_show_writes() {
    let desk = campaign();
    let said = desk.call("report out --markdown").exits(0);
    assert!(said.out.starts_with("<!-- ddfuzz -->\n"), "{said:?}");
    let shown = desk.call("show out --markdown summary.md").exits(0);
    assert_eq!(desk.read("summary.md"), said.out.as_bytes(), "{shown:?}");
    desk.call("report out --markdown -o other.md").exits(0);
    assert_eq!(desk.read("other.md"), said.out.as_bytes());
    desk.call("report nowhere --markdown").exits(2);
}

#[test]
fn triage_has_a_page_and_refuses_one_without_a_directory() {
    let desk = Desk::new();
    desk.write("crash", vec![b't'; 3]);
    desk.call("triage crash -o out --html --target crtplot")
        .exits(1);
    let page = String::from_utf8(desk.read("out/report.html")).unwrap();
    assert!(page.contains("1 group of crashes"), "{page}");
    desk.call("triage crash --html --target crtplot").exits(2);
    desk.call("triage crash -o new --html=page.html --target crtplot")
        .exits(1);
    assert!(desk.file("page.html").is_file() && !desk.file("new/report.html").exists());
}

/// Checks that a page is there to its last closing tag.
fn is_whole(page: &[u8]) {
    let page = String::from_utf8(page.to_vec()).unwrap();
    assert!(
        page.starts_with("<!DOCTYPE html>\n<!-- ddfuzz -->"),
        "{page}"
    );
    assert!(page.ends_with("</body>\n</html>\n"), "{page}");
    for name in ["section", "main", "table", "pre"] {
        let ends = page.matches(&format!("</{name}>")).count();
        let starts = page.matches(&format!("<{name}>")).count();
        let starts = starts + page.matches(&format!("<{name} ")).count();
        assert_eq!(starts, ends, "{name} in {page}");
    }
}

#[test]
fn a_page_is_whole_at_each_moment_and_after_a_kill() {
    let desk = Desk::new();
    let page = || std::fs::read(desk.file("out/report.html"));
    let run = "run --target ul --max-len 2000 --time 90s --seed 7 -o out --html --resume";
    for readings in [1, 30, 90] {
        let mut child = desk.start(run);
        let mut read = 0;
        while read < readings {
            assert!(
                child.try_wait().unwrap().is_none(),
                "the campaign has ended"
            );
            if let Ok(page) = page() {
                is_whole(&page);
                read += 1;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        is_whole(&page().unwrap());
    }
    // The page is replaced by this call at a moment that is not known.
    for moment in 0..12 {
        let mut child = desk.start("report out");
        std::thread::sleep(Duration::from_millis(7 * moment));
        child.kill().unwrap();
        child.wait().unwrap();
        is_whole(&page().unwrap());
    }
    desk.call("report out").exits(0);
    is_whole(&page().unwrap());
    desk.is_left_clean();
}

#[test]
fn no_report_runs_the_program() {
    let desk = Desk::new();
    let runs = desk.write("runs", "");
    std::fs::set_permissions(&runs, Permissions::from_mode(0o666)).unwrap();
    let source = |crash: &str| {
        format!(
            "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n#include <sys/wait.h>\n\
             int main(void) {{ FILE *runs = fopen(getenv(\"RUNS\"), \"a\"); if (runs) {{ fputc('r', runs); \
             fclose(runs); }} {crash} return 0; }}"
        )
    };
    desk.write("input", "k");
    for (crash, has_test) in [
        ("__builtin_trap();", true),
        ("if (!fork()) __builtin_trap(); wait(0);", false),
    ] {
        let file = desk.write("frail.c", source(crash));
        desk.compile(file.to_str().unwrap(), "frail");
        let words = format!(
            "triage input --env RUNS={} -o out --html -- ./frail",
            runs.display()
        );
        desk.call(&words).exits(1);
        let before = desk.read("runs").len();
        assert!(before > 0);
        desk.call("report out").exits(0);
        desk.call("report out --markdown").exits(0);
        let report = desk.call("report out --json").exits(0).json();
        let group = &report["groups"][0];
        let major = group["major"].as_str().unwrap();
        desk.call(&format!("report out --markdown {major}"))
            .exits(0);
        assert_eq!(desk.read("runs").len(), before);
        // A test looks at the status of the program itself.
        assert_eq!(group["test"].is_object(), has_test, "{group}");
        std::fs::remove_dir_all(desk.file("out")).unwrap();
    }
}

#[test]
fn a_page_that_cannot_be_written_costs_no_result() {
    let desk = Desk::new();
    std::fs::create_dir(desk.file("sub")).unwrap();
    let sub = desk.file("sub");
    std::fs::set_permissions(desk.path(), Permissions::from_mode(0o777)).unwrap();
    std::fs::set_permissions(&sub, Permissions::from_mode(0o777)).unwrap();
    let lines = format!("rm -rf {}; kill -SEGV $$", sub.display());
    desk.script("removes", &lines);
    desk.write("input", "k");
    let words = "triage input -o out --html=sub/page.html --json -- ./removes";
    let said = desk.call(words).exits(1);
    assert_eq!(
        said.json()["groups"].as_array().unwrap().len(),
        1,
        "{said:?}"
    );
    assert!(said.err.contains("warning: "), "{said:?}");
    std::fs::create_dir(&sub).unwrap();
    std::fs::set_permissions(&sub, Permissions::from_mode(0o777)).unwrap();
    let words =
        "watch input --once --minimize off -o watched --html=sub/page.html --json -- ./removes";
    let said = desk.call(words).exits(1);
    assert_eq!(
        said.json()["groups"].as_array().unwrap().len(),
        1,
        "{said:?}"
    );
}

#[test]
fn a_page_has_its_own_file_and_keeps_a_link_with_its_mode() {
    let desk = Desk::new();
    desk.script("frail", "kill -SEGV $$");
    desk.write("input", "k");
    for option in ["--markdown", "--sarif", "--junit"] {
        let words = format!("triage input -o out --html=page.html {option} page.html -- ./frail");
        let said = desk.call(&words).exits(2);
        assert!(said.err.contains("two reports"), "{option}: {said:?}");
    }
    let page = desk.write("page.html", "");
    std::fs::set_permissions(&page, Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&page, desk.file("link")).unwrap();
    desk.call("triage input -o out --html=link -- ./frail")
        .exits(1);
    assert!(desk.file("link").is_symlink());
    is_whole(&desk.read("page.html"));
    assert_eq!(page.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn data_and_the_error_of_a_page_are_never_both_printed() {
    let desk = campaign();
    // Files of more than a few hundred bytes cannot be written.
    let limited = r#"trap '' XFSZ; ulimit -f 1; exec "$0" report out --json -o page.html"#;
    let mut call = desk.command("sh");
    call.args(["-c", limited, env!("CARGO_BIN_EXE_ddfuzz")]);
    let said = call.output().unwrap();
    assert!(!said.status.success(), "{said:?}");
    let json: Value = serde_json::from_slice(&said.stdout).expect("one object");
    assert!(json["error"]["message"].is_string(), "{json}");
    assert!(!desk.file("page.html").exists());
}
