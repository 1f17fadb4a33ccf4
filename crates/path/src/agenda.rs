//! All changes on the links of a path in one order: those of a scenario, and those of time-varying models.

use crate::chain::Tournament;
use crate::change::Change;
use crate::course::Course;
use alloc::boxed::Box;
use alloc::vec::Vec;
use skyhaul_base::Instant;

/// A change of a directed link. The caller numbers the links.
#[derive(Clone, Debug, PartialEq)]
pub struct Due {
    /// Its time.
    pub at: Instant,
    /// The directed link.
    pub link: u32,
    /// The change.
    pub change: Change,
}

/// Pending changes.
///
/// Simultaneous ones have a fixed order: those of the scenario in its order, then courses in the order in which
/// they were given.
#[derive(Debug)]
pub struct Agenda {
    /// In the order of time.
    events: Vec<Due>,
    done: usize,
    courses: Vec<(u32, Box<dyn Course>)>,
    times: Tournament,
}

impl Agenda {
    /// The changes of a scenario, in order of time, and the courses of links.
    #[must_use]
    pub fn new(events: Vec<Due>, courses: Vec<(u32, Box<dyn Course>)>) -> Self {
        debug_assert!(events.is_sorted_by_key(|e| e.at), "events come in the order of time");
        let mut times = Tournament::new(courses.len());
        for (slot, (_, course)) in (0..).zip(&courses) {
            times.set(slot, course.next());
        }
        Self { events, done: 0, courses, times }
    }

    /// When the next change is due; [`Instant::MAX`] means never.
    #[must_use]
    pub fn next(&self) -> Instant {
        self.next_event().min(self.times.next())
    }

    fn next_event(&self) -> Instant {
        self.events.get(self.done).map_or(Instant::MAX, |e| e.at)
    }

    /// The next change, if it is due by `now`: the link and the change.
    pub fn take(&mut self, now: Instant) -> Option<(u32, Change)> {
        let at = self.next();
        if at > now || at == Instant::MAX {
            return None;
        }
        if self.next_event() <= at {
            let due = &self.events[self.done];
            self.done += 1;
            return Some((due.link, due.change.clone()));
        }
        let slot = self.times.winner();
        let (link, course) = self.courses.get_mut(slot as usize)?;
        let change = course.take();
        self.times.set(slot, course.next());
        Some((*link, change))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    /// Up and down, a number of times.
    #[derive(Debug)]
    struct Blinks {
        next: Instant,
        every: u64,
        left: u32,
    }
    impl Course for Blinks {
        fn next(&self) -> Instant {
            if self.left == 0 { Instant::MAX } else { self.next }
        }
        fn take(&mut self) -> Change {
            self.left -= 1;
            self.next = Instant::from_nanos(self.next.as_nanos() + self.every);
            Change::Visible(self.left % 2 == 0)
        }
    }
    fn blinks(start: u64, every: u64, left: u32) -> Box<dyn Course> {
        Box::new(Blinks { next: at(start), every, left })
    }

    #[test]
    fn changes_come_in_the_order_of_time_then_events_then_courses() {
        let event = |ns, link| Due { at: at(ns), link, change: Change::Up(true) };
        let courses = vec![(7, blinks(0, 10, 3)), (8, blinks(10, 5, 2)), (9, blinks(0, 1, 0))];
        let mut agenda = Agenda::new(vec![event(10, 1), event(10, 2), event(30, 3)], courses);
        assert_eq!(agenda.next(), at(0));
        let mut seen = Vec::new();
        for now in [0, 10, 14, 20] {
            while let Some((link, _)) = agenda.take(at(now)) {
                seen.push((now, link));
            }
        }
        let expected = [(0, 7), (10, 1), (10, 2), (10, 7), (10, 8), (20, 8), (20, 7)];
        assert_eq!(seen, expected);
        assert_eq!(agenda.next(), at(30));
        assert_eq!(agenda.take(at(30)), Some((3, Change::Up(true))));
        assert_eq!((agenda.next(), agenda.take(Instant::MAX)), (Instant::MAX, None));
    }
}
