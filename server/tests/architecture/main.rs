//! The house holds to its plan: who may depend on whom is read from ARCHITECTURE.md. Reads sources as text;
//! nothing of the product is called.
#![expect(clippy::unwrap_used, unreachable_pub, reason = "nothing but tests")]

mod arrows;
mod crates;
mod plan;
mod source;
