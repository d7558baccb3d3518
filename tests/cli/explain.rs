//! `ddfuzz explain`.
#![cfg(target_arch = "x86_64")]

use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::chromium::{Chromium, Look};
use crate::ddfuzz::{Desk, compiled};
use crate::measure::{OPEN, check, look};

const RECS: &str = "crates/ddfuzz-explain/tests/programs/recs.c";

/// A directory with a program, an input on which it fails, and one on which it passes.
pub fn recs() -> Desk {
    let desk = Desk::new();
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(RECS);
    let mut compiler = Command::new("cc");
    compiled::run(
        compiler
            .args(["-g", "-O0"])
            .arg(source)
            .arg("-o")
            .arg(desk.file("recs")),
    );
    desk.write("bad", "+a\n+b\n-b\n+c\n");
    desk.write("good", "+a\n+b\n-a\n+c\n");
    desk
}

#[test]
fn a_directory_that_does_not_exist_is_created_for_the_files() {
    let desk = recs();
    desk.call("explain bad good -o new -- ./recs @@").exits(0);
    assert!(desk.read("new/explanation.txt").len() > 100);
    let said = desk
        .call("explain bad good -o no/new -- ./recs @@")
        .exits(2);
    assert!(said.err.contains("is not a directory"), "{said:?}");
    assert!(!desk.file("no").exists());
    desk.is_left_clean();
}

#[test]
fn a_program_in_a_sandbox_is_explained_alike() {
    let desk = recs();
    let rows = |options: &str| {
        let call = format!("explain bad good {options} -- ./recs @@");
        let text = desk.call(&call).exits(0).out;
        let rows = text.lines().filter(|it| it.starts_with(' '));
        rows.map(str::to_owned).collect::<Vec<_>>()
    };
    let plain = rows("-o plain");
    assert!(plain.len() > 2, "{plain:?}");
    assert_eq!(rows("--sandbox -o boxed"), plain);
}

/// The text between two tags of a page, without markup.
fn unescaped(page: &str) -> String {
    let mut text = page.to_owned();
    for (mark, character) in [("&lt;", "<"), ("&gt;", ">"), ("&#39;", "'"), ("&amp;", "&")] {
        text = text.replace(mark, character);
    }
    text
}

#[test]
fn the_commands_of_the_page_make_the_passing_run_fail_in_gdb() {
    if crate::needs::program("gdb").is_none() {
        return;
    }
    let desk = recs();
    for call in ["-- ./recs @@", "-- ./recs"] {
        desk.call(&format!("explain bad good -o by-hand {call}"))
            .exits(0);
        // The passing input may be a closer one than the given one.
        let passing = desk.read("by-hand/explanation.passing");
        let record: serde_json::Value =
            serde_json::from_slice(&desk.read("by-hand/explanation.json")).unwrap();
        assert!(!passing.is_empty() && record["input"]["passing"].is_string());
        let page = String::from_utf8(desk.read("by-hand/explanation.html")).unwrap();
        let by_hand = page.split("By hand, in gdb").nth(1).unwrap();
        let by_hand = by_hand.split_once("<pre tabindex=\"0\">").unwrap().1;
        let by_hand = unescaped(by_hand.split_once("</pre>").unwrap().0);
        let mut blocks = by_hand.split("\n\n");
        let once = blocks.next().unwrap();
        let chain = record["chain"].as_array().unwrap().iter();
        let mut failed = 0;
        for (link, block) in chain.zip(blocks) {
            let script = desk.write("script", format!("{once}\n{block}\nquit\n"));
            let gdb = desk
                .command("gdb")
                .args(["-batch", "-nx", "-x"])
                .arg(script)
                .output();
            let said = String::from_utf8_lossy(&gdb.unwrap().stdout).into_owned();
            let fails = said.contains("SIGSEGV");
            let is_set = !block.contains("# no command");
            assert!(
                fails || !is_set || link["confidence"] != "confirmed",
                "{block}\n{said}"
            );
            failed += u32::from(fails);
        }
        assert!(failed > 0, "{by_hand}");
    }
}

