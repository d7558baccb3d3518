//! Descriptions of formats that consist of records one after another, as tables of fields.

use crate::number::Encoding::{Big, Little};
use crate::reader::Field::{
    self, Body, Expect, Keep, Kind, Number, Packet, Pad, Piece, Records, Span,
};
use crate::reader::Stated::{self, Count, Length};

/// Fields of PNG files: chunks of length, type, data, and a checksum of type and data.
pub static PNG: &[Field] = &[Keep(8), Records(PNG_CHUNK)];

static PNG_CHUNK: &[Field] = &[
    Number(Big(4), Length(1), 0),
    Span(0, &[Kind(4, &[(b"IDAT", PNG_PIECE)], PNG_DATA)]),
    Number(Big(4), Stated::crc32(0), 0),
];
static PNG_DATA: &[Field] = &[Span(1, &[Body])];
static PNG_PIECE: &[Field] = &[Piece, Span(1, &[Body])];

/// Fields of RIFF files (WAV, WebP, AVI): chunks of type, length and data; lists contain chunks.
pub static RIFF: &[Field] = &[Keep(4), Number(Little(4), Length(0), 0), Span(0, RIFF_LIST)];

static RIFF_LIST: &[Field] = &[Keep(4), Records(&RIFF_CHUNK)];
static RIFF_CHUNK: [Field; 1] = [Kind(
    4,
    &[
        (
            b"LIST",
            &[
                Number(Little(4), Length(0), 0),
                Span(0, RIFF_LIST),
                Pad(0, 2),
            ],
        ),
        (
            b"RIFF",
            &[
                Number(Little(4), Length(0), 0),
                Span(0, RIFF_LIST),
                Pad(0, 2),
            ],
        ),
    ],
    &[Number(Little(4), Length(0), 0), Span(0, &[Body]), Pad(0, 2)],
)];

/// Fields of IFF files (AIFF): chunks of type, length and data, with big-endian numbers.
pub static IFF: &[Field] = &[Keep(4), Number(Big(4), Length(0), 0), Span(0, IFF_LIST)];

static IFF_LIST: &[Field] = &[Keep(4), Records(IFF_CHUNK)];
static IFF_CHUNK: &[Field] = &[
    Keep(4),
    Number(Big(4), Length(0), 0),
    Span(0, &[Body]),
    Pad(0, 2),
];

/// Fields of ISO base media files (MP4, HEIF, AVIF): boxes of length, type and data; the length
/// counts the whole box.
pub static BOXES: &[Field] = &[Records(&BOX)];

static BOX: [Field; 1] = [Span(
    0,
    &[
        Number(Big(4), Length(0), 0),
        Kind(
            4,
            &[
                (b"moov", BOXES),
                (b"trak", BOXES),
                (b"mdia", BOXES),
                (b"minf", BOXES),
                (b"stbl", BOXES),
                (b"dinf", BOXES),
                (b"edts", BOXES),
                (b"udta", BOXES),
                (b"mvex", BOXES),
                (b"moof", BOXES),
                (b"traf", BOXES),
                (b"iprp", BOXES),
                (b"ipco", BOXES),
                (b"meta", &[Keep(4), Records(&BOX)]),
                (b"dref", BOX_COUNTED),
                (b"stsd", BOX_COUNTED),
            ],
            &[Body],
        ),
    ],
)];
static BOX_COUNTED: &[Field] = &[
    Keep(4),
    Number(Big(4), Count(1), 0),
    Span(1, &[Records(&BOX)]),
];

/// Makes the descriptions `$pcap` of PCAP files and `$pcapng` of PCAPNG files, whose numbers have
/// the byte order `$order`. PCAP: packets of a time, two lengths, and data. PCAPNG: blocks of a
/// type, their size, data, and their size again; the type `$packet` marks packets, whose data are
/// padded to a multiple of four bytes.
macro_rules! captures {
    ($order:ident, $packet:literal, $pcap:ident, $pcapng:ident) => {
        #[doc = concat!("Fields of PCAP files; numbers are ", stringify!($order), "-endian.")]
        pub static $pcap: &[Field] = &[
            Keep(24),
            Records(&[
                Keep(8),
                Number($order(4), Length(0), 0),
                Number($order(4), Length(0), 0),
                Span(0, &[Packet]),
            ]),
        ];

        #[doc = concat!("Fields of PCAPNG files; numbers are ", stringify!($order), "-endian.")]
        pub static $pcapng: &[Field] = &[Records(&[Kind(
            4,
            &[(
                $packet,
                &[
                    Number($order(4), Length(0), 12),
                    Span(
                        0,
                        &[
                            Keep(12),
                            Number($order(4), Length(1), 0),
                            Number($order(4), Length(1), 0),
                            Span(1, &[Packet]),
                            Pad(1, 4),
                            Body,
                        ],
                    ),
                    Number($order(4), Length(0), 12),
                ],
            )],
            &[
                Number($order(4), Length(0), 12),
                Span(0, &[Body]),
                Number($order(4), Length(0), 12),
            ],
        )])];
    };
}

captures!(Little, b"\x06\0\0\0", PCAP_LITTLE, PCAPNG_LITTLE);
captures!(Big, b"\0\0\0\x06", PCAP_BIG, PCAPNG_BIG);

/// Fields of MIDI files: a header with the number of tracks, and tracks of type, length and events.
pub static MIDI: &[Field] = &[
    Expect(b"MThd\0\0\0\x06"),
    Keep(2),
    Number(Big(2), Count(0), 0),
    Keep(2),
    Span(0, &[Records(MIDI_TRACK)]),
];

static MIDI_TRACK: &[Field] = &[Keep(4), Number(Big(4), Length(0), 0), Span(0, &[Body])];

/// Returns the fields of a FLAC metadata block by its kind; `None` for kinds whose data become a
/// payload (changeable bytes).
pub fn flac_block(kind: u8) -> Option<&'static [Field]> {
    Some(match kind {
        3 => &[Records(&[Keep(18)])],
        4 => FLAC_COMMENTS,
        5 => FLAC_CUES,
        6 => FLAC_PICTURE,
        _ => return None,
    })
}

static FLAC_COMMENTS: &[Field] = &[
    Number(Little(4), Length(1), 0),
    Span(1, &[Body]),
    Number(Little(4), Count(2), 0),
    Span(2, &[Records(FLAC_COMMENT)]),
];
static FLAC_COMMENT: &[Field] = &[Number(Little(4), Length(0), 0), Span(0, &[Body])];
static FLAC_CUES: &[Field] = &[
    Keep(395),
    Number(Big(1), Count(0), 0),
    Span(0, &[Records(FLAC_TRACK)]),
];
static FLAC_TRACK: &[Field] = &[
    Keep(35),
    Number(Big(1), Count(0), 0),
    Span(0, &[Records(&[Keep(12)])]),
];
static FLAC_PICTURE: &[Field] = &[
    Keep(4),
    Number(Big(4), Length(0), 0),
    Span(0, &[Body]),
    Number(Big(4), Length(1), 0),
    Span(1, &[Body]),
    Keep(16),
    Number(Big(4), Length(2), 0),
    Span(2, &[Body]),
];
