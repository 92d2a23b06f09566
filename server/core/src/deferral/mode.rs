//! Modes of deferral and their text form.

use std::fmt;
use std::str::FromStr;

/// Default share of the context window, in percent.
const PERCENT_DEFAULT: u8 = 10;

/// Mode of deferral.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Tools are deferred.
    Always,
    /// Tools are deferred if their definitions take this share of the context window, 0 to 100 percent.
    Auto(u8),
    /// Tools are not deferred.
    Off,
}

impl Mode {
    /// [`Mode::Auto`] with the default share.
    pub const AUTO: Self = Self::Auto(PERCENT_DEFAULT);
}

impl FromStr for Mode {
    type Err = String;

    /// Reads `always`, `auto`, `auto:N` or `off`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "always" => Ok(Self::Always),
            "auto" => Ok(Self::AUTO),
            "off" => Ok(Self::Off),
            _ => {
                let percent = text.strip_prefix("auto:").and_then(|n| n.parse().ok());
                let percent = percent.filter(|percent| *percent <= 100);
                percent.map(Self::Auto).ok_or_else(|| {
                    format!(
                        "{text:?} is not a mode: say always, auto, auto:PERCENT (0 to 100) or off"
                    )
                })
            }
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => formatter.write_str("always"),
            Self::Auto(percent) => write!(formatter, "auto:{percent}"),
            Self::Off => formatter.write_str("off"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_read_and_written() {
        for (text, mode) in [
            ("always", Some(Mode::Always)),
            ("auto", Some(Mode::Auto(10))),
            ("auto:0", Some(Mode::Auto(0))),
            ("auto:100", Some(Mode::Auto(100))),
            ("off", Some(Mode::Off)),
            ("auto:101", None),
            ("auto:-1", None),
            ("auto:", None),
            ("Always", None),
            ("", None),
        ] {
            assert_eq!(text.parse::<Mode>().ok(), mode, "{text:?}");
            if let Some(mode) = mode {
                assert_eq!(mode.to_string().parse::<Mode>(), Ok(mode));
            }
        }
    }
}
