//! Memory of calls, stored as exemplars by tool. `toolgate_routing::memory` decides when to make an exemplar and how
//! to weigh it.

use toolgate_core::identity::ToolId;
use toolgate_core::quantized_embedding::QuantizedEmbedding;

/// Number of changes to one tenant's memory, counted from 1.
pub type MemoryVersion = u64;

/// Key that stands for a principal; all zeros if the principal is unknown.
pub type PrincipalKey = [u8; 8];

/// Number of days since 1970 (UTC).
pub type Day = u32;

/// Intent that a tool was called for.
#[derive(Debug, Clone, PartialEq)]
pub struct Exemplar {
    /// Place of the exemplar among the tool's exemplars.
    pub place: u8,
    /// QuantizedEmbedding of the intent.
    pub intent_embedding: QuantizedEmbedding,
    /// Number of calls that the exemplar stands for, at the time of the last one. Older calls count for less.
    pub strength: f32,
    /// Time of the last call that counted, in milliseconds since 1970 (UTC).
    pub seen_ms: i64,
    /// Time at which the exemplar is deleted, in milliseconds since 1970 (UTC). The earliest is also the first to
    /// make room.
    pub fades_ms: i64,
    /// Principal whose call made the exemplar.
    pub owner: PrincipalKey,
    /// Day on which the exemplar was made.
    pub made: Day,
    /// Principals whose calls counted on the last day with any such call.
    pub voters: Vec<PrincipalKey>,
}

/// Changes in a tenant's memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemoryChanges {
    /// Version of the memory after these changes; 0 if nothing was ever stored.
    pub version: MemoryVersion,
    /// True if `exemplars` holds all exemplars, because some were removed; false if it holds only new and changed
    /// ones.
    pub whole: bool,
    /// Exemplars, by tool and place.
    pub exemplars: Vec<(ToolId, Exemplar)>,
}

/// Limits of a tenant's memory.
#[derive(Debug, Clone, Copy)]
pub struct MemoryBounds {
    /// Current time, in milliseconds since 1970 (UTC). Exemplars that fade up to it are deleted.
    pub now_ms: i64,
    /// Maximum number of exemplars. Beyond it, those that fade first are deleted.
    pub most: u32,
}

/// Function that changes the exemplars of a tool, given by place.
pub type Revise<'a> = &'a (dyn Fn(&ToolId, &mut Vec<Exemplar>) + Send + Sync);
