//! Tests of the encoder pool against small workers in this process over real sockets. Workers work, are late, broken,
//! full, silent or wrong, and the tests check what callers notice.
#![expect(unreachable_pub, reason = "nothing but tests")]

mod balance;
mod budget;
mod checks;
mod connections;
mod faults;
mod half_precision;
mod here;
mod joining;
mod membership;
mod setup;
mod worker;
