//! `ddfuzz man`: the pages are whole, and render.

use std::path::Path;
use std::process::Command;

use clap::builder::Command as CommandLine;
use ddfuzz::cli::Program;

use crate::ddfuzz::Desk;
use crate::needs;

/// The visible long options of a command and of all below it, by the name of the page.
fn options(command: &CommandLine, found: &mut Vec<(String, Vec<String>)>) {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let visible = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let long = visible.filter_map(|arg| Some(format!("--{}", arg.get_long()?)));
    found.push((name.to_owned(), long.collect()));
    for below in command.get_subcommands() {
        options(below, found);
    }
}

fn pages() -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for program in Program::ALL {
        let mut command = program.command().disable_help_subcommand(true);
        command.build();
        options(&command, &mut found);
    }
    found
}

#[test]
fn each_command_has_a_page_with_each_option() {
    let desk = Desk::new();
    let said = desk.call("man --to man1 --json").exits(0).json();
    let pages = pages();
    assert!(pages.len() > 25, "{}", pages.len());
    let files = said["files"].as_array().unwrap();
    assert_eq!(files.len(), pages.len());
    for file in files {
        assert!(Path::new(file.as_str().unwrap()).is_absolute(), "{file}");
    }
    for (name, options) in pages {
        let text = String::from_utf8(desk.read(&format!("man1/{name}.1"))).unwrap();
        let text = text
            .replace("\\-", "-")
            .replace("\\fR", " ")
            .replace("\\fB", "");
        for option in options {
            assert!(text.contains(&option), "{name}: {option}");
        }
    }
}

#[test]
fn pages_render_with_examples_and_without_warnings() {
    let Some(groff) = needs::program("groff") else {
        return;
    };
    let desk = Desk::new();
    desk.call("man --to .").exits(0);
    for (name, _) in pages() {
        let render = Command::new(&groff)
            .args(["-man", "-Tascii", "-P-cbou", "-ww", "-rLL=200n"])
            .arg(desk.file(&format!("{name}.1")))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&render.stdout);
        assert!(
            render.status.success() && render.stderr.is_empty(),
            "{render:?}"
        );
        assert!(text.contains("SYNOPSIS"), "{name}: {text}");
        if name == "ddfuzz-merge" {
            assert!(
                text.contains("\n       ddfuzz merge host1-out host2-out -o all-out\n"),
                "{text}"
            );
        }
        if name == "ddfuzz" {
            // However the line is justified.
            let words: Vec<&str> = text.split_whitespace().collect();
            assert!(words.join(" ").contains("EXIT STATUS 0 success"), "{text}");
        }
    }
}

#[test]
fn the_pages_of_others_are_not_replaced() {
    let desk = Desk::new();
    desk.write("ddfuzz-run.1", "mine");
    let said = desk.call("man --to .").exits(2);
    assert!(said.err.contains("--force"), "{said:?}");
    assert!(!desk.file("ddfuzz.1").exists());
    desk.call("man --to . --force").exits(0);
    assert_ne!(desk.read("ddfuzz-run.1"), b"mine");
}

#[test]
fn help_has_no_colour_where_none_is_wanted() {
    let desk = Desk::new();
    let colored = |words: &str| {
        let said = desk.call(words);
        said.out.contains('\x1b') || said.err.contains('\x1b')
    };
    assert!(colored("--color always run --help"));
    assert!(colored("run --color=always --nope"));
    assert!(!colored("--color never run --help"));
    assert!(!colored("run --help"));
    assert!(!colored("run --nope"));
}
