//! What evaluation may cost: a budget of steps for all conditions of a call, a smaller one for each of
//! them, and why a condition could not be evaluated.

/// Steps that all conditions of one call may take together. A step takes 5 to 50 ns, so that a call's
/// conditions are settled within 50 ms whatever the policy and the state.
pub const STEPS_A_CALL: u32 = 1_000_000;

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
    NoSuchKey(String),
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
    of_call: u32,
    of_condition: u32,
}

impl Default for Fuel {
    fn default() -> Self {
        Self { of_call: STEPS_A_CALL, of_condition: STEPS_A_CONDITION }
    }
}

impl Fuel {
    /// Steps that were taken so far.
    #[must_use]
    pub fn spent(&self) -> u32 {
        STEPS_A_CALL - self.of_call
    }

    /// Begins the next condition.
    pub(super) fn begin(&mut self) {
        self.of_condition = self.of_call.min(STEPS_A_CONDITION);
    }

    pub(super) fn spend(&mut self, steps: usize) -> Result<(), Fault> {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        match self.of_condition.checked_sub(steps) {
            Some(left) => {
                self.of_condition = left;
                self.of_call -= steps;
                Ok(())
            }
            None => {
                self.of_call -= self.of_condition;
                self.of_condition = 0;
                Err(Fault::OutOfSteps)
            }
        }
    }

    /// Comparing or copying this many bytes.
    pub(super) fn spend_on_text(&mut self, bytes: usize) -> Result<(), Fault> {
        if bytes < 64 { Ok(()) } else { self.spend(bytes / 64) }
    }
}
