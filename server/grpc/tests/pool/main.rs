//! The encoder pool against small workers in this process, over real sockets: workers that are in order,
//! late, broken, full, silent or wrong, and what their callers notice of it.
#![expect(unreachable_pub, reason = "nothing but tests")]

mod balance;
mod budget;
mod faults;
mod here;
mod membership;
mod setup;
mod worker;
