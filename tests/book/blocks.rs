//! Blocks of code in Markdown.

/// A block of code.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    /// The line of its fence, from 1.
    pub line: usize,
    /// What stands behind the fence: its language.
    pub language: String,
    /// Its lines.
    pub lines: Vec<String>,
    /// Why it is not run, where a comment above it says so.
    pub not_run: Option<String>,
}

/// A command, and what it says.
#[derive(Debug, PartialEq, Eq)]
pub struct Command {
    /// What is typed.
    pub text: String,
    /// What stands behind it; `None` where nothing is said of that.
    pub said: Option<Vec<String>>,
}

/// All blocks of a text.
pub fn blocks(text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    let mut before = "";
    for (index, line) in text.lines().enumerate() {
        match (&mut open, line.trim_start().strip_prefix("```")) {
            (None, Some(language)) => {
                let reason = before.trim().strip_prefix("<!-- not run: ");
                open = Some(Block {
                    line: index + 1,
                    language: language.trim().to_owned(),
                    lines: Vec::new(),
                    not_run: reason.and_then(|rest| Some(rest.strip_suffix(" -->")?.to_owned())),
                });
            }
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(block), None) => block.lines.push(line.to_owned()),
            (None, None) => {}
        }
        before = line;
    }
    assert!(open.is_none(), "a block has no end: {open:?}");
    found
}

impl Block {
    /// Its commands; none where it is no block of a shell.
    pub fn commands(&self) -> Vec<Command> {
        match self.language.as_str() {
            "sh" => self.of_script(),
            "console" => self.of_session(),
            _ => Vec::new(),
        }
    }

    fn of_script(&self) -> Vec<Command> {
        let mut commands = Vec::new();
        let mut text = String::new();
        for line in &self.lines {
            text.push_str(line);
            if line.ends_with('\\') {
                text.push('\n');
            } else if !text.trim().is_empty() && !text.trim().starts_with('#') {
                let text = std::mem::take(&mut text);
                commands.push(Command { text, said: None });
            }
            if !line.ends_with('\\') {
                text.clear();
            }
        }
        commands
    }

    fn of_session(&self) -> Vec<Command> {
        let mut commands: Vec<Command> = Vec::new();
        for line in &self.lines {
            match (line.strip_prefix("$ "), commands.last_mut()) {
                (Some(text), _) => commands.push(Command {
                    text: text.to_owned(),
                    said: Some(Vec::new()),
                }),
                (None, Some(last)) => last.said.iter_mut().for_each(|one| one.push(line.clone())),
                (None, None) => panic!("line {}: no command before {line}", self.line),
            }
        }
        commands
    }

    /// Whether a command of it is one of ddfuzz.
    pub fn calls_ddfuzz(&self) -> bool {
        let calls = |command: &Command| !super::lines::calls(&command.text).is_empty();
        self.commands().iter().any(calls)
    }
}

#[test]
fn blocks_and_their_reasons_are_read() {
    let text =
        "a\n```sh\nx \\\n  y\n# z\n\nw\n```\n<!-- not run: why -->\n```console\n$ c\nd\n$ e\n```\n";
    let [script, session] = &blocks(text)[..] else {
        panic!("two blocks");
    };
    let texts: Vec<String> = script.commands().into_iter().map(|one| one.text).collect();
    assert_eq!(texts, ["x \\\n  y", "w"]);
    assert_eq!((script.line, &script.not_run), (2, &None));
    assert_eq!(session.not_run.as_deref(), Some("why"));
    let said: Vec<_> = session.commands().into_iter().map(|one| one.said).collect();
    assert_eq!(said, [Some(vec!["d".to_owned()]), Some(vec![])]);
}
