//! A simulated device with super-packets, for tests: each packet written to it is split at once, as by the kernel.

use super::{Arrivals, Departures};
use crate::outlet::{Merge, Outlet};
use skyhaul_wire::Checksum;

/// The simulated device.
#[derive(Debug, Default)]
pub struct Device {
    departures: Departures,
    arrivals: Arrivals,
}

/// An outlet whose packets go to `take`, by way of a device if there is one.
pub struct Exit<'a> {
    device: Option<&'a mut Device>,
    take: &'a mut dyn FnMut(&[u8]),
}

impl std::fmt::Debug for Exit<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exit").field("device", &self.device).finish_non_exhaustive()
    }
}

impl<'a> Exit<'a> {
    /// An outlet. [`Self::flush`] passes on the packets that wait in the device.
    pub fn new(mut device: Option<&'a mut Device>, take: &'a mut dyn FnMut(&[u8])) -> Self {
        if let Some(d) = &mut device {
            d.departures.set_checksum(Checksum::Left);
        }
        Self { device, take }
    }
    /// Passes on the packets that wait in the device.
    pub fn flush(&mut self) {
        let Self { device, take } = self;
        if let Some(Device { departures, arrivals }) = device {
            departures.flush(|whole| split(arrivals, whole, take));
        }
    }
}

fn split(arrivals: &mut Arrivals, whole: &[u8], take: &mut dyn FnMut(&[u8])) {
    if arrivals.hold(whole) {
        arrivals.packets().for_each(take);
    }
}

impl Outlet for Exit<'_> {
    fn checksum(&self) -> Checksum {
        self.device.as_ref().map_or(Checksum::Written, |d| d.departures.checksum())
    }
    fn send<E>(
        &mut self,
        most: usize,
        merge: Merge,
        write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        let Self { device, take } = self;
        match device {
            Some(Device { departures, arrivals }) => {
                departures.push(most, merge, write, |whole| split(arrivals, whole, take), |_| {})
            }
            None => {
                let mut plain = |p: &[u8]| take(p);
                plain.send(most, merge, write)
            }
        }
    }
}
