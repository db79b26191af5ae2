//! Mobility agents on a real Linux host.
