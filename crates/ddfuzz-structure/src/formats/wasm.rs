//! Reader for WebAssembly modules: sections of counted items. Types and functions are referred to
//! by their indices, which are computed anew when others are deleted.

use super::image::rest;
use crate::node::{Group, Label, Meaning, Node, Part};
use crate::number::Encoding;
use crate::reader::Reader;

/// Size of the signature and the version of a module, in bytes.
const HEAD: usize = 8;
/// First byte of the section of function types.
const TYPES: u8 = 1;
/// First byte of the section of imports.
const IMPORTS: u8 = 2;
/// First byte of the section that states the type of each function.
const FUNCTIONS: u8 = 3;
/// First byte of the section of exports.
const EXPORTS: u8 = 7;
/// First byte of the section that states the start function.
const START: u8 = 8;
/// First byte of the section of element segments, which put functions into tables.
const ELEMENTS: u8 = 9;
/// First byte of the section of function bodies.
const CODE: u8 = 10;
/// First byte of the section of data segments.
const DATA: u8 = 11;
/// First byte of the section that states the number of data segments.
const DATA_COUNT: u8 = 12;
/// First byte of a function type.
const FUNCTION_TYPE: u8 = 0x60;
/// Kind of those imports and exports that are functions.
const FUNCTION: u8 = 0;
/// Instruction `end`, with which each expression ends.
const END: u8 = 0x0b;
/// The shortest body that is valid for a function of any type: no locals, `unreachable`, and `end`.
const LEAST_BODY: &[u8] = &[0, 0, END];

/// State of reading a WebAssembly module: labels (ids in the file's tree) of what indices in the
/// module refer to.
struct Module<'a> {
    text: &'a [u8],
    /// Labels (ids in the file's tree) of the function types, by their indices in the file. A
    /// written index is the number of function types before it that remain.
    types: Vec<Label>,
    /// Labels (ids in the file's tree) of the functions, imported ones first, by their indices in
    /// the file. A written index is the number of functions before it that remain.
    functions: Vec<Label>,
    /// Number of imported functions of the module, whose indices precede those of its own
    /// functions.
    imported: usize,
    /// Label (id in the file's tree) of the group of nodes of all data segments of the module.
    data: Label,
}

/// What an index in a module refers to: a function type or a function.
#[derive(Clone, Copy)]
enum Index {
    Type,
    Function,
}

/// Reads a WebAssembly module into the nodes of its tree. From the first section that cannot be
/// read, all bytes are one payload (changeable bytes). `None` if the text is shorter than the
/// module's header.
pub fn wasm(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let head = text.get(..HEAD)?;
    let mut module = Module {
        text,
        types: Vec::new(),
        functions: Vec::new(),
        imported: 0,
        data: reader.label(),
    };
    let sections = module.sections(reader);
    let mut nodes = vec![Node::fixed(head)];
    let mut at = HEAD;
    for (content, end) in sections {
        if !reader.count_part() {
            break;
        }
        let inner = reader.label();
        let bytes = &text[content..end];
        let section = module.section(reader, text[at], bytes);
        let size = Meaning::Length(inner);
        let section = vec![
            Node::fixed(&text[at..=at]),
            reader.number(Encoding::Varint, size, 0, &text[at + 1..content]),
            Group::new(inner, section).into(),
        ];
        nodes.push(Group::part(reader.label(), section).into());
        at = end;
    }
    Some(rest(nodes, text, at))
}

/// Reads the LEB128 number at offset `at` of `text`, and returns it with the offset after it;
/// `None` if there is no such number.
fn number(text: &[u8], at: usize) -> Option<(usize, usize)> {
    let (number, size) = Encoding::Varint.read(text.get(at..)?)?;
    Some((usize::try_from(number).ok()?, at + size))
}

/// Returns the offset `size` bytes after `at`; `None` if `text` ends before.
fn skip(text: &[u8], at: usize, size: usize) -> Option<usize> {
    at.checked_add(size).filter(|end| *end <= text.len())
}

/// Returns the offset after `count` successive LEB128 numbers, the first of which is at offset
/// `at`; `None` if one is cut off.
fn skip_numbers(text: &[u8], mut at: usize, count: usize) -> Option<usize> {
    for _ in 0..count {
        at = number(text, at)?.1;
    }
    Some(at)
}

/// Returns the offset after the vector of bytes (a size, and as many bytes, such as a name) that
/// begins at offset `at`; `None` if the text ends before.
fn skip_bytes(text: &[u8], at: usize) -> Option<usize> {
    let (size, at) = number(text, at)?;
    skip(text, at, size)
}