#[test]
fn an_explanation_is_printed_and_written_beside_the_input() {
    let desk = recs();
    let said = desk.call("explain bad good -- ./recs @@").exits(0);
    assert!(said.out.lines().count() <= 12, "{said:?}");
    assert!(
        said.out.contains("l->tail = NULL instead of a struct node"),
        "{said:?}"
    );
    assert!(desk.read("explanation.txt").len() > 100);
    let page = String::from_utf8(desk.read("explanation.html")).unwrap();
    // The head is that of all reports, without their script.
    assert!(page.contains("<meta name=\"viewport\"") && page.contains("prefers-color-scheme"));
    assert!(page.contains("default-src 'none'; style-src") && !page.contains("<script"));
    assert!(
        page.contains("<svg") && page.contains("<span class=\"at\">"),
        "{page}"
    );
    for (part, count) in [("<h1>", 1), ("<figure>", 2), ("TITLE", 0)] {
        assert_eq!(page.matches(part).count(), count, "{part} {page}");
    }
    let wide = page.matches("<table>").count();
    let scrolled = page.matches("<div class=\"scroll\"").count();
    assert_eq!(scrolled, wide, "{page}");
    let record = desk
        .call("explain bad good --json -- ./recs @@")
        .exits(0)
        .json();
    assert_eq!(record["refused"], json!(null));
    assert_eq!(record["crash"]["class"], "segv");
    assert_eq!(record["crash"]["function"], "append");
    assert_eq!(record["input"]["difference"][0]["at"], json!([7, 8]));
    assert_eq!(record["slice"], json!(null));
    let chain = record["chain"].as_array().unwrap();
    assert_eq!(chain[0]["writer"], "input");
    let last = chain.last().unwrap();
    assert_eq!(
        (&last["variable"], &last["confidence"]),
        (&json!("l->tail"), &json!("confirmed"))
    );
    assert_eq!(last["writer"]["function"], "drop");
    assert_eq!(
        (&last["failing"], &last["type"]),
        (&json!("NULL"), &json!("struct node *"))
    );
    for key in ["failing", "passing", "matching", "used", "skipped"] {
        assert!(record["points"][key].is_u64(), "{key}");
    }
    assert!(record["tests"].as_u64().unwrap() > 10 && record["wall_ms"].is_u64());
    desk.is_left_clean();
}

#[test]
fn a_group_is_explained_beside_its_reproducer() {
    let desk = recs();
    desk.call("triage bad -o out --minimize -- ./recs @@");
    let record = desk.call("explain out --json").exits(0).json();
    assert_eq!(record["crash"]["class"], "segv");
    let found = Command::new("find")
        .arg(desk.file("out"))
        .args(["-name", "explanation.*"])
        .output();
    let found = String::from_utf8(found.unwrap().stdout).unwrap();
    assert_eq!(found.lines().count(), 4, "{found}");
    desk.call("explain out ffff").exits(2);
}

/// Crashes at one place for each of two inputs.
const TWO: &str = "#include <stdio.h>\n\
    static int *volatile nowhere;\n\
    __attribute__((noinline)) static void one(void) { nowhere[1] = 1; }\n\
    __attribute__((noinline)) static void two(void) { nowhere[2] = 2; }\n\
    int main(void)\n\
    {\n\
        int c = getchar();\n\
        if (c == 'a')\n\
            one();\n\
        if (c == 'b')\n\
            two();\n\
        return 0;\n\
    }\n";

#[test]
fn each_of_several_groups_has_a_directory_in_a_new_one() {
    let (desk, _) = two_groups();
    desk.call("explain out -o new").exits(0);
    let entries = std::fs::read_dir(desk.file("new")).unwrap().flatten();
    let folders: Vec<_> = entries.map(|entry| entry.path()).collect();
    assert_eq!(folders.len(), 2, "{folders:?}");
    for folder in folders {
        assert!(folder.join("explanation.json").is_file(), "{folder:?}");
    }
    desk.is_left_clean();
}

/// A directory with a program that crashes at one place for each of two inputs, and its groups.
fn two_groups() -> (Desk, Vec<String>) {
    let desk = Desk::new();
    let source = desk.write("two.c", TWO);
    let mut compiler = desk.command("cc");
    compiled::run(compiler.args(["-g", "-O0", "-o", "two"]).arg(source));
    desk.write("a", "a");
    desk.write("b", "b");
    desk.call("triage a b -o out -- ./two").exits(1);
    let shown = desk.call("show out --json").exits(0).json();
    let groups = shown["groups"].as_array().unwrap().iter();
    let majors = groups.map(|group| group["major"].as_str().unwrap().to_owned());
    (desk, majors.collect())
}

