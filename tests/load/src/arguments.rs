//! Command line of the load generator.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Parser;

const EXAMPLES: &str = "\
Examples:
  toolgate-load --target http://127.0.0.1:7070 --stream acme=200 --seconds 30
  toolgate-load --target http://127.0.0.1:7070 --stream quiet=50 --stream noisy=2000@10..20 --seconds 30
  toolgate-load --target http://a:7070 --target http://b:7070 --stream acme=100 --retry --seconds 60
  toolgate-load --target http://127.0.0.1:7070 --stream acme=0 --callers 64 --seconds 10

Prints a JSON report. Catalogs must be registered before.";

/// Sends Route calls and says what callers would have seen.
#[derive(Debug, Parser)]
#[command(name = "toolgate-load", after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A server, such as http://127.0.0.1:7070; several take calls in turn.
    #[arg(long = "target", required = true, value_name = "URL")]
    pub(crate) targets: Vec<String>,
    /// A tenant and its calls a second, all the time (TENANT=RATE) or from one second to another (TENANT=RATE@FROM..TO).
    #[arg(long = "stream", required = true, value_name = "TENANT=RATE")]
    pub(crate) streams: Vec<Stream>,
    /// Seconds to send calls for, after the warm-up; a day at most.
    #[arg(long, default_value_t = 10.0, value_parser = seconds_above_0)]
    pub(crate) seconds: f64,
    /// Seconds at the start that are not part of the report.
    #[arg(long, default_value_t = 2.0, value_parser = seconds_from_0)]
    pub(crate) warmup: f64,
    /// Each call's deadline, in seconds.
    #[arg(long, default_value_t = 1.0, value_parser = seconds_above_0)]
    pub(crate) deadline: f64,
    /// Connections to each target.
    #[arg(long, default_value_t = 4)]
    pub(crate) connections: usize,
    /// Give each stream connections of its own, so many to each target, as agents of different tenants have.
    #[arg(long)]
    pub(crate) own_connections: bool,
    /// Try again as the clients' service config says: UNAVAILABLE alone, twice more at most.
    #[arg(long)]
    pub(crate) retry: bool,
    /// A closed loop instead, to find the ceiling: so many callers of each stream, each of which sends its next call when
    /// the last was answered.
    #[arg(long, value_name = "N")]
    pub(crate) callers: Option<usize>,
    /// Draws intents from this file, one JSON object with a "query" per line; without it they are made up.
    #[arg(long, value_name = "FILE")]
    pub(crate) intents: Option<PathBuf>,
    /// Intents come from so many that repeat; 0 for all of the file, or for made-up ones that never do.
    #[arg(long, default_value_t = 0)]
    pub(crate) repeated: usize,
    /// Calls that may be under way here; one beyond is not sent, and counted.
    #[arg(long, default_value_t = 20_000)]
    pub(crate) max_under_way: usize,
    /// Where chance begins.
    #[arg(long, default_value_t = 42)]
    pub(crate) seed: u64,
}

/// Calls of one tenant, at a constant mean rate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stream {
    pub(crate) tenant: String,
    /// Calls per second. 0 means a closed loop.
    pub(crate) rate: f64,
    /// Start and end of the calls, in seconds after the warm-up; `None` for the whole run.
    pub(crate) between: Option<(f64, f64)>,
}

impl FromStr for Stream {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let right = || format!("{text:?} is not TENANT=RATE or TENANT=RATE@FROM..TO");
        let (tenant, rest) = text.split_once('=').ok_or_else(right)?;
        let (rate, between) = match rest.split_once('@') {
            None => (rest, None),
            Some((rate, between)) => (rate, Some(between.split_once("..").ok_or_else(right)?)),
        };
        let number = |text: &str| {
            let number: f64 = text.parse().map_err(|_| right())?;
            if number.is_finite() && number >= 0.0 { Ok(number) } else { Err(right()) }
        };
        let between = match between {
            None => None,
            Some((from, to)) => Some((number(from)?, number(to)?)),
        };
        Ok(Self { tenant: tenant.to_owned(), rate: number(rate)?, between })
    }
}

impl Arguments {
    pub(crate) fn deadline(&self) -> Duration {
        seconds(self.deadline)
    }
}

/// Converts seconds, a few days at most, to a duration. A value below 0 counts as 0.
pub(crate) fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO)
}

/// Maximum length of a run, of its warm-up, and of a call, in seconds: a day. Instants far ahead overflow the clock.
const SECONDS_MAX: f64 = 86_400.0;

fn seconds_from_0(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=SECONDS_MAX).contains(seconds));
    seconds.ok_or_else(|| format!("not a number of seconds from 0 to {SECONDS_MAX}"))
}

fn seconds_above_0(text: &str) -> Result<f64, String> {
    let seconds = seconds_from_0(text).ok().filter(|seconds| *seconds > 0.0);
    seconds.ok_or_else(|| format!("not a number of seconds above 0, up to {SECONDS_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_up_to_a_day() {
        assert_eq!(seconds_from_0("0"), Ok(0.0));
        assert_eq!(seconds_above_0("0.5"), Ok(0.5));
        assert_eq!(seconds_above_0("86400"), Ok(SECONDS_MAX));
        for wrong in ["0", "-1", "x", "", "nan", "inf", "86401", "1e300"] {
            let refused = seconds_above_0(wrong).expect_err(wrong);
            assert_eq!(refused, "not a number of seconds above 0, up to 86400");
        }
        for option in ["--seconds", "--warmup", "--deadline"] {
            let line =
                ["toolgate-load", "--target", "http://a", "--stream", "a=1", option, "1e300"];
            let refused = Arguments::try_parse_from(line).expect_err(option).to_string();
            assert!(refused.contains(option) && refused.contains("86400"), "{refused}");
        }
    }

    #[test]
    fn streams_are_read() {
        let stream = |rate, between| Stream { tenant: "a".into(), rate, between };
        assert_eq!("a=10".parse(), Ok(stream(10.0, None)));
        assert_eq!("a=0.5@1..2.5".parse(), Ok(stream(0.5, Some((1.0, 2.5)))));
        for wrong in ["a", "a=", "a=x", "a=-1", "a=1@", "a=1@3", "a=inf"] {
            assert!(wrong.parse::<Stream>().is_err(), "{wrong}");
        }
    }
}
