//! What the hub answers.

use std::time::Duration;

use super::hub::{Answer, Peer};
use super::session::Session;
use super::wire::{Reply, Request};
use crate::campaign::ledger::lock;
use crate::campaign::settings::When;
use crate::campaign::shelf::Shelf;
use crate::campaign::{CampaignError, Desk, Report};
use crate::store::{EntryId, StoreError};

impl Session<'_> {
    /// Where the disk is full, the worker waits for its answer until there is room.
    fn respond_when_there_is_room(
        &mut self,
        peer: &mut Peer,
        request: &Request,
        body: &[u8],
    ) -> Result<Reply, StoreError> {
        loop {
            let answer = self.respond(peer, request, body);
            let note = self.note.clone();
            let mut say = |text: &str| drop(note.send(text.to_owned()));
            match answer {
                Err(error) if self.room.goes_on_after(&error, &mut say) => {}
                answer => return answer,
            }
        }
    }

    fn respond(
        &mut self,
        peer: &mut Peer,
        request: &Request,
        body: &[u8],
    ) -> Result<Reply, StoreError> {
        Ok(match request {
            Request::Hello { .. } | Request::Note(_) | Request::Failed(_) => Reply::Done,
            Request::Keep => {
                let mut store = lock(self.store);
                // Each worker keeps anew what it loads, or hears of from another.
                self.corpus += u64::from(!store.is_in_corpus(body));
                store.add_to_corpus(body)?;
                Reply::Done
            }
            Request::Known => Reply::Known(self.books.desk.known()?),
            Request::HandIn {
                kind,
                crash,
                run,
                name,
            } => {
                let report = Report {
                    kind: *kind,
                    crash,
                    input: body,
                    run: *run,
                    name,
                };
                self.take_in(&report)?
            }
            Request::Count { kind, major, runs } => {
                self.books.desk.count(*kind, *major, *runs)?;
                self.books.count(*kind, *major, *runs);
                Reply::Done
            }
            Request::Beat(beat) => Reply::Order(self.order(peer, *beat)),
            Request::Claim => Reply::Entry(self.claim(peer)?),
            Request::GiveBack {
                id,
                ended,
                spent_us,
            } => {
                peer.claimed.retain(|claimed| claimed != id);
                let spent = Duration::from_micros(*spent_us);
                self.minimized += spent;
                self.books.desk.give_back(id, *ended, spent)?;
                Reply::Done
            }
            writing => self.write(writing, body)?,
        })
    }

    fn take_in(&mut self, report: &Report<'_>) -> Result<Reply, StoreError> {
        let entry = self.books.desk.hand_in(report)?;
        self.books.count(report.kind, report.crash.keys.major, 1);
        if let Some(id) = &entry {
            self.show(id, false)?;
        }
        Ok(Reply::Entry(entry))
    }

    fn claim(&mut self, peer: &mut Peer) -> Result<Option<EntryId>, StoreError> {
        let minimizes = matches!(self.settings.when, When::Inline | When::Worker);
        if !minimizes || self.is_over() {
            return Ok(None);
        }
        let id = self.books.desk.claim()?;
        peer.claimed.extend(id.clone());
        Ok(id)
    }

    /// What a minimization writes.
    fn write(&mut self, request: &Request, body: &[u8]) -> Result<Reply, StoreError> {
        let desk = &mut self.books.desk;
        match request {
            Request::File { kind, crash } => {
                let filed = desk.file(*kind, crash, body)?;
                return Ok(Reply::Filed {
                    id: filed.id,
                    new_major: filed.new_major,
                    new_minor: filed.new_minor,
                    already: filed.already,
                });
            }
            Request::Minimized { id } => {
                desk.write_minimized(id, body)?;
                self.show(id, false)?;
            }
            Request::Reproduce { id } => {
                desk.write_reproduce(id, &self.settings.minimizing.target.by_main())?;
            }
            Request::Outcome { id, outcome } => {
                desk.write_outcome(id, outcome)?;
                self.show(id, true)?;
            }
            _ => {}
        }
        Ok(Reply::Done)
    }
}

impl Answer for Session<'_> {
    fn answer(&mut self, peer: &mut Peer, request: Request, body: Vec<u8>) -> Option<Reply> {
        match request {
            Request::Hello { .. } => return None,
            Request::Note(text) => {
                drop(self.note.send(text));
                return None;
            }
            Request::Failed(why) => {
                self.fail(CampaignError::Worker(why));
                return None;
            }
            _ => {}
        }
        let reply = match self.respond_when_there_is_room(peer, &request, &body) {
            Ok(reply) => reply,
            Err(error) => {
                let (path, why) = (error.path().to_owned(), error.to_string());
                self.fail(error.into());
                Reply::Failed { path, why }
            }
        };
        // Nobody waits for that one.
        (!matches!(request, Request::Keep)).then_some(reply)
    }

    fn lost(&mut self, peer: Peer) {
        self.outstanding = self.outstanding.saturating_sub(peer.granted);
        for id in &peer.claimed {
            // It waits in memory only, where nothing can fail.
            let _ = self.books.desk.give_back(id, false, Duration::ZERO);
        }
    }
}
