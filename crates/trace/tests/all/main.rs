//! What is written of a run: columns, captures, and their description.

mod columns;
mod docs;
mod pcapng;
