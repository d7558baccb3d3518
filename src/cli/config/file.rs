//! Parser of the settings file: TOML text to settings with their lines. Only this file uses the
//! crate `toml`. `fuzz/fuzz_targets/config.rs` includes it.

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// A line `key = value` of the settings file `ddfuzz.toml`.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    pub key: String,
    /// Number of the line of this setting in the settings file, from 1.
    pub line: usize,
    pub value: Value,
}

/// The value of a setting in `ddfuzz.toml`.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(String),
    /// A number in the settings file, as the text that a user would type for it on the command
    /// line.
    Number(String),
    Flag(bool),
    List(Vec<Value>),
    /// A table of the settings file, with its settings in the order of the file.
    Table(Vec<Setting>),
    /// A date or time of day in the settings file, which no option accepts.
    DateTime,
}

impl Value {
    /// Returns the kind of the value as a phrase for error messages, such as `a text` or `a
    /// number`.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "a text",
            Value::Number(_) => "a number",
            Value::Flag(_) => "true or false",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
            Value::DateTime => "a date",
        }
    }
}

/// A syntax error in the settings file.
#[derive(Debug)]
pub struct NotToml {
    /// Number of the line with the syntax error, from 1.
    pub line: usize,
    pub why: String,
}

/// Parses the text of a settings file (TOML) into its settings, in the order of the file. Fails at
/// the first syntax error.
pub fn parse(text: &str) -> Result<Vec<Setting>, NotToml> {
    let line = |at: usize| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
    let table = DeTable::parse(text).map_err(|error| NotToml {
        line: error.span().map_or(1, |span| line(span.start)),
        why: error.message().to_owned(),
    })?;
    parse_table(table.get_ref(), &line)
}

fn parse_table(
    table: &DeTable<'_>,
    line: &dyn Fn(usize) -> usize,
) -> Result<Vec<Setting>, NotToml> {
    let mut entries: Vec<(&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let setting = |(key, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
        Ok(Setting {
            key: key.get_ref().to_string(),
            line: line(key.span().start),
            value: parse_value(value, line)?,
        })
    };
    entries.into_iter().map(setting).collect()
}

fn parse_value(
    value: &Spanned<DeValue<'_>>,
    line: &dyn Fn(usize) -> usize,
) -> Result<Value, NotToml> {
    Ok(match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => {
            let read = i128::from_str_radix(number.as_str(), number.radix());
            let number = read.map_err(|_| NotToml {
                line: line(value.span().start),
                why: format!("{} is not a number that can be used", number.as_str()),
            })?;
            Value::Number(number.to_string())
        }
        DeValue::Float(number) => Value::Number(number.as_str().to_owned()),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(_) => Value::DateTime,
        DeValue::Array(all) => {
            let all: Result<Vec<Value>, NotToml> =
                all.iter().map(|one| parse_value(one, line)).collect();
            Value::List(all?)
        }
        DeValue::Table(table) => Value::Table(parse_table(table, line)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_know_their_lines_and_keep_their_order() {
        let read = parse("\n[run]\ntime = \"9s\"\nruns = 0x10\n[min]\nargs = true\n").unwrap();
        let [run, min] = &read[..] else {
            panic!("two tables: {read:?}");
        };
        assert_eq!((run.key.as_str(), run.line, min.line), ("run", 2, 5));
        let Value::Table(settings) = &run.value else {
            panic!("a table: {run:?}");
        };
        assert_eq!((settings[0].key.as_str(), settings[0].line), ("time", 3));
        assert_eq!(settings[1].value, Value::Number("16".to_owned()));
    }

    #[test]
    fn what_is_no_toml_is_refused_with_its_line() {
        let error = parse("[run]\ntime = \n").unwrap_err();
        assert_eq!(error.line, 2, "{error:?}");
        for text in [
            "[run",
            "a = 1\na = 2",
            "a = 99999999999999999999999999999999999999999",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
