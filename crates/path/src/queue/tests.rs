//! Queue tests.
