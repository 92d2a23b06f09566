//! Cost of checking a value against a schema, counted before the check. Validators have no budget, and a few hundred
//! bytes of schema can ask for years.

use serde_json::Value;

use super::places::{Places, Subschema};

/// Maximum depth of schemas within schemas and of values within values. Each level takes stack.
const DEPTH_MAX: usize = 512;

/// Bytes of a text that are read in about the time of one check. Patterns have weights of their own.
const TEXT_A_CHECK: usize = 256;

/// Members or elements that are passed over in about the time of one check.
const PARTS_A_CHECK: usize = 16;

/// Maximum number of elements that are compared each with each where they must differ. Larger arrays are compared by
/// hashes.
const COMPARED_EACH: usize = 16;

/// Error of a value that takes more checks than are left, or is nested too deep.
#[derive(Debug)]
pub(super) struct TooMuch;

/// Count of checks that stops when nothing is left.
pub(super) struct Count<'a> {
    places: &'a [Subschema],
    left: usize,
}

impl<'a> Count<'a> {
    /// Counts the checks that `value` takes. Returns an error if they exceed `most`.
    pub(super) fn of(places: &'a Places, value: &Value, most: usize) -> Result<usize, TooMuch> {
        let mut count = Self { places: &places.all, left: most };
        count.walk(0, value, 0)?;
        Ok(most - count.left)
    }

    fn walk(&mut self, place: usize, value: &Value, depth: usize) -> Result<(), TooMuch> {
        if depth > DEPTH_MAX {
            return Err(TooMuch);
        }
        let place = &self.places[place];
        let deeper = depth + 1;
        self.spend(1 + place.own)?;
        if let Value::String(text) = value {
            self.text(place, text.len())?;
        }
        self.all(&place.in_place, value, deeper)?;
        match value {
            Value::Object(members) => {
                self.spend(members.len() / PARTS_A_CHECK)?;
                for (name, member) in members {
                    self.member(place, name, member, deeper)?;
                }
            }
            Value::Array(elements) => {
                self.spend(elements.len() / PARTS_A_CHECK)?;
                if place.compares_elements {
                    self.compare(elements)?;
                }
                for (to, element) in place.prefix.iter().zip(elements) {
                    self.walk(*to, element, deeper)?;
                }
                if !place.elements.is_empty() {
                    elements.iter().try_for_each(|each| self.all(&place.elements, each, deeper))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn member(
        &mut self,
        place: &Subschema,
        name: &str,
        member: &Value,
        depth: usize,
    ) -> Result<(), TooMuch> {
        self.spend(place.patterns.len())?;
        self.spend(place.name_patterns.as_ref().map_or(0, |patterns| patterns.checks(name.len())))?;
        for to in &place.names {
            self.name(*to, name.len(), depth)?;
        }
        match place.properties.get(name) {
            Some(to) => self.walk(*to, member, depth)?,
            None => self.all(&place.additional, member, depth)?,
        }
        self.all(&place.patterns, member, depth)
    }

    /// Counts the checks of a member's name, which is a text.
    fn name(&mut self, place: usize, bytes: usize, depth: usize) -> Result<(), TooMuch> {
        if depth > DEPTH_MAX {
            return Err(TooMuch);
        }
        let place = &self.places[place];
        self.spend(1 + place.own)?;
        self.text(place, bytes)?;
        place.in_place.iter().try_for_each(|to| self.name(*to, bytes, depth + 1))
    }

    fn text(&mut self, place: &Subschema, bytes: usize) -> Result<(), TooMuch> {
        let of_pattern = place.pattern.as_ref().map_or(0, |pattern| pattern.checks(bytes));
        self.spend((bytes / TEXT_A_CHECK).saturating_add(of_pattern))
    }

    /// Counts the comparison of elements. A few are compared each with each, many by their hashes.
    fn compare(&mut self, elements: &[Value]) -> Result<(), TooMuch> {
        let each = if elements.len() > COMPARED_EACH { 2 } else { elements.len() };
        elements.iter().try_for_each(|element| self.parts(element, each))
    }

    fn parts(&mut self, value: &Value, times: usize) -> Result<(), TooMuch> {
        self.spend(times * (1 + value.as_str().map_or(0, |text| text.len() / TEXT_A_CHECK)))?;
        match value {
            Value::Array(elements) => elements.iter().try_for_each(|each| self.parts(each, times)),
            Value::Object(members) => members.values().try_for_each(|each| self.parts(each, times)),
            _ => Ok(()),
        }
    }

    fn all(&mut self, places: &[usize], value: &Value, depth: usize) -> Result<(), TooMuch> {
        places.iter().try_for_each(|place| self.walk(*place, value, depth))
    }

    fn spend(&mut self, checks: usize) -> Result<(), TooMuch> {
        self.left = self.left.checked_sub(checks).ok_or(TooMuch)?;
        Ok(())
    }
}