/// Returns the offset after the instruction at offset `at`; `None` if the instruction is unknown or
/// cut off.
fn skip_instruction(text: &[u8], at: usize) -> Option<usize> {
    let (code, at) = (*text.get(at)?, at + 1);
    let numbers = match code {
        0x02..=0x04 | 0x0c | 0x0d | 0x10 | 0x20..=0x26 | 0x3f..=0x42 | 0xd0 | 0xd2 => 1,
        0x11 | 0x28..=0x3e => 2,
        0x0e => {
            let (count, at) = number(text, at)?;
            return skip_numbers(text, at, count.checked_add(1)?);
        }
        0x1c => {
            let (count, at) = number(text, at)?;
            return skip_numbers(text, at, count);
        }
        0x43 => return skip(text, at, 4),
        0x44 => return skip(text, at, 8),
        0xfc => {
            let (code, at) = number(text, at)?;
            let numbers = match code {
                0..=7 => 0,
                8 | 10 | 12 | 14 => 2,
                9 | 11 | 13 | 15..=17 => 1,
                _ => return None,
            };
            return skip_numbers(text, at, numbers);
        }
        0xfb | 0xfd | 0xfe => return None,
        _ => 0,
    };
    skip_numbers(text, at, numbers)
}

/// Returns the offset after the constant expression at offset `at`, such as the offset of a
/// segment, which ends with its first `end`; `None` if it cannot be read.
fn skip_expression(text: &[u8], mut at: usize) -> Option<usize> {
    while *text.get(at)? != END {
        at = skip_instruction(text, at)?;
    }
    Some(at + 1)
}

/// Makes a payload node of `bytes`, which searches may delete and change; `None` if there are none.
fn payload(bytes: &[u8]) -> Option<Node> {
    (!bytes.is_empty()).then(|| Node::payload(bytes))
}

