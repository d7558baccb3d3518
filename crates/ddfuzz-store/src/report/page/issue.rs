//! A text for an issue on one group, in Markdown.

use super::data::GroupReport;
use super::group::kind_noun;
use crate::report::ci::fenced;
use crate::report::size;
use crate::report::text::{cut, escaped_markdown as escaped, markdown_code as code};

/// Maximum size, in bytes, of a reproducer that the text of an issue contains in base64.
const INLINE: usize = 4096;

/// Formats a group as the text of an issue in Markdown, ready to paste: title, message, stacks, the
/// first source excerpt, the reproducer in base64 and the commands that show the crash. Its first
/// line is a comment that marks the text as written by ddfuzz. `reproducer` is the smallest known
/// failing input; if it is larger than 4 KiB, the text only says that the file is to be attached.
pub fn issue(group: &GroupReport, reproducer: &[u8]) -> String {
    let summary = &group.summary;
    let place = summary.place.as_ref();
    let place = place.map_or_else(String::new, |place| {
        format!(" in {}", code(&cut(place, 200)))
    });
    let mut text = format!(
        "<!-- ddfuzz -->\n# {}{place}\n\n{}: {} ({}, {}). Seen in {}.\n\n",
        escaped(&summary.sentence),
        capital(kind_noun(&summary.kind)),
        code(&summary.class),
        escaped(&summary.severity_reason),
        escaped(&format!("severity {}", summary.severity)),
        size::counted(summary.runs_seen, "run"),
    );
    if let Some(message) = &group.message {
        text += &fenced(message);
    }
    for stack in &group.stacks {
        let lines: Vec<&str> = stack.lines.iter().map(|line| line.text.as_str()).collect();
        text += &format!(
            "**{}**\n\n{}",
            capital(&stack.title),
            fenced(&lines.join("\n"))
        );
    }
    for source in group.sources.iter().take(1) {
        let lines = (source.first..).zip(&source.lines).map(|(number, line)| {
            let mark = if number == source.line { '>' } else { ' ' };
            format!("{mark} {number:>5} | {line}").trim_end().to_owned()
        });
        let lines: Vec<String> = lines.collect();
        text += &format!("{}:\n\n{}", code(&source.file), fenced(&lines.join("\n")));
    }
    text += &format!(
        "**Input**: {}; {}.\n\n",
        size::bytes(reproducer.len() as u64),
        escaped(&group.claim)
    );
    text += &input(reproducer, &summary.major);
    for command in &group.commands {
        let place = match command.name.as_str() {
            "shell" => "In the output directory of ddfuzz",
            "gdb" => "The same in gdb",
            "cargo" => "With cargo-fuzz",
            _ => continue,
        };
        text += &format!("{place}: {}\n\n", code(&command.command));
    }
    text.trim_end().to_owned() + "\n"
}

/// Formats the first 32 bytes of the reproducer as a line of hex, and a shell command that writes
/// the reproducer to the file `crash-MAJOR`; if it is larger than 4 KiB, only says that the file is
/// to be attached.
fn input(reproducer: &[u8], major: &str) -> String {
    if reproducer.len() > INLINE {
        return "It is too long for this text; attach the file.\n\n".to_owned();
    }
    let lines = crate::report::export::base64(reproducer);
    let shown = crate::report::text::hex_line(reproducer, 32);
    format!(
        "{}To write it to a file:\n\n{}",
        fenced(&shown),
        fenced(&format!(
            "base64 -d > crash-{major} <<'END'\n{}\nEND",
            lines.trim_end()
        )),
    )
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(characters).collect()
}
