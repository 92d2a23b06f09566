//! What is remembered of calls, as exemplars by tool. What makes one, and what it is worth, is for `toolgate_routing::memory`.

use toolgate_core::identity::ToolId;
use toolgate_core::imprint::Imprint;

/// Counts the changes of one tenant's memory, from 1.
pub type MemoryVersion = u64;

/// Stands for a principal; all zero for nobody known.
pub type PrincipalKey = [u8; 8];

/// Days since 1970 (UTC).
pub type Day = u32;

/// An intent that a tool was called for.
#[derive(Debug, Clone, PartialEq)]
pub struct Exemplar {
    /// Tells it from the tool's others.
    pub place: u8,
    /// The intent.
    pub imprint: Imprint,
    /// How many calls it stands for, those of long ago for less, at the moment of the last one.
    pub strength: f32,
    /// When the last call that counted was made, in milliseconds since 1970 (UTC).
    pub seen_ms: i64,
    /// When it is forgotten, on the same scale; those that fade first make room for others.
    pub fades_ms: i64,
    /// Whose call made it.
    pub owner: PrincipalKey,
    /// On which day.
    pub made: Day,
    /// Whose calls counted on the last day on which any did.
    pub voters: Vec<PrincipalKey>,
}

/// What changed in a tenant's memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemoryChanges {
    /// The version that this brings a reader to; 0 when nothing was ever remembered.
    pub version: MemoryVersion,
    /// Whether these are all exemplars, since some are gone; otherwise those that came or changed.
    pub whole: bool,
    /// The exemplars, by tool and place.
    pub exemplars: Vec<(ToolId, Exemplar)>,
}

/// What a tenant's memory is kept to.
#[derive(Debug, Clone, Copy)]
pub struct MemoryBounds {
    /// The time: what fades before it goes.
    pub now_ms: i64,
    /// The most exemplars: beyond it those that fade first go.
    pub most: u32,
}

/// Changes a tool's exemplars, which it is given by place.
pub type Revise<'a> = &'a (dyn Fn(&ToolId, &mut Vec<Exemplar>) + Send + Sync);
