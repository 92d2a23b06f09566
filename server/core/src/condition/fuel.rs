//! Budgets of evaluation: steps for all conditions of a call, and a smaller number for each of them. A fault is the
//! reason why a condition could not be evaluated.

/// Maximum number of steps for all conditions of one call. A step takes 5 to 50 ns, so that a call's conditions are
/// settled within 25 ms whatever the policy and the state.
pub const STEPS_A_CALL: u32 = 500_000;

/// Maximum number of steps for one condition, so that it can't starve the others.
pub const STEPS_A_CONDITION: u32 = 200_000;

/// Maximum size in bytes of a text that a condition creates.
pub(super) const TEXT_MAX: usize = 4 << 10;

/// Reason why a condition has no answer. The tool that needs the condition is denied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The condition takes too many steps.
    #[error("it takes more steps than a condition may")]
    OutOfSteps,
    /// A map lacks the key.
    #[error("there is no key {0:?}")]
    NoSuchKey(Box<str>),
    /// A list lacks the element.
    #[error("there is no element {0}")]
    NoSuchElement(i64),
    /// The type of an attribute's value is not the one that the condition needs.
    #[error("a value is not {0}")]
    WrongType(&'static str),
    /// A number is out of range.
    #[error("a number is out of range")]
    OutOfRange,
    /// Division by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// A created text would be too long.
    #[error("a text is longer than {TEXT_MAX} bytes")]
    TextTooLong,
}

/// Remaining budgets.
#[derive(Debug)]
pub struct Fuel {
    /// Steps left to the call, without those of the current condition.
    of_call: u32,
    /// Steps left to the current condition.
    of_condition: u32,
}

impl Default for Fuel {
    fn default() -> Self {
        Self { of_call: STEPS_A_CALL, of_condition: 0 }
    }
}

impl Fuel {
    /// Returns the number of steps taken so far.
    #[must_use]
    pub fn spent(&self) -> u32 {
        STEPS_A_CALL - self.of_call - self.of_condition
    }

    /// Begins the next condition. Steps that the last condition left go back to the call.
    pub(super) fn begin(&mut self) {
        let left = self.of_call + self.of_condition;
        self.of_condition = left.min(STEPS_A_CONDITION);
        self.of_call = left - self.of_condition;
    }

    #[inline]
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), Fault> {
        let left = u32::try_from(steps).ok().and_then(|steps| self.of_condition.checked_sub(steps));
        self.of_condition = left.unwrap_or(0);
        if left.is_some() { Ok(()) } else { Err(Fault::OutOfSteps) }
    }

    /// Spends the steps for comparing or copying this many bytes.
    pub(super) fn spend_on_text(&mut self, bytes: usize) -> Result<(), Fault> {
        if bytes < 64 { Ok(()) } else { self.spend(bytes / 64) }
    }
}
