//! All command lines of ddfuzz in the documents parse, those of blocks that are not run, too.

use std::path::Path;

use clap::error::ErrorKind;
use ddfuzz::cli::Program;

use crate::blocks::blocks;
use crate::documents;

/// Words of a shell's command line, up to what ends or redirects the command; a word that is not
/// quoted says so.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut chars = line.chars().peekable();
    let mut skips = false;
    while let Some(one) = chars.next() {
        match one {
            '\'' | '"' => {
                let text = word.get_or_insert_default();
                text.extend(chars.by_ref().take_while(|next| *next != one));
            }
            '#' if word.is_none() => break,
            '\\' if chars.peek() == Some(&'\n') => drop(chars.next()),
            ' ' | '\n' | ';' | '|' | '&' | '(' | ')' | '>' | '<' => {
                if let Some(word) = word.take()
                    && !std::mem::take(&mut skips)
                {
                    commands.last_mut().expect("never empty").push(word);
                }
                match one {
                    ' ' | '\n' => {}
                    // Where it goes is no argument.
                    '>' | '<' => skips = true,
                    _ => {
                        commands.push(Vec::new());
                        skips = false;
                    }
                }
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    if let Some(word) = word
        && !skips
    {
        commands.last_mut().expect("never empty").push(word);
    }
    commands
}

/// A call of ddfuzz: the program, and its words without its name.
type Call = (Program, Vec<String>);

/// The calls of ddfuzz in a line of a shell.
pub fn calls(line: &str) -> Vec<Call> {
    commands(line)
        .iter()
        .filter_map(|words| call(words))
        .collect()
}

fn call(words: &[String]) -> Option<Call> {
    let is_before = |word: &String| {
        let assigns = word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty()
                && name
                    .chars()
                    .all(|one| one.is_ascii_uppercase() || one == '_')
        });
        assigns || word == "$" || word == "do" || word.ends_with('$') && word.starts_with("host")
    };
    let from = words.iter().position(|word| !is_before(word))?;
    let words: Vec<&str> = words[from..].iter().map(String::as_str).collect();
    let (program, rest) = match &words[..] {
        // A line of a manifest.
        [_, "=", ..] => return None,
        ["ddfuzz", rest @ ..] => (Program::Ddfuzz, rest),
        ["cargo", "run", "--", rest @ ..] => (Program::Ddfuzz, rest),
        ["cargo", "ddfuzz", rest @ ..] | ["cargo-ddfuzz", rest @ ..] => {
            (Program::CargoDdfuzz, rest)
        }
        _ => return None,
    };
    Some((program, rest.iter().map(|&word| word.to_owned()).collect()))
}

/// Why the command line does not take these words.
fn refused((program, words): &Call) -> Option<clap::Error> {
    let words = std::iter::once(program.name().to_owned()).chain(words.iter().cloned());
    let error = program.command().try_get_matches_from(words).err()?;
    let is_help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    (!is_help).then_some(error)
}

#[test]
fn each_command_line_of_a_block_parses() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (file, text) in documents() {
        for block in blocks(&text) {
            let commands = match block.language.as_str() {
                // A screen; what is typed stands behind a dollar.
                "text" => block
                    .lines
                    .iter()
                    .filter_map(|line| line.strip_prefix("$ "))
                    .map(str::to_owned)
                    .collect(),
                _ => block
                    .commands()
                    .into_iter()
                    .map(|one| one.text)
                    .collect::<Vec<_>>(),
            };
            for call in commands.iter().flat_map(|command| calls(command)) {
                count += 1;
                if let Some(error) = refused(&call) {
                    wrong.push(format!(
                        "{}:{}: {:?}\n{error}",
                        file.display(),
                        block.line,
                        call.1
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 70, "only {count} command lines were found");
}

/// The calls that stand between backquotes in the text of a document, with their lines. Words that
/// stand for others (`…`, `A|B`) are taken apart, or left out.
fn spans(text: &str) -> Vec<(usize, Call)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        for span in line.split('`').skip(1).step_by(2).filter(|_| !in_code) {
            let span = span
                .replace("\\|", "|")
                .replace(['…', '[', ']'], " ")
                .replace("...", " ");
            let alternatives = match span.split_whitespace().find(|word| word.contains('|')) {
                None => vec![span.clone()],
                Some(word) => word.split('|').map(|one| span.replace(word, one)).collect(),
            };
            let calls = alternatives.iter().flat_map(|one| calls(one));
            found.extend(calls.map(|call| (index + 1, call)));
        }
    }
    found
}

#[test]
fn each_command_in_a_sentence_names_what_there_is() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (file, text) in documents() {
        for (line, call) in spans(&text) {
            count += 1;
            // A sentence may leave away what it is not about, and write `N` for a number.
            let stands_for_others =
                |word: &String| word.chars().all(|one| one.is_ascii_uppercase());
            let has_names = call.1.iter().any(stands_for_others);
            let is_part = |error: &clap::Error| match error.kind() {
                ErrorKind::MissingRequiredArgument
                | ErrorKind::MissingSubcommand
                | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => true,
                ErrorKind::InvalidValue | ErrorKind::ValueValidation => has_names,
                _ => false,
            };
            if let Some(error) = refused(&call).filter(|error| !is_part(error)) {
                wrong.push(format!("{}:{line}: {:?}\n{error}", file.display(), call.1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 60, "only {count} commands were found");
}

#[test]
fn wrong_options_are_found_out() {
    for wrong in [
        "ddfuzz run --tiem 10s -- ./program",
        "cargo ddfuzz mend parse",
        "A=b ddfuzz export x --as haiku # why not",
        "cd x && ddfuzz min > out",
    ] {
        let calls = calls(wrong);
        assert_eq!(calls.len(), 1, "{wrong}");
        assert!(refused(&calls[0]).is_some(), "{wrong}");
    }
    assert!(calls("ls ddfuzz-out; echo 'ddfuzz run'").is_empty());
    let right = calls("x | ddfuzz watch a --until 'no new for 1h' -- ./b @@ > log # c");
    assert_eq!(
        right[0].1,
        ["watch", "a", "--until", "no new for 1h", "--", "./b", "@@"]
    );
    assert!(refused(&right[0]).is_none());
}

/// The lines of all blocks of a section of README that a shell runs.
fn commands_of(section: &str) -> Vec<String> {
    let readme = documents()
        .into_iter()
        .find(|(file, _)| file == Path::new("README.md"));
    let (_, text) = readme.expect("there is a README");
    let heading = format!("\n## {section}\n");
    let (_, from) = text.split_once(&heading).expect("a heading");
    let section = from.split("\n## ").next().unwrap_or(from);
    let shell = blocks(section);
    let shell = shell.iter().filter(|block| block.language == "sh");
    shell.flat_map(|block| block.lines.clone()).collect()
}

#[test]
fn readme_sets_everything_up_by_two_commands_and_installs_by_one() {
    assert_eq!(
        commands_of("Set-up"),
        ["cargo run -- run --target nroff --time 10s", "./test"]
    );
    assert_eq!(commands_of("Install"), ["cargo install --path ."]);
    // That installs all programs that README calls.
    let manifest = std::fs::read_to_string(crate::tree::root().join("Cargo.toml")).unwrap();
    for program in Program::ALL {
        let file = crate::tree::root().join(match program {
            Program::Ddfuzz => "src/main.rs".to_owned(),
            other => format!("src/bin/{}.rs", other.name()),
        });
        assert!(file.is_file(), "{}", program.name());
    }
    assert!(
        manifest.contains("default = ["),
        "all features are there by default"
    );
}
