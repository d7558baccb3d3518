//! The memory map of a process, as `/proc/PID/maps` gives it.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// One line of `/proc/PID/maps`: a range of addresses and what stands behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// Whether it can be read.
    pub readable: bool,
    /// Whether it can be written.
    pub writable: bool,
    /// Whether it can be executed.
    pub executable: bool,
    /// Where in the file it begins, in bytes.
    pub offset: u64,
    /// The file's inode; 0 where no file stands behind it.
    pub inode: u64,
    /// The file's path, or the kernel's name (`[stack]`, `[heap]`, `[vdso]`); may be empty.
    pub path: PathBuf,
}

impl Mapping {
    /// Whether a file stands behind it.
    pub fn is_file(&self) -> bool {
        self.inode != 0
    }

    /// Whether it can be accessed at all; a guard region cannot.
    pub fn is_accessible(&self) -> bool {
        self.readable || self.writable || self.executable
    }

    /// The file's path without the kernel's ` (deleted)`.
    pub fn file_path(&self) -> PathBuf {
        let bytes = self.path.as_os_str().as_bytes();
        let bytes = bytes.strip_suffix(b" (deleted)").unwrap_or(bytes);
        PathBuf::from(OsString::from_vec(bytes.to_vec()))
    }

    /// The base name of the file, or the kernel's name.
    pub fn base_name(&self) -> String {
        let path = self.file_path();
        let name = path.file_name().unwrap_or(path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    fn parse(line: &[u8]) -> Option<Mapping> {
        let mut fields = line.splitn(6, |byte| *byte == b' ');
        let range = fields.next()?;
        let permissions = fields.next()?;
        let offset = hex(fields.next()?)?;
        let _device = fields.next()?;
        let inode = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
        let path = fields.next().unwrap_or_default().trim_ascii_start();
        let dash = range.iter().position(|byte| *byte == b'-')?;
        let (start, end) = (hex(&range[..dash])?, hex(&range[dash + 1..])?);
        if start >= end {
            return None;
        }
        let may = |index: usize, letter: u8| permissions.get(index) == Some(&letter);
        Some(Mapping {
            start,
            end,
            readable: may(0, b'r'),
            writable: may(1, b'w'),
            executable: may(2, b'x'),
            offset,
            inode,
            path: unescape(path),
        })
    }
}

/// The kernel writes a line feed in a path as `\012`, and nothing else so.
fn unescape(path: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((first, behind)) = rest.split_first() {
        if let Some(behind) = rest.strip_prefix(b"\\012") {
            bytes.push(b'\n');
            rest = behind;
        } else {
            bytes.push(*first);
            rest = behind;
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

fn hex(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The memory map of a process, ascending by address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maps(Vec<Mapping>);

impl Maps {
    /// Reads the text of `/proc/PID/maps`. It is hostile input (a path may hold anything): a line
    /// that is not a mapping is skipped.
    pub fn parse(text: &[u8]) -> Maps {
        let mut mappings: Vec<Mapping> = text
            .split(|byte| *byte == b'\n')
            .filter_map(Mapping::parse)
            .collect();
        mappings.sort_by_key(|mapping| mapping.start);
        Maps(mappings)
    }

    /// The map of a live process or thread; empty where it cannot be read.
    pub fn of(pid: nix::unistd::Pid) -> Maps {
        let path = format!("/proc/{pid}/maps");
        std::fs::read(Path::new(&path))
            .map(|text| Maps::parse(&text))
            .unwrap_or_default()
    }

    /// The mapping that holds `address`.
    pub fn find(&self, address: u64) -> Option<&Mapping> {
        let behind = self.0.partition_point(|mapping| mapping.start <= address);
        let mapping = self.0.get(behind.checked_sub(1)?)?;
        (address < mapping.end).then_some(mapping)
    }

    /// Whether the code at `address` can be executed.
    pub fn is_executable(&self, address: u64) -> bool {
        self.find(address).is_some_and(|mapping| mapping.executable)
    }

    /// Whether nothing is known of the process's memory.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All mappings, ascending by address.
    pub fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.0.iter()
    }
}
