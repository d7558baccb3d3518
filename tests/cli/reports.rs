//! `--markdown`, `--sarif`, `--junit`, `--against`, and what is said to be next.

use serde_json::Value;

use crate::ddfuzz::Desk;

const RUN: &str = "run --target nroff --runs 300 --max-len 2000 --seed 7";
const FILES: &str = "--markdown m.md --sarif s.json --junit j.xml";

fn text(desk: &Desk, name: &str) -> String {
    String::from_utf8(desk.read(name)).unwrap()
}

#[test]
fn a_campaign_writes_its_groups_for_ci() {
    let desk = Desk::new();
    let result = desk
        .call(&format!("{RUN} --json -o out {FILES}"))
        .exits(1)
        .json();
    let groups = result["groups"].as_array().unwrap();
    assert!(groups.len() > 1, "{groups:?}");
    let sarif: Value = serde_json::from_slice(&desk.read("s.json")).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    let run = &sarif["runs"][0];
    assert_eq!(run["tool"]["driver"]["name"], "ddfuzz");
    assert_eq!(run["results"].as_array().unwrap().len(), groups.len());
    let (summary, junit) = (text(&desk, "m.md"), text(&desk, "j.xml"));
    for group in groups {
        let major = group["major"].as_str().unwrap();
        assert!(
            summary.contains(&format!("| new | `{major}` |")),
            "{summary}"
        );
        assert!(junit.contains(major), "{junit}");
    }
    assert!(
        junit.contains(&format!("failures=\"{}\"", groups.len())),
        "{junit}"
    );
    // The same of the directory, later; and whose file it is may be replaced.
    desk.call(&format!("show out {FILES}")).exits(0);
    assert!(!text(&desk, "m.md").contains("| new |"));
    assert_eq!(
        text(&desk, "j.xml").matches("<testcase").count(),
        groups.len()
    );
}

