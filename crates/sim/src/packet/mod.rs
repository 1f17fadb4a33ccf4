//! What travels between the ends, and how: parcels, links, and sending.

pub(crate) mod links;
pub(crate) mod network;
pub(crate) mod parcel;
pub(crate) mod send;