impl Module<'_> {
    /// Finds the sections of the module, and makes the labels (ids in the file's tree) of its types
    /// and functions. Returns, for each section, the offsets of its content and of its end.
    fn sections(&mut self, reader: &mut Reader) -> Vec<(usize, usize)> {
        let (mut at, mut sections) = (HEAD, Vec::new());
        let (mut types, mut functions) = (0, 0);
        while let Some((size, content)) = number(self.text, at + 1)
            && let Some(end) = skip(self.text, content, size)
        {
            let bytes = &self.text[content..end];
            let count = number(bytes, 0).map_or(0, |(count, _)| count.min(bytes.len()));
            match self.text[at] {
                TYPES => types = count,
                FUNCTIONS => functions = count,
                IMPORTS => self.imported = imported(bytes).unwrap_or_default(),
                _ => {}
            }
            sections.push((content, end));
            at = end;
        }
        self.types = (0..types).map(|_| reader.label()).collect();
        let functions = 0..self.imported + functions;
        self.functions = functions.map(|_| reader.label()).collect();
        sections
    }

    /// Returns the tree nodes of `text`, the content of a section of the kind `kind`; one payload
    /// (changeable bytes) if the section is of an unknown kind or cannot be read.
    fn section(&self, reader: &mut Reader, kind: u8, text: &[u8]) -> Vec<Node> {
        let nodes = reader.deeper(|reader| match kind {
            0 => counted(reader, text, 0).map(|(nodes, at)| rest(nodes, text, at)),
            START => {
                let (_, end) = number(text, 0)?;
                Some(vec![self.index(reader, Index::Function, &text[..end])])
            }
            DATA_COUNT => {
                let count = Meaning::Count(self.data);
                Some(vec![reader.number(Encoding::Varint, count, 0, text)])
            }
            TYPES | IMPORTS | FUNCTIONS | EXPORTS | ELEMENTS | CODE | DATA => {
                self.items(reader, kind, text)
            }
            _ => None,
        });
        nodes.unwrap_or_else(|| payload(text).into_iter().collect())
    }

    /// Returns the tree nodes of a section that consists of a count and as many items. An item can
    /// be deleted by itself; an item of the function section, which states a function's type, is
    /// deleted together with the body of the function. `None` if an item cannot be read, or the
    /// file has too many parts.
    fn items(&self, reader: &mut Reader, kind: u8, text: &[u8]) -> Option<Vec<Node>> {
        let (count, mut at) = number(text, 0)?;
        let list = match kind {
            DATA => self.data,
            _ => reader.label(),
        };
        let meaning = Meaning::Count(list);
        let head = reader.number(Encoding::Varint, meaning, 0, &text[..at]);
        let (mut items, mut imported) = (Vec::new(), 0);
        for index in 0..count {
            reader.count_part().then_some(())?;
            let function = self.functions.get(self.imported + index).copied();
            let own = reader.label();
            let ((nodes, end), label, part) = match kind {
                TYPES => (
                    function_type(reader, text, at)?,
                    self.types.get(index),
                    Part::Own,
                ),
                FUNCTIONS => {
                    let (_, end) = number(text, at)?;
                    let index = self.index(reader, Index::Type, &text[at..end]);
                    ((vec![index], end), None, Part::With(function?))
                }
                IMPORTS => {
                    let (item, is_function) = self.import(reader, text, at)?;
                    let label = is_function.then(|| self.functions.get(imported)).flatten();
                    imported += usize::from(is_function);
                    (item, label, Part::Own)
                }
                EXPORTS => (self.export(reader, text, at)?, None, Part::Own),
                ELEMENTS => (self.elements(reader, text, at)?, None, Part::Own),
                CODE => (
                    self.body(reader, text, at)?,
                    self.functions.get(self.imported + index),
                    Part::Own,
                ),
                _ => (data(reader, text, at)?, None, Part::Own),
            };
            let label = label.copied().unwrap_or(own);
            let part = Group {
                part,
                ..Group::new(label, nodes)
            };
            items.push(part.into());
            at = end;
        }
        Some(rest(vec![head, Group::new(list, items).into()], text, at))
    }

    /// Returns the tree node of the index `raw`, which refers to a type or function, as `of` says;
    /// fixed bytes if it refers to none.
    fn index(&self, reader: &Reader, of: Index, raw: &[u8]) -> Node {
        let labels = match of {
            Index::Type => &self.types,
            Index::Function => &self.functions,
        };
        let index = number(raw, 0).and_then(|(index, _)| labels.get(index));
        match index {
            Some(label) => {
                let meaning = Meaning::Present(labels[0], *label);
                reader.number(Encoding::Varint, meaning, 0, raw)
            }
            None => Node::fixed(raw),
        }
    }

    /// Reads the import at offset `at`: two names, a kind, and a type. Returns its nodes with the
    /// offset after it, and true if a function is imported; `None` if the text ends before.
    fn import(&self, reader: &mut Reader, text: &[u8], at: usize) -> Option<(Item, bool)> {
        let (mut nodes, middle) = counted(reader, text, at)?;
        let (name, end) = counted(reader, text, middle)?;
        nodes.extend(name);
        let (after, is_function) = skip_import(text, end)?;
        nodes.push(Node::fixed(&text[end..=end]));
        let described = &text[end + 1..after];
        nodes.push(match is_function {
            true => self.index(reader, Index::Type, described),
            false => Node::fixed(described),
        });
        Some(((nodes, after), is_function))
    }

    fn export(&self, reader: &mut Reader, text: &[u8], at: usize) -> Option<Item> {
        let (mut nodes, at) = counted(reader, text, at)?;
        let kind = *text.get(at)?;
        let (_, end) = number(text, at + 1)?;
        nodes.push(Node::fixed(&[kind]));
        nodes.push(match kind {
            FUNCTION => self.index(reader, Index::Function, &text[at + 1..end]),
            _ => Node::fixed(&text[at + 1..end]),
        });
        Some((nodes, end))
    }

    /// Reads an element segment, which puts functions into a table: its offset in the table, and
    /// the indices of the functions, each a part. `None` for other kinds of element segments.
    fn elements(&self, reader: &mut Reader, text: &[u8], at: usize) -> Option<Item> {
        let (0, start) = number(text, at)? else {
            return None;
        };
        let expression = skip_expression(text, start)?;
        let (count, mut end) = number(text, expression)?;
        let list = reader.label();
        let meaning = Meaning::Count(list);
        let mut nodes = vec![
            Node::fixed(&text[at..expression]),
            reader.number(Encoding::Varint, meaning, 0, &text[expression..end]),
        ];
        let mut items = Vec::new();
        for _ in 0..count {
            reader.count_part().then_some(())?;
            let (_, next) = number(text, end)?;
            let index = self.index(reader, Index::Function, &text[end..next]);
            items.push(Group::part(reader.label(), vec![index]).into());
            end = next;
        }
        nodes.push(Group::new(list, items).into());
        Some((nodes, end))
    }

    /// Reads the body of a function in the code section at offset `at`: its size, its locals, and
    /// its instructions, in which the indices of called functions are numbers that are computed
    /// anew. From the first unknown instruction on, the body is a payload (changeable bytes).
    /// Returns the nodes with the offset after the body; `None` if the text ends before it does.
    fn body(&self, reader: &mut Reader, text: &[u8], at: usize) -> Option<Item> {
        let (size, start) = number(text, at)?;
        let end = skip(text, start, size)?;
        let body = &text[start..end];
        let label = reader.label();
        let meaning = Meaning::Length(label);
        let size = reader.number(Encoding::Varint, meaning, 0, &text[at..start]);
        let (mut nodes, mut from) = (Vec::new(), 0);
        let mut next = number(body, 0).and_then(|(count, mut at)| {
            for _ in 0..count {
                at = skip(body, number(body, at)?.1, 1)?;
            }
            Some(at)
        });
        while let Some(at) = next.filter(|at| *at < body.len()) {
            next = skip_instruction(body, at);
            let of = match body[at] {
                0x10 | 0xd2 => Index::Function,
                0x11 => Index::Type,
                _ => continue,
            };
            let Some((_, after)) = number(body, at + 1) else {
                break;
            };
            nodes.push(Node::payload(&body[from..=at]));
            nodes.push(self.index(reader, of, &body[at + 1..after]));
            from = after;
        }
        nodes.extend(payload(&body[from..]));
        let body = Group {
            least: LEAST_BODY,
            ..Group::new(label, nodes)
        };
        Some((vec![size, body.into()], end))
    }
}

