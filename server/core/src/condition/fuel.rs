//! What evaluation may cost: a budget of steps for all conditions of a call, a smaller one for each of
//! them, and why a condition could not be evaluated.

/// Steps that all conditions of one call may take together. A step takes 5 to 50 ns, so that a call's
/// conditions are settled within 25 ms whatever the policy and the state.
pub const STEPS_A_CALL: u32 = 500_000;

/// Steps of one condition, so that one can't starve the others.
pub const STEPS_A_CONDITION: u32 = 200_000;

/// Bytes of a text that a condition makes, at most.
pub(super) const TEXT_MAX: usize = 4 << 10;

/// Why a condition has no answer. The tool that needs it is denied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It takes too long.
    #[error("it takes more steps than a condition may")]
    OutOfSteps,
    /// A map has no such key.
    #[error("there is no key {0:?}")]
    NoSuchKey(Box<str>),
    /// A list has no such place.
    #[error("there is no element {0}")]
    NoSuchElement(i64),
    /// A value of an attribute is of another type than the condition needs.
    #[error("a value is not {0}")]
    WrongType(&'static str),
    /// A number does not fit.
    #[error("a number is out of range")]
    OutOfRange,
    /// Division by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// A text would be too long.
    #[error("a text is longer than {TEXT_MAX} bytes")]
    TextTooLong,
}

/// What is left of the budgets.
#[derive(Debug)]
pub struct Fuel {
    /// Of the call, without the condition at hand.
    of_call: u32,
    /// Of the condition at hand.
    of_condition: u32,
}

impl Default for Fuel {
    fn default() -> Self {
        Self { of_call: STEPS_A_CALL, of_condition: 0 }
    }
}

impl Fuel {
    /// Steps that were taken so far.
    #[must_use]
    pub fn spent(&self) -> u32 {
        STEPS_A_CALL - self.of_call - self.of_condition
    }

    /// Begins the next condition: what the last one left goes back to the call.
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

    /// Comparing or copying this many bytes.
    pub(super) fn spend_on_text(&mut self, bytes: usize) -> Result<(), Fault> {
        if bytes < 64 { Ok(()) } else { self.spend(bytes / 64) }
    }
}
