//! `ddfuzz triage --against` and `--known`.

use serde_json::Value;

use crate::ddfuzz::Desk;
use crate::needs;

/// A desk with a program of two bugs, and inputs of both: `odd` and `even`.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_bugs.c", "two_bugs");
    desk.write("odd", "k");
    desk.write("even", "kk");
    desk.write("healthy", "x");
    desk
}

#[test]
fn groups_that_another_directory_has_are_not_new() {
    let desk = desk();
    desk.call("triage odd -o out -- ./two_bugs").exits(1);
    let against = |inputs: &str, code| {
        let words = format!("triage {inputs} --against out --json -- ./two_bugs");
        desk.call(&words).exits(code).json()
    };
    let both = against("odd even", 1);
    let news: Vec<_> = (both["groups"].as_array().unwrap().iter())
        .map(|group| (group["new"].as_bool().unwrap(), group["same_by"].clone()))
        .collect();
    assert!(news.contains(&(false, "key".into())), "{news:?}");
    assert!(news.contains(&(true, serde_json::Value::Null)), "{news:?}");
    assert_eq!(against("odd", 4)["groups"][0]["new"], false);
    against("healthy", 0);
    let said = desk
        .call("triage odd even --against out -- ./two_bugs")
        .exits(1);
    assert!(said.out.contains("NEWS"), "{}", said.out);
    desk.call("triage odd --against nowhere -- ./two_bugs")
        .exits(2);
}

#[test]
fn a_rebuilt_program_has_its_groups_by_names() {
    let desk = desk();
    desk.call("triage odd -o out -- ./two_bugs").exits(1);
    // The same function, with an instruction more before the one that crashes.
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/programs");
    let source = std::fs::read_to_string(source.join("two_bugs.c")).unwrap();
    let moved = source.replace(
        "*nowhere = 2;",
        "static volatile int p; p = 7; *nowhere = 2;",
    );
    let file = desk.write("moved.c", moved);
    desk.compile(file.to_str().unwrap(), "two_bugs");
    let words = "triage odd even --against out --json -- ./two_bugs";
    let result = desk.call(words).exits(1).json();
    let groups = result["groups"].as_array().unwrap();
    let of = |size: u64| groups.iter().find(|group| group["size"] == size).unwrap();
    assert_eq!(
        (&of(1)["new"], &of(1)["same_by"]),
        (&false.into(), &"names".into())
    );
    assert_eq!(of(2)["new"], true);
    let result = desk.call("check out --json -- ./two_bugs").exits(1).json();
    assert_eq!(result["groups"][0]["status"], "same");
    assert_ne!(
        result["groups"][0]["major"],
        result["groups"][0]["now"]["major"]
    );
}

#[test]
fn muted_groups_are_shown_and_do_not_count() {
    let desk = desk();
    let all = desk
        .call("triage odd even --json -- ./two_bugs")
        .exits(1)
        .json();
    let major = |at: usize| all["groups"][at]["major"].as_str().unwrap();
    desk.write("known", format!("{}  # for years\n", major(0)));
    let words = "triage odd even --known known -- ./two_bugs";
    let said = desk.call(words).exits(1);
    assert_eq!(said.out.matches("muted").count(), 1, "{}", said.out);
    let stable = all["groups"][1]["stable"].as_str().unwrap();
    desk.write("known", format!("{}\nstable:{stable}\n", major(0)));
    desk.call(words).exits(4);
    desk.call("triage healthy --known known -- ./two_bugs")
        .exits(0);
    desk.write("known", "# fine\nstable:nonsense\n");
    let error = desk.call(&format!("--json {words}")).exits(2).json();
    let message = error["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("known, line 2: \"stable:nonsense\""),
        "{message}"
    );
}

#[test]
fn what_a_build_with_other_sanitizers_shows_is_neither_new_nor_fixed() {
    let desk = Desk::new();
    let source = desk.write(
        "frail.c",
        "#include <stdio.h>\n#include <stdlib.h>\nchar *volatile held;\n\
         int main(int argc, char **argv) {\n    \
         held = malloc(4);\n    int first = getchar();\n    (void)argv;\n    \
         if (first == 'k') held[3 + argc] = 1;\n    \
         if (first == 'w') *(volatile char *)8 = 1;\n    \
         free(held);\n    return 0;\n}\n",
    );
    for (name, flag) in [("plain", "-O1"), ("asan", "-fsanitize=address")] {
        let mut compiler = desk.command("cc");
        compiler
            .args(["-g", "-O1", "-w", flag, "-o", name])
            .arg(&source);
        if !compiler.status().unwrap().success() {
            return needs::missing("ASan", "the compiler has no -fsanitize=address");
        }
    }
    for (name, first) in [("overflow", "k"), ("wild", "w"), ("healthy", "x")] {
        desk.write(name, first);
    }
    desk.call("triage wild -o of-plain -- ./plain").exits(1);
    desk.call("triage overflow -o of-asan -- ./asan").exits(1);
    // An overflow that the other build could not show may be in its directory under another class.
    let result = desk.call("triage overflow --against of-plain --json -- ./asan");
    let result = result.exits(1).json();
    let group = &result["groups"][0];
    assert_eq!(
        (&group["new"], &group["same_by"]),
        (&Value::Null, &Value::Null)
    );
    assert!(
        group["why"].as_str().unwrap().contains("other sanitizers"),
        "{group}"
    );
    assert_eq!(result["instrumentation"], serde_json::json!(["address"]));
    let said = desk
        .call("triage overflow --against of-plain -- ./asan")
        .exits(1);
    assert!(said.out.contains("cannot tell"), "{said:?}");
    assert!(
        said.err
            .contains("is new: the other directory is of builds"),
        "{said:?}"
    );
    // That nothing crashes in a build without the sanitizer does not mean that it is fixed.
    let words = "triage overflow --against of-asan";
    let result = desk
        .call(&format!("{words} --json -- ./plain"))
        .exits(0)
        .json();
    let told = &result["not_told"][0];
    assert_eq!(told["class"], "asan:heap-buffer-overflow", "{result}");
    assert!(
        told["hint"]
            .as_str()
            .unwrap()
            .contains("-fsanitize=address"),
        "{told}"
    );
    let said = desk.call(&format!("{words} -- ./plain")).exits(0).err;
    assert!(said.contains("cannot tell whether"), "{said}");
    assert!(said.contains("-fsanitize=address"), "{said}");
    // Of the same build all can be told.
    let result = desk.call("triage healthy --against of-asan --json -- ./asan");
    assert_eq!(result.exits(0).json()["not_told"], serde_json::json!([]));
}
