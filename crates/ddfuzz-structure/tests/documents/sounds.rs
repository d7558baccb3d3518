//! FLAC files: cue sheets, comments and pictures lose what is inside of them, and frames their
//! samples.

use crate::samples::{flac_frame, is_flac_frame};
use crate::searches::reduce;

fn block(kind: u8, data: &[u8]) -> Vec<u8> {
    let size = data.len() as u32;
    [&[kind], &size.to_be_bytes()[1..], data].concat()
}

/// A track of a cue sheet, with as many index points as `points` has bytes.
fn track(name: &[u8; 12], points: &[u8]) -> Vec<u8> {
    let points = points
        .iter()
        .map(|point| [[0; 8], [*point, 0, 0, 0, 0, 0, 0, 0]].concat());
    let points: Vec<Vec<u8>> = points.map(|point| point[4..].to_vec()).collect();
    let count = points.len() as u8;
    [&[0; 9], &name[..], &[0; 14], &[count], &points.concat()[..]].concat()
}

fn flac() -> Vec<u8> {
    let tracks = [
        track(b"AAAAAAAAAAAA", &[1, 2]),
        track(b"BBBBBBBBBBBB", &[3]),
        track(b"CCCCCCCCCCCC", &[4, 5, 6]),
    ];
    let cues = [&[7; 395][..], &[3], &tracks.concat()].concat();
    let texts = [&b"somebody"[..], b"TITLE=one", b"ARTIST=two"];
    let text = |text: &&[u8]| [&(text.len() as u32).to_le_bytes()[..], text].concat();
    let comments = [
        text(&texts[0]),
        vec![2, 0, 0, 0],
        text(&texts[1]),
        text(&texts[2]),
    ];
    let sized = |bytes: &[u8]| [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat();
    let picture = [
        vec![0, 0, 0, 4],
        sized(b"image/png"),
        sized(b"the back"),
        vec![0; 16],
        sized(&[9; 50]),
    ];
    let blocks = [
        block(0, &[1; 34]),
        block(5, &cues),
        block(4, &comments.concat()),
        block(6, &picture.concat()),
        block(0x81, &[0; 20]),
    ];
    let samples: Vec<u8> = (1..90).map(|sample| sample ^ 0x55).collect();
    let frames = [flac_frame(0, &samples), flac_frame(1, &[0xff; 20])];
    [&b"fLaC"[..], &blocks.concat(), &frames.concat()].concat()
}

/// A metadata block: its kind and its data.
type Block<'a> = (u8, &'a [u8]);

/// Returns the metadata blocks, and what follows the last one.
fn blocks(text: &[u8]) -> Option<(Vec<Block<'_>>, &[u8])> {
    let mut rest = text.strip_prefix(b"fLaC")?;
    let mut blocks = Vec::new();
    loop {
        let (head, after) = rest.split_at_checked(4)?;
        let size = u32::from_be_bytes([0, head[1], head[2], head[3]]);
        let (data, after) = after.split_at_checked(size as usize)?;
        blocks.push((head[0] & 0x7f, data));
        rest = after;
        if head[0] & 0x80 != 0 {
            return Some((blocks, rest));
        }
    }
}

/// A track: its name and its index points.
type Track<'a> = (&'a [u8], Vec<u8>);

/// Returns the tracks of a cue sheet; `None` if the counts are wrong.
fn tracks(mut text: &[u8]) -> Option<Vec<Track<'_>>> {
    let mut tracks = Vec::new();
    let (count, after) = text.get(395..)?.split_first()?;
    text = after;
    for _ in 0..*count {
        let (head, after) = text.split_at_checked(36)?;
        let (points, after) = after.split_at_checked(12 * usize::from(head[35]))?;
        let points = points.chunks(12).map(|point| point[4]);
        tracks.push((&head[9..21], points.collect()));
        text = after;
    }
    text.is_empty().then_some(tracks)
}

/// Returns the texts of a block of comments; `None` if sizes or their number are wrong.
fn comments(text: &[u8]) -> Option<Vec<&[u8]>> {
    let number = |text: &[u8]| Some(u32::from_le_bytes(*text.first_chunk()?) as usize);
    let mut rest = text.get(4 + number(text)?..)?;
    let count = number(rest)?;
    rest = &rest[4..];
    let mut texts = Vec::new();
    for _ in 0..count {
        let (text, after) = rest.get(4..)?.split_at_checked(number(rest)?)?;
        texts.push(text);
        rest = after;
    }
    rest.is_empty().then_some(texts)
}

#[test]
fn blocks_lose_what_is_inside_of_them() {
    let needs = |text: &[u8]| {
        let (blocks, frames) = blocks(text)?;
        let data = |kind: u8| Some(blocks.iter().find(|(known, _)| *known == kind)?.1);
        let has_track =
            |(name, points): &(&[u8], Vec<u8>)| *name == b"CCCCCCCCCCCC" && points.contains(&5);
        let has_text = comments(data(4)?)?
            .iter()
            .any(|text| text.starts_with(b"ARTIST"));
        let has_picture = data(6)?.len() >= 32;
        (tracks(data(5)?)?.iter().any(has_track) && has_text && has_picture).then_some(())?;
        let mut ends = 9..=frames.len().min(120);
        ends.any(|end| is_flac_frame(&frames[..end])).then_some(())
    };
    let fails = |text: &[u8]| needs(text).is_some();
    let reduced = reduce(&flac(), &fails, true);
    let (left, frames) = blocks(&reduced.text).expect("blocks");
    assert_eq!(
        left.iter().map(|block| block.0).collect::<Vec<_>>(),
        [5, 4, 6]
    );
    let cues = 395 + 1 + 36 + 12;
    let most = 4 + 3 * 4 + cues + (4 + 4 + 4 + 6) + 32 + 12;
    assert!(reduced.text.len() <= most, "{} {most}", reduced.text.len());
    assert!(frames.len() <= 12, "{frames:?}");
    assert!(reduced.tests < 300, "{} tests", reduced.tests);
}
