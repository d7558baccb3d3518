//! Generates large seeds, which are the same in every run.

/// A generator of pseudo-random numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn letter(&mut self) -> char {
        char::from(b'a' + self.below(26) as u8)
    }
}

/// Generates programs in the language of `script.c`, with superfluous blanks.
pub fn scripts() -> Vec<Vec<u8>> {
    [10, 40, 120].map(script).to_vec()
}

fn script(statements: u64) -> Vec<u8> {
    let mut numbers = Numbers(statements);
    let mut text = String::new();
    for _ in 0..statements {
        let (name, value) = (numbers.letter(), numbers.below(9999));
        let blanks = " ".repeat(numbers.below(12) as usize);
        text += &match numbers.below(5) {
            0 | 1 => format!("let {name} ={blanks} {value};\n"),
            2 => format!("print {name}{blanks};\n"),
            3 => format!("repeat 2 {{{blanks} let {name} = {value}; print {name}; }}\n\n"),
            _ => format!("defer {{ let {name} = {value};{blanks} }}\n"),
        };
    }
    text.into_bytes()
}

/// Generates trees of tagged values in the format of `tree.c`: lists of texts and numbers.
pub fn trees() -> Vec<Vec<u8>> {
    [6, 40, 90].map(tree).to_vec()
}

fn tree(lists: u64) -> Vec<u8> {
    let mut numbers = Numbers(lists);
    let mut all = b"v1".to_vec();
    for _ in 0..lists {
        let mut inside = Vec::new();
        for _ in 0..numbers.below(4) {
            let len = numbers.below(20) as usize;
            inside.extend(value(b'T', &vec![b'x'; len]));
        }
        inside.extend(value(b'N', &[0, 0, 0, numbers.below(200) as u8]));
        all.extend(value(b'L', &inside));
    }
    all
}

fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let len = u16::try_from(content.len()).expect("contents are short");
    [&[tag], &len.to_be_bytes()[..], content].concat()
}
