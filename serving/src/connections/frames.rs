//! Budget for frames of HTTP/2 that cost a peer almost nothing but cost this process work: pings, settings, resets and
//! the like. The protocol allows any number of them. A peer that sends more than honest clients do is not disconnected,
//! since it would reconnect at once. It is read more slowly instead, so that it pays with its own time.

use std::time::Duration;

use tokio::time::Instant;

/// Points that every peer earns in a second, and the most that it may save up. Keepalive sends at most one ping every
/// ten seconds. A client whose 256 calls all run out of time at once resets each of them.
const POINTS_A_SECOND: u32 = 512;
const POINTS_MAX: i64 = 2_048;

/// Points that a request earns. Clients answer the data they receive with a ping to measure the line (gRPC in Go and
/// C++ do) and with window updates for the call and for the connection.
const EARNED: i64 = 4;

/// Points that a reset costs: one more than its request has earned.
const RESET: i64 = EARNED + 1;

/// Age from which a request may be reset for free; in practice between this and twice this. A caller whose deadline has
/// passed resets its request that late. As many resets are free as there were requests. A client with 256 calls in
/// progress, all of which run out of time after a tenth of a second, again and again, never waits.
const SETTLED: Duration = Duration::from_millis(50);

/// Most requests whose resets are free: as many as one connection may have in progress.
const FREE_RESETS_MAX: u32 = 256;

/// Most points that a peer has to pay back: two seconds' worth, which bounds the pause.
const OWED_MAX: i64 = 2 * POINTS_A_SECOND as i64;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes of a frame's header: three of length, type, flags, four of stream (RFC 9113, 4.1).
const HEADER: usize = 9;

/// Types of frames (RFC 9113, 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;

const END_STREAM: u8 = 1;

/// Mask of a stream's number, which has 31 bits.
const STREAM: u32 = u32::MAX >> 1;

/// Parser and budget for the incoming frames of one connection.
#[derive(Debug)]
pub(super) struct Frames {
    place: FramePosition,
    budget: FrameBudget,
    requests: Requests,
}

/// Age of requests by stream number; these only rise (RFC 9113, 5.1.1).
#[derive(Debug)]
struct Requests {
    /// Last stream that came at least [`SETTLED`] ago.
    settled: u32,
    /// Last stream at `since`; it settles [`SETTLED`] after that.
    then: u32,
    since: Instant,
    /// Last stream; `last_at` is its time of arrival.
    last: u32,
    last_at: Instant,
    /// Number of requests that may be reset for free.
    free_resets: u32,
}

/// Position in the byte stream.
#[derive(Debug)]
enum FramePosition {
    /// In the preface, with the number of bytes seen.
    Preface(usize),
    Header {
        bytes: [u8; HEADER],
        seen: usize,
    },
    Payload {
        left: usize,
    },
    /// The peer speaks another protocol.
    Elsewhere,
}

#[derive(Debug)]
struct FrameBudget {
    points: i64,
    /// Time up to which points were credited.
    given: Instant,
}

impl Frames {
    /// Creates the state of a connection that begins now.
    pub(super) fn new(now: Instant) -> Self {
        let budget = FrameBudget { points: POINTS_MAX, given: now };
        let requests =
            Requests { settled: 0, then: 0, since: now, last: 0, last_at: now, free_resets: 0 };
        Self { place: FramePosition::Preface(0), budget, requests }
    }

    /// Counts incoming bytes. Returns how long to stop reading when the peer has sent too many cheap frames.
    pub(super) fn charge(&mut self, mut bytes: &[u8], now: Instant) -> Option<Duration> {
        if matches!(self.place, FramePosition::Elsewhere) {
            return None;
        }
        self.budget.refill(now);
        self.requests.age(now);
        while !bytes.is_empty() {
            bytes = self.step(bytes, now);
        }
        self.budget.pause()
    }

