//! Links and shared media, against what is known of them otherwise.

mod dcf;
mod laws;
mod medium;
mod medium_capacity;
mod properties;
mod reference;
mod traces;
