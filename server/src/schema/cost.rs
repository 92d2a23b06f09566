//! What checking a value against a schema takes, counted before it is done: validators have no budget, and a
//! few hundred bytes of schema can ask for years.

use serde_json::Value;

use super::places::{Place, Places};

/// Schemas within schemas, and values within values, that are followed: each takes stack.
const DEPTH_MAX: usize = 512;

/// Bytes of a text that a pattern reads in about the time of one check.
const TEXT_A_CHECK: usize = 256;

/// It takes more than there is.
#[derive(Debug)]
pub(super) struct TooMuch;

/// Counts on until nothing is left.
pub(super) struct Count<'a> {
    places: &'a [Place],
    left: usize,
}

impl<'a> Count<'a> {
    /// Checks that `value` takes, where they are at most `most`.
    pub(super) fn of(places: &'a Places, value: &Value, most: usize) -> Result<usize, TooMuch> {
        let mut count = Self { places: &places.0, left: most };
        count.walk(0, value, 0)?;
        Ok(most - count.left)
    }

    fn walk(&mut self, place: usize, value: &Value, depth: usize) -> Result<(), TooMuch> {
        if depth > DEPTH_MAX {
            return Err(TooMuch);
        }
        let (place, deeper) = (&self.places[place], depth + 1);
        let of_text = value.as_str().map_or(0, |text| text.len() / TEXT_A_CHECK);
        self.spend(1 + place.own + of_text)?;
        self.all(&place.in_place, value, deeper)?;
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    self.member(place, (name, member), deeper)?;
                }
            }
            Value::Array(elements) => {
                for (i, element) in elements.iter().enumerate() {
                    place.prefix.get(i).map_or(Ok(()), |to| self.walk(*to, element, deeper))?;
                    self.all(&place.elements, element, deeper)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn member(
        &mut self,
        place: &Place,
        (name, member): (&str, &Value),
        depth: usize,
    ) -> Result<(), TooMuch> {
        self.spend(place.patterns.len() + name.len() / TEXT_A_CHECK)?;
        for to in &place.names {
            self.walk(*to, &Value::Null, depth)?;
        }
        match place.properties.get(name) {
            Some(to) => self.walk(*to, member, depth)?,
            None => self.all(&place.additional, member, depth)?,
        }
        self.all(&place.patterns, member, depth)
    }

    fn all(&mut self, places: &[usize], value: &Value, depth: usize) -> Result<(), TooMuch> {
        places.iter().try_for_each(|place| self.walk(*place, value, depth))
    }

    fn spend(&mut self, checks: usize) -> Result<(), TooMuch> {
        self.left = self.left.checked_sub(checks).ok_or(TooMuch)?;
        Ok(())
    }
}
