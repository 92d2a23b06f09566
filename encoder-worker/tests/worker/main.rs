//! Tests of the worker as its callers and its supervisor see it: the real binary, the real model, real connections.
#![expect(unreachable_pub, reason = "nothing but tests")]

mod calls;
#[cfg(debug_assertions)]
mod faults;
mod life;
mod process;
