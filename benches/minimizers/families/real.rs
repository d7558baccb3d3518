//! Files of this machine, each with one edit, at which an installed program fails. A script in
//! `benches/families/real` says how it fails.

use std::fs;
use std::path::{Path, PathBuf};

use super::Case;

/// A program and the file that it fails at.
struct Real {
    /// Its name, which its script has, too.
    name: &'static str,
    /// The ending of the file's name.
    ending: &'static str,
    /// The program.
    program: &'static str,
    /// Makes the failing file, or says what is missing.
    input: fn() -> Result<Vec<u8>, String>,
    /// Whether it is a text.
    is_text: bool,
}

const ALL: &[Real] = &[
    text("c-warning", "c", "gcc", || {
        let file = "/usr/share/doc/zlib1g-dev/examples/gzappend.c";
        edited(file, "if (rot == 1) {", "if (rot = 1) {")
    }),
    text("c-error", "c", "gcc", || {
        let file = "/usr/share/doc/zlib1g-dev/examples/gzjoin.c";
        edited(file, "if (in->left == 0)", "if (in->rest == 0)")
    }),
    text("python", "py", "/usr/bin/python3", || {
        let call = "print(list(shlex(\"it's one\", posix=True)))";
        edited(
            "/usr/lib/python3.11/shlex.py",
            "    if len(sys.argv) == 1:",
            &format!("    {call}\n    if len(sys.argv) == 1:"),
        )
    }),
    text("javascript", "js", "node", || {
        let file = "/usr/share/javascript/sphinxdoc/1.0/searchtools.js";
        edited(file, "let linkUrl;", "let linkUrl, listItem;")
    }),
    text("perl", "pm", "perl", || {
        let file = "/usr/share/perl/5.36/Text/Wrap.pm";
        edited(file, "my $remainder = \"\";", "")
    }),
    text("jq", "json", "jq", || {
        let file = "/usr/share/iso-codes/json/iso_4217.json";
        edited(file, "\"numeric\": \"784\"", "\"numeric\": true")
    }),
    text("sqlite", "sql", "sqlite3", countries),
    text("xml", "xml", "xmllint", || {
        let file = "/usr/share/xml/iso-codes/iso_639-5.xml";
        edited(file, "id=\"bat\"", "id=\"bat\" remark=\"collective\"")
    }),
    Real {
        is_text: false,
        ..text("png", "png", "pngcheck", png)
    },
    Real {
        is_text: false,
        ..text("zip", "zip", "unzip", zip)
    },
    Real {
        is_text: false,
        ..text("font", "otf", "fc-scan", || {
            read("/usr/share/fonts/opentype/urw-base35/StandardSymbolsPS.otf")
        })
    },
];

const fn text(
    name: &'static str,
    ending: &'static str,
    program: &'static str,
    input: fn() -> Result<Vec<u8>, String>,
) -> Real {
    Real {
        name,
        ending,
        program,
        input,
        is_text: true,
    }
}

/// The family `real`: the cases whose program and file are there.
pub fn cases() -> Vec<Case> {
    let case = |real: &Real| match made(real) {
        Ok(case) => Some(case),
        Err(why) => {
            eprintln!("not measured: real/{}: {why}", real.name);
            None
        }
    };
    ALL.iter().filter_map(case).collect()
}

fn made(real: &Real) -> Result<Case, String> {
    if installed(real.program).is_none() {
        return Err(format!("{} is not installed", real.program));
    }
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/families/real");
    let script = scripts.join(format!("{}.sh", real.name));
    Ok(Case {
        family: "real",
        variant: real.name,
        source: "script.c",
        defines: vec![
            ("SCRIPT", format!("{:?}", script.display().to_string())),
            ("ENDING", format!("\".{}\"", real.ending)),
        ],
        bug: "program_fails",
        input: (real.input)()?,
        minimum: Vec::new(),
        is_text: real.is_text,
        ending: real.ending,
    })
}

fn read(file: &str) -> Result<Vec<u8>, String> {
    fs::read(file).map_err(|error| format!("{file}: {error}"))
}

/// A text with one place written differently.
fn edited(file: &str, place: &str, written: &str) -> Result<Vec<u8>, String> {
    let text = read(file)?;
    let text = String::from_utf8(text).map_err(|_| format!("{file} is no text"))?;
    match text.contains(place) {
        true => Ok(text.replacen(place, written, 1).into_bytes()),
        false => Err(format!("{file} is another version: it has no {place:?}")),
    }
}

/// Countries and time zones as statements, with a query that does not say which `code` it means.
fn countries() -> Result<Vec<u8>, String> {
    let mut text = "-- Countries and their time zones.\nBEGIN TRANSACTION;\n\
        CREATE TABLE country (code TEXT PRIMARY KEY, name TEXT NOT NULL);\n\
        CREATE TABLE zone (code TEXT NOT NULL REFERENCES country (code), place TEXT, name TEXT);\n"
        .to_owned();
    let rows = |file: &str| -> Result<Vec<String>, String> {
        let lines = String::from_utf8_lossy(&read(file)?).replace('\'', "''");
        let lines = lines.lines().filter(|line| !line.starts_with('#'));
        Ok(lines.map(str::to_owned).collect())
    };
    let quoted = |line: &str, fields: usize| {
        let fields: Vec<String> = line
            .split('\t')
            .take(fields)
            .map(|field| format!("'{field}'"))
            .collect();
        fields.join(", ")
    };
    for line in rows("/usr/share/zoneinfo/iso3166.tab")?.iter().step_by(3) {
        text.push_str(&format!(
            "INSERT INTO country VALUES ({});\n",
            quoted(line, 2)
        ));
    }
    text.push_str(
        "COMMIT;\nCREATE VIEW places AS SELECT country.name, zone.name AS zone\n  FROM country JOIN zone ON zone.code = country.code;\n\
         SELECT name, count(*) AS zones FROM zone\n  WHERE EXISTS (SELECT code FROM country JOIN zone AS other ON other.place = country.name\n    \
         WHERE country.name LIKE 'A%' GROUP BY other.name HAVING count(*) > 2)\n  GROUP BY name ORDER BY zones DESC, name;\n",
    );
    for line in rows("/usr/share/zoneinfo/zone1970.tab")?.iter().step_by(4) {
        text.push_str(&format!("INSERT INTO zone VALUES ({});\n", quoted(line, 3)));
    }
    Ok(text.into_bytes())
}

/// A picture whose last change has another month than its checksum says.
fn png() -> Result<Vec<u8>, String> {
    let mut picture = read("/usr/share/doc/libpng-dev/examples/pngtest.png")?;
    let place = picture.windows(4).position(|bytes| bytes == b"tIME");
    let place = place.ok_or("the picture has no time of its last change")?;
    picture[place + 6] = 12;
    Ok(picture)
}

/// An archive with a wrong checksum in the head of its eleventh member.
fn zip() -> Result<Vec<u8>, String> {
    let mut archive = read("/usr/share/java/slf4j-jdk14.jar")?;
    let places = archive.windows(4).enumerate();
    let mut heads = places.filter(|(_, bytes)| bytes == b"PK\x03\x04");
    let (head, _) = heads.nth(10).ok_or("the archive has fewer members")?;
    archive[head + 14] ^= 0x55;
    Ok(archive)
}

/// The installed program of this name.
pub fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}
