//! A model driver that every algorithm must survive (see the tests of this crate).
