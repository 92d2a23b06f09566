//! Tests of the routing plane's promises on `Plane` itself. They use a real store in a folder of its own and a
//! deterministic encoder that can be made to fail, without a network.
#![expect(clippy::unwrap_used, unreachable_pub, reason = "nothing but tests")]

mod accounting;
mod agreement;
mod capture;
mod clocks;
mod continuity;
mod conversation;
mod damage;
mod deferral;
mod degraded;
mod gating;
mod hidden;
mod isolation;
mod limits;
mod memory;
mod pending;
mod policies;
mod pool;
mod preconditions;
mod quarantine;
mod ranking;
mod requests;
mod search;
mod shards;
mod support;
mod surfaces;
mod tail;
mod tool_attention;
mod usage;
mod visibility;
