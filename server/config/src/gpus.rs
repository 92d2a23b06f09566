//! GPUs on which a server starts workers.

use std::fmt;
use std::str::FromStr;

/// Most GPUs that a number may ask for.
const MOST: usize = 64;

/// GPUs on which a server starts a worker each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gpus {
    /// This number of the first ones, up to 64, whether or not they work; 0 for none.
    First(usize),
    /// All that work, if there are any.
    Auto,
    /// All that work. The server does not start without any.
    Require,
}

impl FromStr for Gpus {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "off" => Ok(Self::First(0)),
            "auto" => Ok(Self::Auto),
            "require" => Ok(Self::Require),
            _ => {
                let count = text.parse().ok().filter(|count| *count <= MOST);
                count.map(Self::First).ok_or("no choice of GPUs")
            }
        }
    }
}

impl fmt::Display for Gpus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First(0) => formatter.write_str("off"),
            Self::First(count) => count.fmt(formatter),
            Self::Auto => formatter.write_str("auto"),
            Self::Require => formatter.write_str("require"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_read_as_they_are_written() {
        for gpus in [Gpus::First(0), Gpus::First(1), Gpus::First(64), Gpus::Auto, Gpus::Require] {
            assert_eq!(gpus.to_string().parse(), Ok(gpus));
        }
        assert_eq!("0".parse(), Ok(Gpus::First(0)));
        for wrong in ["", "65", "-1", "on", "AUTO", "cuda:0"] {
            assert!(wrong.parse::<Gpus>().is_err(), "{wrong}");
        }
    }
}