#[test]
fn a_group_that_cannot_be_explained_does_not_keep_others_from_it() {
    let (desk, majors) = two_groups();
    std::fs::create_dir_all(desk.file(&format!("new/{}", majors[0]))).unwrap();
    let foreign = format!("new/{}/explanation.txt", majors[0]);
    desk.write(&foreign, "mine");
    let said = desk.call("explain out -o new --json").exits(2);
    let text = format!("group {} is not explained: ", majors[0]);
    assert!(said.err.contains(&text), "{said:?}");
    assert_eq!(said.json()["groups"][0]["major"], majors[1].as_str());
    assert_eq!(desk.read(&foreign), b"mine");
    let written = desk.read(&format!("new/{}/explanation.txt", majors[1]));
    assert!(written.starts_with(b"two: SIGSEGV in "));
    // If there is only one, or all fail, the error is the result.
    let one = format!("explain out {} -o new/{} --json", majors[0], majors[0]);
    assert_eq!(desk.call(&one).exits(2).json()["error"]["kind"], "exists");
}

/// Sends SIGTERM to a call of ddfuzz once `begun` returns true, and returns the exit code.
fn interrupted(desk: &Desk, call: &str, begun: impl Fn() -> bool) -> Option<i32> {
    let mut child = desk.start(call);
    while !begun() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    // SAFETY: a signal to a child of ours that has not been waited for.
    unsafe { libc::kill(i32::try_from(child.id()).unwrap(), libc::SIGTERM) };
    child.wait().unwrap().code()
}

#[test]
fn one_signal_ends_the_explanation_of_several_groups() {
    let desk = Desk::new();
    let names: Vec<char> = ('a'..='h').collect();
    let mut text = "#include <stdio.h>\nstatic int *volatile nowhere;\n".to_owned();
    for name in &names {
        text +=
            &format!("__attribute__((noinline)) static void f{name}(void) {{ nowhere[1] = 1; }}\n");
        desk.write(&name.to_string(), name.to_string());
    }
    text += "int main(void)\n{\n    int c = getchar();\n";
    for name in &names {
        text += &format!("    if (c == '{name}')\n        f{name}();\n");
    }
    let source = desk.write("many.c", text + "    return 0;\n}\n");
    let mut compiler = desk.command("cc");
    compiled::run(compiler.args(["-g", "-O0", "-o", "many"]).arg(source));
    desk.call("triage a b c d e f g h -o out -- ./many")
        .exits(1);
    let explained = || {
        let folders = std::fs::read_dir(desk.file("new")).into_iter().flatten();
        let files = folders
            .flatten()
            .map(|it| it.path().join("explanation.txt"));
        files.filter(|file| file.is_file()).count()
    };
    let code = interrupted(&desk, "explain out -o new", || explained() > 0);
    assert_eq!(code, Some(130));
    assert!((1..8).contains(&explained()));
}

#[test]
fn one_signal_ends_a_single_explanation() {
    let desk = Desk::new();
    let text = "#include <stdio.h>\n\
        int main(void)\n\
        {\n\
            for (int first = getchar(); first == 'x';)\n\
                ;\n\
            return 0;\n\
        }\n";
    let source = desk.write("endless.c", text);
    let mut compiler = desk.command("cc");
    compiled::run(compiler.args(["-g", "-O0", "-o", "endless"]).arg(source));
    desk.write("bad", "x");
    desk.write("good", "y");
    let program = desk.file("endless").canonicalize().unwrap();
    let runs = || {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let mut executed = all.filter_map(|it| std::fs::read_link(it.path().join("exe")).ok());
        executed.any(|exe| exe == program)
    };
    let call = "explain bad good -- ./endless";
    assert_eq!(interrupted(&desk, call, runs), Some(130));
    assert!(!desk.file("explanation.txt").exists());
}

#[test]
fn a_fifo_named_as_a_source_is_not_read_and_the_page_promises_no_more_than_was_tested() {
    let desk = Desk::new();
    let text = "#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n\
        int main(void)\n{\n\
            char line[8] = {0};\n\
            if (read(0, line, 7) < 1) return 2;\n\
            char *first = malloc(24), *large = malloc(2000), *second = malloc(24);\n\
            memset(large, line[0] == 'X', 2000);\n\
            free(large);\n\
            char *again = malloc(1900);\n\
            #line 5 \"pipe\"\n\
            if (again[500]) abort();\n\
            return first == second;\n}\n";
    let source = desk.write("pipes.c", text);
    compiled::run(desk.command("mkfifo").arg("pipe"));
    let mut compiler = desk.command("cc");
    compiled::run(compiler.args(["-g", "-O0", "-o", "pipes"]).arg(source));
    desk.write("bad", "XY");
    desk.write("good", "aY");
    desk.call("explain bad good --budget-time 10m -- ./pipes")
        .exits(0);
    let page = String::from_utf8(desk.read("explanation.html")).unwrap();
    assert!(page.contains("pipe cannot be read"), "{page}");
    let by_hand = page.split("By hand, in gdb").nth(1).unwrap();
    // Here all are.
    assert!(!by_hand.contains("[not confirmed]"), "{by_hand}");
    assert!(by_hand.contains("With what is not confirmed it need not fail."));
}