#[test]
fn groups_of_another_directory_are_known_filed_and_not_minimized() {
    let desk = Desk::new();
    let main = desk.call(&format!("{RUN} --json -o main")).exits(1).json();
    let words = format!("{RUN} --json -o out --against main {FILES}");
    let result = desk.call(&words).exits(4).json();
    assert_eq!(result["new_groups"], 0);
    let majors = |result: &Value| {
        let groups = result["groups"].as_array().unwrap().iter();
        groups
            .map(|group| group["major"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(majors(&result), majors(&main));
    assert_eq!(result["groups"][0]["claim"], Value::Null);
    assert!(text(&desk, "m.md").contains("| known |"));
    assert!(text(&desk, "j.xml").contains("failures=\"0\""));
    let sarif: Value = serde_json::from_slice(&desk.read("s.json")).unwrap();
    assert_eq!(sarif["runs"][0]["results"][0]["baselineState"], "unchanged");
    // One that the other does not have is new, and minimized.
    let major = main["groups"][0]["major"].as_str().unwrap();
    std::fs::remove_dir_all(desk.file("main/crashes").join(major)).unwrap();
    let words = format!("{RUN} --json -o again --against main");
    let result = desk.call(&words).exits(1).json();
    assert_eq!(result["new_groups"], 1);
    let groups = result["groups"].as_array().unwrap().iter();
    let minimized = groups.filter(|group| !group["claim"].is_null());
    let minimized: Vec<_> = minimized
        .map(|group| group["major"].as_str().unwrap())
        .collect();
    assert_eq!(minimized, [major]);
    desk.call(&format!("{RUN} -o other --against nowhere"))
        .exits(2);
    assert!(!desk.file("other").exists());
}

#[test]
fn triage_says_which_groups_are_new() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_bugs.c", "two_bugs");
    desk.write("odd", "k");
    desk.write("even", "kk");
    desk.call("triage odd -o main -- ./two_bugs").exits(1);
    let words = format!("triage odd even --against main {FILES} -- ./two_bugs");
    desk.call(&words).exits(1);
    let summary = text(&desk, "m.md");
    assert!(
        summary.contains("| new |") && summary.contains("| known |"),
        "{summary}"
    );
    let junit = text(&desk, "j.xml");
    assert!(
        junit.contains("tests=\"2\" skipped=\"1\" failures=\"1\""),
        "{junit}"
    );
    desk.write("healthy", "x");
    desk.call(&format!("triage healthy {FILES} -- ./two_bugs"))
        .exits(0);
    assert!(text(&desk, "m.md").contains("Nothing was found"));
    assert!(text(&desk, "j.xml").contains("failures=\"0\""));
}

#[test]
fn files_of_others_are_refused_before_anything_runs() {
    for (option, name) in [("--markdown", "m"), ("--sarif", "s"), ("--junit", "j")] {
        let desk = Desk::new();
        desk.write(name, "{} # precious <p>");
        let words = format!("{RUN} --json -o out {option} {name}");
        let error = desk.call(&words).exits(2).json();
        assert_eq!(error["error"]["kind"], "exists", "{option}");
        assert!(!desk.file("out").exists());
        assert_eq!(desk.read(name), b"{} # precious <p>");
        // A file that CI has made for it, and a folder that is not there.
        desk.write(name, "");
        desk.write("crash", "a t b");
        let words = format!("triage crash --target crtplot {option}");
        desk.call(&format!("{words} {name}")).exits(1);
        assert!(!desk.read(name).is_empty());
        desk.call(&format!("{words} none/{name}")).exits(2);
    }
}

#[test]
fn results_say_what_to_type_next() {
    let desk = Desk::new();
    desk.write("crash", "a t b");
    let said = desk
        .call("triage crash -o ddfuzz-out --target crtplot")
        .exits(1);
    let next = |said: &str| {
        let lines = said
            .lines()
            .filter_map(|line| line.strip_prefix("next: ddfuzz "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let commands = next(&said.err);
    assert_eq!(commands.len(), 4, "{said:?}");
    assert!(commands[0].starts_with("min "), "{commands:?}");
    // What is said can be typed.
    let call = |command: &str| desk.call(command.split('#').next().unwrap());
    call(&commands[0]).exits(0);
    call(&commands[1]).exits(0);
    // The target is a program of C.
    assert!(commands[2].contains("--as c-test"), "{commands:?}");
    call(&commands[2]).exits(0);
    call(&commands[3]).exits(1);
    let found = "run --runs 300 --seed 1 --minimize off --target crtplot -o found";
    let said = desk.call(found).exits(1);
    assert!(!said.out.contains('→'), "{said:?}");
    assert!(next(&said.err)[0].starts_with("min found "), "{said:?}");
    let said = desk.call("min crash --target crtplot").exits(0);
    desk.call(&next(&said.err)[0]).exits(0);
    let said = desk.call("min crash -o kept/ --target crtplot").exits(0);
    desk.call(&next(&said.err)[0]).exits(0);
    for quiet in ["-q", "--json"] {
        let words = format!("min crash --force {quiet} --target crtplot");
        assert_eq!(next(&desk.call(&words).exits(0).err).len(), 0, "{quiet}");
    }
}

#[test]
fn no_color_is_obeyed_and_asked_colour_is_given() {
    let desk = Desk::new();
    let errors = |words: &[&str]| {
        let mut command = desk.command(env!("CARGO_BIN_EXE_ddfuzz"));
        let output = command
            .args(words)
            .arg("show")
            .arg("nowhere")
            .env("NO_COLOR", "1");
        String::from_utf8(output.output().unwrap().stderr).unwrap()
    };
    assert!(!errors(&[]).contains('\x1b'));
    assert!(!errors(&["--color", "never"]).contains('\x1b'));
    assert!(errors(&["--color", "always"]).contains('\x1b'));
}

#[test]
fn reports_go_to_regular_files_and_through_links() {
    let desk = Desk::new();
    desk.call("run --target nroff --runs 60 --max-len 2000 --seed 7 --minimize off -o out -q")
        .exits(1);
    // What is no file is refused before the report is made, and not waited for.
    for place in ["/dev/null", "/dev/stdout"] {
        let said = desk.call(&format!("show out --junit {place}")).exits(2);
        assert!(said.err.contains("not a file"), "{said:?}");
    }
    desk.write("page.md", "");
    std::os::unix::fs::symlink("page.md", desk.file("latest.md")).unwrap();
    desk.call("show out --markdown latest.md").exits(0);
    assert!(desk.file("latest.md").is_symlink());
    assert!(!text(&desk, "page.md").is_empty());
    let said = desk.call("show out --markdown a --sarif ./a").exits(2);
    assert!(said.err.contains("two reports"), "{said:?}");
}
