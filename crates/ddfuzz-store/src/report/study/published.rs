//! What the published studies found, to stand beside one's own figures.
//!
//! Where each figure was looked up stands in docs/decisions/0098.

/// A published rate: the share of the utilities that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// The year that the study is known by.
    pub year: u16,
    /// What was tested.
    pub system: &'static str,
    /// The rate as published, in percent.
    pub rate: &'static str,
    /// What counted as a failure.
    pub failures: &'static str,
    /// Utilities that failed, and utilities tested, where they are published.
    pub counts: Option<(u64, u64)>,
    /// Authors, title and venue.
    pub source: &'static str,
}

const STUDY_1990: &str = "Miller, Fredriksen, So: An empirical study of the reliability of UNIX \
                          utilities, CACM 33(12), 1990";
const STUDY_1995: &str = "Miller, Koski, Lee, Maganty, Murthy, Natarajan, Steidl: Fuzz revisited, \
                          Univ. of Wisconsin–Madison, TR 1268, 1995; as the study of 2006 quotes it";
const STUDY_2006: &str = "Miller, Cooksey, Moore: An empirical study of the robustness of MacOS \
                          applications using random testing, 2006";
const STUDY_2020: &str = "Miller, Zhang, Heymann: The relevance of classic fuzz testing: have we \
                          solved this one?, IEEE TSE, 2020";

/// The published rates, by year.
pub const PUBLISHED: [Published; 8] = [
    published(
        1990,
        "versions of UNIX",
        "25–33",
        "crash or hang",
        None,
        STUDY_1990,
    ),
    published(
        1995,
        "commercial UNIX",
        "15–43",
        "crash or hang",
        None,
        STUDY_1995,
    ),
    published(1995, "Linux", "9", "crash or hang", None, STUDY_1995),
    published(
        1995,
        "GNU utilities",
        "6",
        "crash or hang",
        None,
        STUDY_1995,
    ),
    published(
        2006,
        "Mac OS X, command line",
        "7",
        "crash",
        None,
        STUDY_2006,
    ),
    published(
        2020,
        "Linux",
        "12",
        "crash or hang",
        Some((9, 74)),
        STUDY_2020,
    ),
    published(
        2020,
        "macOS",
        "16",
        "crash or hang",
        Some((12, 76)),
        STUDY_2020,
    ),
    published(
        2020,
        "FreeBSD",
        "19",
        "crash or hang",
        Some((15, 78)),
        STUDY_2020,
    ),
];

const fn published(
    year: u16,
    system: &'static str,
    rate: &'static str,
    failures: &'static str,
    counts: Option<(u64, u64)>,
    source: &'static str,
) -> Published {
    Published {
        year,
        system,
        rate,
        failures,
        counts,
        source,
    }
}

impl Published {
    /// The rate as published: `12 % (9 of 74)`.
    pub fn text(&self) -> String {
        match self.counts {
            Some((failing, of)) => format!("{} % ({failing} of {of})", self.rate),
            None => format!("{} %", self.rate),
        }
    }
}