#[test]
fn triage_explains_and_reports_show_it() {
    let desk = recs();
    let call =
        "triage bad -o out --minimize --explain --markdown t.md --sarif t.sarif -- ./recs @@";
    let said = desk.call(call).exits(1);
    let text = "recs: SIGSEGV in append, recs.c:26";
    assert!(said.out.contains(text), "{said:?}");
    let shown = desk.call("show out --json").exits(0).json();
    let major = shown["groups"][0]["major"].as_str().unwrap().to_owned();
    let explanation = shown["groups"][0]["explanation"].as_str().unwrap();
    assert!(explanation.starts_with(text), "{explanation}");
    let files = desk
        .command("find")
        .args(["out", "-name", "explanation.txt"])
        .output();
    let file = String::from_utf8(files.unwrap().stdout).unwrap();
    let story = String::from_utf8(desk.read(file.trim())).unwrap();
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = squeezed(story.lines().next().unwrap());
    assert_eq!(explanation.lines().next(), Some(first.as_str()));
    let in_full = desk.call(&format!("show out {major} --markdown s.md --sarif s.sarif"));
    assert!(in_full.exits(0).out.contains(&first));
    for report in ["s.md", "t.md", "s.sarif", "t.sarif"] {
        let text = String::from_utf8(desk.read(report)).unwrap();
        assert!(text.contains("recs: SIGSEGV in append"), "{report}: {text}");
    }
}

#[test]
fn points_and_raw_words_are_shown_when_asked_for() {
    let desk = recs();
    let said = desk.call("explain bad good --points -- ./recs @@").exits(0);
    assert!(said.out.contains("States were compared at"), "{said:?}");
    assert!(
        said.out
            .lines()
            .any(|line| line.contains("differ") && line.contains("l->tail"))
    );
    let record = desk
        .call("explain bad good --raw --json -- ./recs @@")
        .exits(0)
        .json();
    assert_eq!(record["refused"], json!(null));
    let chain = record["chain"].as_array().unwrap();
    assert!(!chain.is_empty());
    for link in chain {
        let name = link["variable"].as_str().unwrap();
        let is_raw = ["stack ", "data[", "register", "heap block"];
        assert!(is_raw.iter().any(|start| name.starts_with(start)), "{name}");
    }
    // A stripped program has no functions to stop at.
    compiled::run(Command::new("strip").arg(desk.file("recs")));
    let record = desk
        .call("explain bad good --json -- ./recs @@")
        .exits(0)
        .json();
    let reason = record["refused"]["reason"].as_str().unwrap();
    assert_eq!(reason, "the program has no debug information");
}

#[test]
fn run_explains_what_it_has_found() {
    let desk = recs();
    std::fs::create_dir(desk.file("seeds")).unwrap();
    desk.write("seeds/bad", "+a\n+b\n-b\n+c\n");
    let call =
        "run --runs 20 --seeds seeds --seed 1 --jobs 1 --plain --explain --json -- ./recs @@";
    let record = desk.call(call).exits(1).json();
    let groups = record["groups"].as_array().unwrap();
    let explained = groups
        .iter()
        .filter(|group| group["explanation"].is_string());
    assert!(explained.count() > 0, "{record}");
}

