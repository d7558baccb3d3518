//! Who wrote what a link is about: in the failing run, or in the passing one alone.

use crate::chain::Link;
use crate::delta::{Change, Delta};
use crate::engine::register_writer::Held;
use crate::engine::writer::{By, Watched, Writer};
use crate::engine::{EngineError, Point, Side, Unsupported};
use crate::experiments::Runs;
use crate::graph::{Origin, Place};

/// A point of a run, with the number of times that another statement was reached up to it.
type Since = (Point, u64);

impl Runs {
    /// Finds who wrote the failing value of a link's variable: in the failing run between the last
    /// point at which another variable was relevant and the link's point. If nobody did, finds the
    /// statement of the passing run that alone wrote it between these points, else who wrote it
    /// since the beginning of the failing run.
    ///
    /// # Errors
    /// When the run cannot be made.
    pub fn writer(&mut self, link: &Link, delta: &Delta) -> Result<Option<Writer>, EngineError> {
        let to = self.matched[link.cause.point];
        let Place::Memory(address) = delta.failing_place else {
            return self.writer_of_register(link, delta);
        };
        if delta.size == 0 {
            return Ok(self.statement_before(link, delta));
        }
        let since = self.since(link);
        let watched = Watched {
            address,
            size: delta.size,
            frame: self.frame_of(link.cause.point, address),
        };
        if let Some((failing, passing)) = since {
            let failing = Some(failing);
            let found = (self.engine).writer(Side::Failing, failing, to.in_failing, watched)?;
            if found.is_some() {
                return Ok(found);
            }
            if let (Place::Memory(address), false) =
                (delta.passing_place, delta.identity.is_structural)
            {
                let watched = Watched { address, ..watched };
                let found =
                    (self.engine).writer(Side::Passing, Some(passing), to.in_passing, watched)?;
                if found
                    .as_ref()
                    .is_some_and(|it| it.by != By::Kernel && !it.is_input())
                {
                    return Ok(found);
                }
            }
        }
        match (self.engine).writer(Side::Failing, None, to.in_failing, watched) {
            // Reached too often, or given up.
            Err(EngineError::Unsupported(Unsupported::Unsteady)) => Ok(None),
            other => other,
        }
    }

    /// The points of the failing and of the passing run behind which a link's variable was written,
    /// with the number of times that the statement of the link's point was reached up to them.
    fn since(&self, link: &Link) -> Option<(Since, Since)> {
        let to = self.matched[link.cause.point];
        let from = self.matched[link.before?];
        let reached = |points: &[Point]| {
            let events = points.iter();
            events.filter(|point| point.pc == to.in_failing.pc).count() as u64
        };
        let failing = reached(&self.failing.points[..=from.failing]);
        let passing = reached(&self.passing.points[..=from.passing]);
        Some(((from.in_failing, failing), (from.in_passing, passing)))
    }

    /// Finds who wrote the failing value of a variable in a register, or of a register that no
    /// variable describes.
    fn writer_of_register(
        &mut self,
        link: &Link,
        delta: &Delta,
    ) -> Result<Option<Writer>, EngineError> {
        let to = self.matched[link.cause.point].in_failing;
        let failing = match delta.change {
            Change::Value { failing, .. } | Change::Pointer { failing, .. } => failing,
            _ => return Ok(self.statement_before(link, delta)),
        };
        let object = (self.states.get(&link.cause.point)).map(|it| &it.failing.objects[failing]);
        let held = object.and_then(|it| match (it.origin, it.place) {
            (Origin::Undescribed, Place::Register(number)) => {
                Some((Held::Value(number), it.bytes.clone()))
            }
            (Origin::Undescribed, Place::Memory(_)) => None,
            (origin, _) => Some((Held::Variable(origin), it.bytes.clone())),
        });
        let Some((held, value)) = held else {
            return Ok(None);
        };
        let since = self.since(link);
        for from in since.map(|it| Some(it.0)).into_iter().chain([None]) {
            match self.engine.register_writer(from, to, held, &value) {
                Ok(None) | Err(EngineError::Unsupported(Unsupported::Unsteady)) => {}
                found => return found,
            }
        }
        Ok(self.statement_before(link, delta))
    }

    /// The frame of the variable at an address of the failing run; `None` where it is no local one.
    fn frame_of(&self, point: usize, address: u64) -> Option<usize> {
        let failing = &self.states.get(&point)?.failing;
        let (object, _) = failing.containing(address)?;
        match failing.objects[object].origin {
            Origin::Local { frame, .. } => Some(frame),
            _ => None,
        }
    }

    /// The statement that the failing run executed just before a link's point, if the point before
    /// was examined and had another cause. A statement of another function is none: the register
    /// may have got its value after the return from there.
    fn statement_before(&self, link: &Link, delta: &Delta) -> Option<Writer> {
        let before = self.matched[link.before?];
        let to = self.matched[link.cause.point];
        let is_own = self.engine.function(before.in_failing.pc) == Some(delta.function.as_str());
        (is_own && before.failing + 1 == to.failing).then_some(Writer {
            pc: before.in_failing.pc,
            by: By::Program,
            side: Side::Failing,
        })
    }
}
