//! A strict reader of JSON, for the case's program.

/// A value.
#[derive(Debug, PartialEq, Eq)]
pub enum Value {
    Null,
    Bool(bool),
    Number,
    Text(Vec<u8>),
    List(Vec<Value>),
    Object(Vec<(Vec<u8>, Value)>),
}

/// Reads a whole text; `None` where it is no JSON.
pub fn read(text: &[u8]) -> Option<Value> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value()?;
    reader.blanks();
    (reader.at == text.len()).then_some(value)
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn eat(&mut self, wanted: &[u8]) -> Option<()> {
        self.text[self.at..]
            .starts_with(wanted)
            .then(|| self.at += wanted.len())
    }

    fn value(&mut self) -> Option<Value> {
        self.blanks();
        Some(match self.peek()? {
            b'n' => self.eat(b"null").map(|()| Value::Null)?,
            b't' => self.eat(b"true").map(|()| Value::Bool(true))?,
            b'f' => self.eat(b"false").map(|()| Value::Bool(false))?,
            b'"' => Value::Text(self.string()?),
            b'[' => Value::List(self.items(b']', Reader::value)?),
            b'{' => Value::Object(self.items(b'}', Reader::member)?),
            _ => self.number()?,
        })
    }

    fn items<T>(&mut self, close: u8, item: fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.at += 1;
        let mut items = Vec::new();
        self.blanks();
        if self.peek()? == close {
            self.at += 1;
            return Some(items);
        }
        loop {
            items.push(item(self)?);
            self.blanks();
            self.at += 1;
            match self.text[self.at - 1..].first()? {
                b',' => {}
                byte if *byte == close => return Some(items),
                _ => return None,
            }
        }
    }

    fn member(&mut self) -> Option<(Vec<u8>, Value)> {
        self.blanks();
        let name = self.string()?;
        self.blanks();
        self.eat(b":")?;
        Some((name, self.value()?))
    }

    fn string(&mut self) -> Option<Vec<u8>> {
        self.eat(b"\"")?;
        let start = self.at;
        while self.peek()? != b'"' {
            self.at += 1 + usize::from(self.peek() == Some(b'\\'));
        }
        self.at += 1;
        Some(self.text[start..self.at - 1].to_vec())
    }

    fn number(&mut self) -> Option<Value> {
        let digits = |reader: &mut Self| {
            let start = reader.at;
            while reader.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                reader.at += 1;
            }
            (reader.at > start).then_some(())
        };
        let _ = self.eat(b"-");
        digits(self)?;
        if self.eat(b".").is_some() {
            digits(self)?;
        }
        Some(Value::Number)
    }
}
