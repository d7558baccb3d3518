//! `ddfuzz gen --preset`: the inputs of a study as files.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::{Written, WrittenFile, absolute, emit};
use crate::campaign::generator::{InputName, Preset};
use crate::cli::signals::stop_flag;
use crate::cli::{Exit, Failure, Output};
use crate::files::folder;
use crate::report::size;

/// Writes the inputs into `directory`, each under its name. What stands there already with the
/// right bytes is kept, so that the same command goes on where it was interrupted.
pub fn write(
    preset: Preset,
    seed: u64,
    count: Option<u64>,
    directory: &Path,
    output: &Output,
) -> Result<Exit, Failure> {
    let inputs = chosen(preset.inputs(seed).collect(), count);
    folder::create_all(directory)?;
    let stop = stop_flag()?;
    let mut files = Vec::new();
    for (at, name) in inputs.iter().enumerate() {
        let file = directory.join(name.to_string());
        let bytes = match file.symlink_metadata() {
            Ok(_) => {
                let bytes = same(name, &file)
                    .map_err(|error| Failure::file(&file, "cannot read", &error))?;
                bytes.ok_or_else(|| emit::exists(&file))?
            }
            Err(_) => emit::to_file(&file, Box::new(name.stream()), &stop)?,
        };
        output.detail(&format!("{} of {}: {name}", at + 1, inputs.len()));
        files.push(WrittenFile {
            file: absolute(&file),
            name: Some(name.to_string()),
            bytes,
        });
    }
    let bytes = files.iter().map(|file| file.bytes).sum();
    let text = format!(
        "{} of {preset}, {}, in {}",
        size::counted(files.len() as u64, "input"),
        size::bytes(bytes),
        absolute(directory).display()
    );
    output.result(&text, &Written { files, bytes });
    Ok(Exit::Done)
}

/// So many of them, spread evenly: the inputs of a preset stand kind by kind.
fn chosen(all: Vec<InputName>, count: Option<u64>) -> Vec<InputName> {
    let length = all.len();
    let count = count.map_or(length, |count| {
        usize::try_from(count).unwrap_or(length).min(length)
    });
    (0..count).map(|at| all[at * length / count]).collect()
}

/// The length of a file that is the input of this name, in bytes; `None` when it is another.
fn same(name: &InputName, file: &Path) -> io::Result<Option<u64>> {
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut file = BufReader::new(File::open(file)?);
    let mut expected = name.stream();
    let (mut ours, mut theirs) = (vec![0; 64 << 10], Vec::new());
    let mut bytes = 0;
    loop {
        let read = expected.read(&mut ours)?;
        if read == 0 {
            // Nothing may stand behind the end.
            return Ok((file.read(&mut [0])? == 0).then_some(bytes));
        }
        theirs.resize(read, 0);
        match file.read_exact(&mut theirs) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            done => done?,
        }
        if theirs != ours[..read] {
            return Ok(None);
        }
        bytes += read as u64;
    }
}