    /// Consumes the bytes of one part, as far as they are there, and returns the rest.
    fn step<'a>(&mut self, bytes: &'a [u8], now: Instant) -> &'a [u8] {
        match &mut self.place {
            FramePosition::Elsewhere => &[],
            FramePosition::Preface(seen) => {
                let wanted = &PREFACE[*seen..];
                let taken = wanted.len().min(bytes.len());
                *seen += taken;
                if bytes[..taken] != wanted[..taken] {
                    self.place = FramePosition::Elsewhere;
                } else if *seen == PREFACE.len() {
                    self.place = FramePosition::next();
                }
                &bytes[taken..]
            }
            FramePosition::Header { bytes: header, seen } => {
                let taken = (HEADER - *seen).min(bytes.len());
                header[*seen..*seen + taken].copy_from_slice(&bytes[..taken]);
                *seen += taken;
                if *seen == HEADER {
                    let [a, b, c, kind, flags, stream @ ..] = *header;
                    let left = u32::from_be_bytes([0, a, b, c]) as usize;
                    let stream = u32::from_be_bytes(stream) & STREAM;
                    let worth = match kind {
                        HEADERS => self.requests.begin(stream, now),
                        RST_STREAM => self.requests.reset(stream),
                        _ => worth(kind, flags, left),
                    };
                    self.budget.add(worth);
                    self.place = if left == 0 {
                        FramePosition::next()
                    } else {
                        FramePosition::Payload { left }
                    };
                }
                &bytes[taken..]
            }
            FramePosition::Payload { left } => {
                let taken = (*left).min(bytes.len());
                *left -= taken;
                if *left == 0 {
                    self.place = FramePosition::next();
                }
                &bytes[taken..]
            }
        }
    }
}

impl FramePosition {
    /// Returns the position before a frame.
    fn next() -> Self {
        Self::Header { bytes: [0; HEADER], seen: 0 }
    }
}

impl Requests {
    fn age(&mut self, now: Instant) {
        let is_old = |at: Instant| now.saturating_duration_since(at) >= SETTLED;
        if is_old(self.last_at) {
            self.settled = self.last;
        } else if is_old(self.since) {
            self.settled = self.then;
        } else {
            return;
        }
        self.then = self.last;
        self.since = now;
    }

    /// Records a request and returns the points that it earns.
    fn begin(&mut self, stream: u32, now: Instant) -> i64 {
        self.last = self.last.max(stream);
        self.last_at = now;
        self.free_resets = (self.free_resets + 1).min(FREE_RESETS_MAX);
        EARNED
    }

    /// Returns the points of a reset, which are negative. An old request costs what it has earned.
    fn reset(&mut self, stream: u32) -> i64 {
        if stream > self.settled || self.free_resets == 0 {
            return -RESET;
        }
        self.free_resets -= 1;
        -EARNED
    }
}

/// Returns the points of a frame that is neither a request nor a reset.
fn worth(kind: u8, flags: u8, length: usize) -> i64 {
    match kind {
        // Bodies are bounded in bytes elsewhere. An empty frame means something only at the end of a body.
        DATA if length > 0 || flags & END_STREAM > 0 => 0,
        _ => -1,
    }
}