#[test]
fn files_of_the_user_are_not_overwritten_and_usage_is_explained() {
    let desk = recs();
    desk.write("explanation.txt", "mine");
    let error = desk.call("explain bad good --json -- ./recs @@").exits(2);
    assert_eq!(error.json()["error"]["kind"], "exists");
    assert_eq!(desk.read("explanation.txt"), b"mine");
    // Its own files are replaced, unless the text was edited.
    let words = "explain bad good --json -o why --budget-time 1s -- ./recs @@";
    desk.call(words).exits(0);
    desk.call(words).exits(0);
    let text = desk.read("why/explanation.txt");
    let edited = [&text[..], b"and so on\n"].concat();
    desk.write("why/explanation.txt", &edited);
    let error = desk.call(words).exits(2).json();
    assert!(
        error["error"]["message"]
            .as_str()
            .unwrap()
            .contains("was edited"),
        "{error}"
    );
    assert_eq!(desk.read("why/explanation.txt"), edited);
    desk.call(&format!("explain --force{}", &words["explain".len()..]))
        .exits(0);
    assert_ne!(desk.read("why/explanation.txt"), edited);
    let error = desk
        .call("explain good bad --json -o tmp -- ./recs @@")
        .exits(3);
    assert_eq!(error.json()["error"]["kind"], "not-failing");
    desk.call("explain").exits(2);
    let error = desk.call("explain bad --wrong ( -- ./recs @@").exits(2);
    assert!(error.err.contains("wrong"), "{error:?}");
}

/// A list of a hundred elements, half of which get other values by the second byte of the input;
/// the last one loses the text to which it leads.
const LIST: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct node { int value; char *text; struct node *next; };
static struct node *list;
int main(void)
{
    int first = getchar(), second = getchar(), sum = 0;
    for (int i = 0; i < 100; i++) {
        struct node *node = malloc(sizeof *node);
        node->value = i % 2 ? i : i * second;
        node->text = i == 99 && second == 'x' ? 0 : "a text that is shown beside the element";
        node->next = list;
        list = node;
    }
    for (struct node *node = list; node; node = node->next)
        sum += node->value + node->text[first & 1];
    printf("%d\n", sum);
    return 0;
}
"#;

#[test]
fn the_page_is_readable_at_any_width_in_light_dark_and_print() {
    let Some(mut chromium) = Chromium::start() else {
        return;
    };
    let desk = Desk::new();
    let mut compiler = Command::new("cc");
    desk.write("list.c", LIST);
    compiler.args(["-g", "-O0", "-o"]).arg(desk.file("list"));
    compiled::run(compiler.arg(desk.file("list.c")));
    desk.write("bad", "ax");
    desk.write("good", "ay");
    let said = desk.call("explain bad good --budget-time 10m -- ./list");
    assert!(said.exits(0).out.contains("Look here first: "));
    let page = String::from_utf8(desk.read("explanation.html")).unwrap();
    assert!(page.contains("more that differ or lead there"), "{page}");
    for (width, dark, print) in [(360, true, false), (1280, false, false), (718, false, true)] {
        let look = Look {
            print,
            ..look(width, dark)
        };
        chromium.show(&page, look, false);
        if !print {
            chromium.evaluate(OPEN);
        }
        check(&mut chromium, look, 0);
        // The drawings are not scaled down: their text is as large as that of the page's tables.
        let sizes = "Array.from(document.querySelectorAll('svg text')).filter(function (it) {
            return it.getBoundingClientRect().height < 9; }).length";
        assert_eq!(chromium.evaluate(sizes), 0, "{look:?}");
        chromium.picture(&format!("explanation-{width}"));
    }
}

#[test]
fn a_recursion_without_an_end_is_explained_by_what_closes_its_cycle() {
    let desk = Desk::new();
    let source = "crates/ddfuzz-explain/tests/programs/recursion.c";
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let mut compiler = Command::new("cc");
    let compiler = compiler.args(["-g", "-O0"]).arg(source).arg("-o");
    compiled::run(compiler.arg(desk.file("sites")));
    desk.write("bad", "c5\n");
    desk.write("good", "c4\n");
    let said = desk.call("explain bad good --budget-time 16s -- ./sites");
    let said = said.exits(0);
    let fact = "(tested: wrote the link that closes the cycle)";
    assert!(said.out.contains(fact), "{said:?}");
    assert!(said.out.contains("site repeats after 3 calls"), "{said:?}");
    assert!(said.out.lines().count() <= 12, "{said:?}");
    let written: serde_json::Value =
        serde_json::from_slice(&desk.read("explanation.json")).unwrap();
    let recursion = &written["recursion"];
    assert_eq!(recursion["closed"]["is_averted"], true, "{recursion}");
    assert_eq!(recursion["is_ended"], false, "{recursion}");
    let page = String::from_utf8(desk.read("explanation.html")).unwrap();
    assert!(page.contains("this closes the cycle"), "{page}");
}
