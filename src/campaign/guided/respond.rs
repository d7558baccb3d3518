//! What the hub answers.

use std::time::Duration;

use super::hub::{Answer, Peer};
use super::session::Session;
use super::wire::{Reply, Request};
use crate::campaign::ledger::lock;
use crate::campaign::settings::When;
use crate::campaign::shelf::Shelf;
use crate::campaign::{CampaignError, Desk, Report};
use crate::store::StoreError;

impl Session<'_> {
    fn respond(
        &mut self,
        peer: &mut Peer,
        request: Request,
        body: &[u8],
    ) -> Result<Reply, StoreError> {
        let minimizes = matches!(self.settings.when, When::Inline | When::Worker);
        Ok(match request {
            Request::Hello { .. } | Request::Keep | Request::Note(_) | Request::Failed(_) => {
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
                    kind,
                    crash: &crash,
                    input: body,
                    run,
                    name: &name,
                };
                let entry = self.books.desk.hand_in(&report)?;
                self.books.count(kind, crash.keys.major, 1);
                if let Some(id) = &entry {
                    self.show(id, false)?;
                }
                Reply::Entry(entry)
            }
            Request::Count { kind, major, runs } => {
                self.books.desk.count(kind, major, runs)?;
                self.books.count(kind, major, runs);
                Reply::Done
            }
            Request::File { kind, crash } => {
                let filed = self.books.desk.file(kind, &crash, body)?;
                Reply::Filed {
                    id: filed.id,
                    new_major: filed.new_major,
                    new_minor: filed.new_minor,
                    already: filed.already,
                }
            }
            Request::Minimized { id } => {
                self.books.desk.write_minimized(&id, body)?;
                self.show(&id, false)?;
                Reply::Done
            }
            Request::Reproduce { id } => {
                let target = self.settings.minimizing.target.by_main();
                self.books.desk.write_reproduce(&id, &target)?;
                Reply::Done
            }
            Request::Outcome { id, outcome } => {
                self.books.desk.write_outcome(&id, &outcome)?;
                self.show(&id, true)?;
                Reply::Done
            }
            Request::Claim if minimizes && !self.is_over() => {
                let id = self.books.desk.claim()?;
                peer.claimed.extend(id.clone());
                Reply::Entry(id)
            }
            Request::Claim => Reply::Entry(None),
            Request::GiveBack {
                id,
                ended,
                spent_us,
            } => {
                peer.claimed.retain(|claimed| *claimed != id);
                let spent = Duration::from_micros(spent_us);
                self.minimized += spent;
                self.books.desk.give_back(&id, ended, spent)?;
                Reply::Done
            }
            Request::Beat(beat) => Reply::Order(self.order(peer, beat)),
        })
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
            Request::Keep => {
                if let Err(error) = lock(self.store).add_to_corpus(&body) {
                    self.fail(error.into());
                }
                self.corpus += 1;
                return None;
            }
            _ => {}
        }
        Some(match self.respond(peer, request, &body) {
            Ok(reply) => reply,
            Err(error) => {
                let (path, why) = (error.path().to_owned(), error.to_string());
                self.fail(error.into());
                Reply::Failed { path, why }
            }
        })
    }

    fn lost(&mut self, peer: Peer) {
        self.outstanding = self.outstanding.saturating_sub(peer.granted);
        for id in &peer.claimed {
            // It waits in memory only, where nothing can fail.
            let _ = self.books.desk.give_back(id, false, Duration::ZERO);
        }
    }
}