impl FrameBudget {
    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.given);
        let points = passed.as_micros() * u128::from(POINTS_A_SECOND) / 1_000_000;
        let Ok(points @ 1..) = u32::try_from(points) else { return };
        self.add(points.into());
        // Not `now`: a fraction of a point counts next time.
        self.given += Duration::from_secs(1) * points / POINTS_A_SECOND;
    }

    fn add(&mut self, points: i64) {
        self.points = self.points.saturating_add(points).min(POINTS_MAX);
    }

    /// Returns the time until the budget is balanced again.
    fn pause(&mut self) -> Option<Duration> {
        // Points beyond the longest pause are forgiven.
        self.points = self.points.max(-OWED_MAX);
        let owed = u32::try_from(-self.points).ok().filter(|owed| *owed > 0)?;
        Some(Duration::from_secs(1) * owed / POINTS_A_SECOND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, length: usize) -> Vec<u8> {
        let length_bytes = u32::try_from(length).expect("a frame's length").to_be_bytes();
        let mut bytes = length_bytes[1..].to_vec();
        bytes.extend([kind, flags, 0, 0, 0, 1]);
        bytes.resize(HEADER + length, kind);
        bytes
    }

    fn begun(now: Instant) -> Frames {
        let mut frames = Frames::new(now);
        assert_eq!(frames.charge(PREFACE, now), None);
        frames
    }

    fn pings(count: usize) -> Vec<u8> {
        frame(6, 0, 8).repeat(count)
    }

    /// Frames of a call whose answer is read: window updates for both levels, and a ping to measure the line.
    fn honest_call() -> Vec<u8> {
        let parts = [frame(HEADERS, 4, 90), frame(DATA, END_STREAM, 200), frame(8, 0, 4)];
        [parts.concat(), frame(8, 0, 4), frame(6, 0, 8)].concat()
    }

    #[test]
    fn pings_beyond_the_budget_are_waited_for() {
        let start = Instant::now();
        let mut frames = begun(start);
        assert_eq!(frames.charge(&pings(2_048), start), None);
        let second = Duration::from_secs(1);
        assert_eq!(frames.charge(&pings(512), start), Some(second));
        assert_eq!(frames.charge(&[], start + second), None);
        assert!(frames.charge(&pings(1), start + second).is_some());
        // The pause is bounded, however much came at once.
        assert_eq!(frames.charge(&pings(100_000), start + second), Some(2 * second));
        assert_eq!(frames.charge(&pings(512), start + 4 * second), None);
    }

    #[test]
    fn frames_are_told_apart_however_they_are_cut() {
        let start = Instant::now();
        let stream = [honest_call(), pings(3), frame(4, 0, 36), frame(RST_STREAM, 0, 4)].concat();
        let whole = |pieces: &dyn Fn(&[u8]) -> Vec<Vec<u8>>| {
            let mut frames = Frames::new(start);
            let bytes = [PREFACE, &stream].concat();
            for piece in pieces(&bytes) {
                assert_eq!(frames.charge(&piece, start), None);
            }
            frames.budget.points
        };
        // The budget is full when the first call comes, so its earnings are lost.
        let expected = POINTS_MAX - 3 - 3 - 1 - RESET;
        assert_eq!(whole(&|bytes| vec![bytes.to_vec()]), expected);
        for size in 1..40 {
            let cut = |bytes: &[u8]| bytes.chunks(size).map(<[u8]>::to_vec).collect();
            assert_eq!(whole(&cut), expected, "in pieces of {size}");
        }
    }

    #[test]
    fn honest_calls_never_wait() {
        let start = Instant::now();
        let mut frames = begun(start);
        for _ in 0..100_000 {
            assert_eq!(frames.charge(&honest_call(), start), None);
        }
        // All calls of a connection are reset at once, a second apart.
        for second in 0..10 {
            let now = start + Duration::from_secs(second);
            assert_eq!(frames.charge(&frame(HEADERS, 4, 90).repeat(256), now), None);
            assert_eq!(frames.charge(&frame(RST_STREAM, 0, 4).repeat(256), now), None, "{second}");
        }
    }

    fn on(stream: u32, mut frame: Vec<u8>) -> Vec<u8> {
        frame[5..HEADER].copy_from_slice(&stream.to_be_bytes());
        frame
    }

    #[test]
    fn calls_whose_deadlines_pass_never_wait() {
        let start = Instant::now();
        let mut frames = begun(start);
        // All streams are open at once. Each is reset when its deadline passes, and another one opens in its stead.
        for round in 0..600 {
            let now = start + 2 * SETTLED * round;
            let streams = |round: u32| (512 * round + 1..).step_by(2).take(256);
            for stream in round.checked_sub(1).into_iter().flat_map(streams) {
                let reset = on(stream, frame(RST_STREAM, 0, 4));
                assert_eq!(frames.charge(&reset, now), None, "round {round}");
            }
            for stream in streams(round) {
                assert_eq!(frames.charge(&on(stream, frame(HEADERS, 5, 90)), now), None);
            }
        }
    }

    #[test]
    fn resets_of_the_same_old_request_are_free_once() {
        let start = Instant::now();
        let mut frames = begun(start);
        frames.charge(&frame(HEADERS, 5, 90), start);
        let now = start + SETTLED;
        let reset = frame(RST_STREAM, 0, 4);
        let sent = (1..).find(|_| frames.charge(&reset, now).is_some());
        assert_eq!(sent, Some(410), "a free one, and those that the saved points pay for");
    }

    #[test]
    fn a_request_does_not_pay_for_its_own_reset() {
        let start = Instant::now();
        let mut frames = begun(start);
        let pair = [frame(HEADERS, 5, 90), frame(RST_STREAM, 0, 4)].concat();
        let sent = (1..).find(|_| frames.charge(&pair, start).is_some());
        assert_eq!(sent, Some(2_045), "a saved second of them, and not any number");
    }

    #[test]
    fn nothing_is_made_of_other_protocols() {
        let start = Instant::now();
        for first in [b"GET / HTTP/1.1\r\n".as_slice(), b"PRI * HTTP/1.1\r\n", b"\x16\x03"] {
            let mut frames = Frames::new(start);
            assert_eq!(frames.charge(first, start), None);
            assert_eq!(frames.charge(&pings(10_000), start), None);
        }
    }
}
