//! Documents of formats whose files are rewritten as a whole for each candidate, such as databases:
//! the candidate has the remaining content in as few bytes as possible.

use std::sync::Arc;

use ddfuzz_delta::Document;

/// A function that prepares a file for deletions. Returns a new file, which has the same content in
/// a form that can be parsed, and a second function, which takes the new file after deletions and
/// rewrites it in as few bytes as possible. Returns `None` for a file that it cannot read.
pub type Compact = fn(&[u8]) -> Option<(Vec<u8>, Write)>;

/// A function that takes a file and returns a file with the same content in as few bytes as
/// possible; it returns `None` for a file that it cannot read.
pub type Write = Arc<dyn Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync>;

/// A document whose text is the text of the document `inner`, rewritten by `write`; if `write`
/// cannot read that text, the text itself. Deletions and changes are made in `inner`.
pub struct Compacted {
    inner: Arc<dyn Document>,
    write: Write,
}

impl Compacted {
    /// Returns a document with the parts of the document `inner`: its text is that of `inner`,
    /// rewritten by `write` in as few bytes as possible. `None` if `write` cannot read the text of
    /// `inner`, or makes more than `most` bytes of it.
    pub fn around(
        inner: Arc<dyn Document>,
        write: Write,
        most: usize,
    ) -> Option<Arc<dyn Document>> {
        let size = write(&inner.text())?.len();
        (size <= most).then(|| Arc::new(Compacted { inner, write }) as Arc<dyn Document>)
    }

    fn with_inner(&self, inner: Arc<dyn Document>) -> Arc<dyn Document> {
        let write = self.write.clone();
        Arc::new(Compacted { inner, write })
    }
}

impl Document for Compacted {
    fn parts(&self) -> Vec<usize> {
        self.inner.parts()
    }

    fn payloads(&self) -> Vec<Arc<[u8]>> {
        self.inner.payloads()
    }

    fn without(&self, parts: &[usize]) -> Arc<dyn Document> {
        self.with_inner(self.inner.without(parts))
    }

    fn tied(&self) -> usize {
        self.inner.tied()
    }

    fn without_tied(&self, groups: &[usize]) -> Arc<dyn Document> {
        self.with_inner(self.inner.without_tied(groups))
    }

    fn with(&self, payloads: &[Arc<[u8]>]) -> Arc<dyn Document> {
        self.with_inner(self.inner.with(payloads))
    }

    fn reducible(&self) -> usize {
        self.inner.reducible()
    }

    fn reduced(&self, groups: &[usize]) -> Arc<dyn Document> {
        self.with_inner(self.inner.reduced(groups))
    }

    fn repacked(&self) -> Option<Arc<dyn Document>> {
        Some(self.with_inner(self.inner.repacked()?))
    }

    fn opaque(&self) -> Arc<dyn Document> {
        self.with_inner(self.inner.opaque())
    }

    fn regions(&self) -> Vec<usize> {
        self.inner.regions()
    }

    fn sharing(&self, region: usize, with: Option<usize>) -> Option<Arc<dyn Document>> {
        Some(self.with_inner(self.inner.sharing(region, with)?))
    }

    fn text(&self) -> Vec<u8> {
        let text = self.inner.text();
        (self.write)(&text).unwrap_or(text)
    }
}
