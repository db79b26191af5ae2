//! TOML documents for people: values that know where they are written, units, and errors that name the place, the
//! value and what would be right.
//!
//! A kind of document describes itself as a [`Dialect`](section::Dialect): its tables with their keys, which serve as
//! reference and as what its parser accepts. [`tree::parse`] makes a tree of a text, [`tree::lay_over`] lays overrides
//! over it, and a [`Reader`](decode::Reader) for each table takes typed values out of it. Whatever is wrong is noted in
//! [`Problems`](error::Problems) and reading goes on, so that people see all of it at once.

pub mod decode;
pub mod error;
pub mod file;
pub mod section;
pub mod tree;
pub mod units;
pub mod words;