/// The tree nodes of an item that was read, such as an import, and the offset after the item.
type Item = (Vec<Node>, usize);

/// Reads the function type at offset `at`: the types of parameters and of results, each after their
/// count. Returns its nodes with the offset after it; `None` if no function type begins at `at`, or
/// the text ends before it does.
fn function_type(reader: &mut Reader, text: &[u8], at: usize) -> Option<Item> {
    (*text.get(at)? == FUNCTION_TYPE).then_some(())?;
    let mut nodes = vec![Node::fixed(&[FUNCTION_TYPE])];
    let (parameters, at) = counted(reader, text, at + 1)?;
    let (results, at) = counted(reader, text, at)?;
    nodes.extend(parameters.into_iter().chain(results));
    Some((nodes, at))
}

/// Reads the data segment at offset `at`: its offset in memory, if it has one, and its bytes.
/// `None` for segments of other memories.
fn data(reader: &mut Reader, text: &[u8], at: usize) -> Option<Item> {
    let (kind, start) = number(text, at)?;
    let expression = match kind {
        0 => skip_expression(text, start)?,
        1 => start,
        _ => return None,
    };
    let (bytes, end) = counted(reader, text, expression)?;
    let mut nodes = vec![Node::fixed(&text[at..expression])];
    nodes.extend(bytes);
    Some((nodes, end))
}

/// Reads a vector of bytes, such as a name: its size, and the bytes as a payload (changeable
/// bytes). `None` if the text ends before.
fn counted(reader: &mut Reader, text: &[u8], at: usize) -> Option<Item> {
    let (size, start) = number(text, at)?;
    let end = skip(text, start, size)?;
    let label = reader.label();
    let meaning = Meaning::Length(label);
    let nodes = vec![
        reader.number(Encoding::Varint, meaning, 0, &text[at..start]),
        Group::new(label, payload(&text[start..end]).into_iter().collect()).into(),
    ];
    Some((nodes, end))
}

/// Reads the kind and the type of the import's description at offset `at`; returns the offset after
/// it, and true if the import is a function. `None` if it cannot be read.
fn skip_import(text: &[u8], at: usize) -> Option<(usize, bool)> {
    let kind = *text.get(at)?;
    let limits = |at: usize| {
        let flags = *text.get(at)?;
        skip_numbers(text, at + 1, 1 + usize::from(flags & 1))
    };
    let end = match kind {
        FUNCTION => number(text, at + 1)?.1,
        1 => limits(at + 2)?,
        2 => limits(at + 1)?,
        3 => skip(text, at, 3)?,
        _ => return None,
    };
    Some((end, kind == FUNCTION))
}

/// Returns the number of functions among the imports in the import section `text`; `None` if an
/// import cannot be read.
fn imported(text: &[u8]) -> Option<usize> {
    let (count, mut at) = number(text, 0)?;
    let mut functions = 0;
    for _ in 0..count {
        let kind = skip_bytes(text, skip_bytes(text, at)?)?;
        let (end, is_function) = skip_import(text, kind)?;
        functions += usize::from(is_function);
        at = end;
    }
    Some(functions)
}
