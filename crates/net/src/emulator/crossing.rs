//! Which packets cross the links, and which route each takes.

use super::packet::Class;
use skyhaul_scenario::resolved::FlowGroup;
use std::slice;

/// Which packets cross the links.
#[derive(Clone, Copy, Debug)]
pub enum Crossing<'a> {
    /// All packets take the route of this flow group.
    All(&'a FlowGroup),
    /// Each group has its own route. A packet belongs to the n-th group if its port at the second end is `first` +
    /// n; packets with another port, or none, use the route of the first group.
    ByPort {
        /// The groups, at least one.
        groups: &'a [FlowGroup],
        /// Port of the first group.
        first: u16,
    },
}

impl<'a> From<&'a FlowGroup> for Crossing<'a> {
    fn from(group: &'a FlowGroup) -> Self {
        Self::All(group)
    }
}

impl<'a> Crossing<'a> {
    pub(super) fn groups(self) -> &'a [FlowGroup] {
        match self {
            Self::All(group) => slice::from_ref(group),
            Self::ByPort { groups, .. } => groups,
        }
    }
    pub(super) fn groups_of(self, forward: bool) -> GroupLookup {
        match self {
            Self::All(_) => GroupLookup { forward, first: 0, groups: 1 },
            Self::ByPort { groups, first } => GroupLookup { forward, first, groups: groups.len() },
        }
    }
}

/// Finds the group that a packet of one direction belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupLookup {
    /// Towards the second end.
    forward: bool,
    first: u16,
    groups: usize,
}

impl GroupLookup {
    /// Index of the group.
    pub(super) fn of(self, class: &Class) -> usize {
        if self.groups < 2 {
            return 0;
        }
        let Some((from, to)) = class.ports else { return 0 };
        let far = if self.forward { to } else { from };
        far.checked_sub(self.first).map(usize::from).filter(|n| *n < self.groups).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_at_the_second_end_names_the_group() {
        let class = |ports| Class { dscp: 0, ecn: 0, flow: 0, pure_ack: false, link_scope: false, ports };
        let groups_of = |forward| GroupLookup { forward, first: 5201, groups: 3 };
        for (ports, there, back) in
            [((40_000, 5202), 1, 0), ((5203, 40_000), 0, 2), ((7, 5204), 0, 0), ((7, 5200), 0, 0)]
        {
            let class = class(Some(ports));
            assert_eq!((groups_of(true).of(&class), groups_of(false).of(&class)), (there, back), "{ports:?}");
        }
        assert_eq!(groups_of(true).of(&class(None)), 0);
    }
}
