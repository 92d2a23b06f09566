//! Schema as a graph. Each schema of the document is a place, and its keywords lead to other places, on the same value
//! or on a part of it. References are followed, so that cycles and fan-outs can be seen.

use std::borrow::Cow;
use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::Mistake;
use super::pattern::{Patterns, Weight};

/// Maximum number of schemas that may apply to one value.
const FAN_OUT_MAX: usize = 10_000;

/// Maximum length of a chain of schemas on one value. Following it takes stack.
const CHAIN_MAX: usize = 256;

/// Maximum total number of schemas that the validator compiles again because a schema asks what they leave unevaluated.
const UNEVALUATED_MAX: usize = 40_000;

/// Bytes, and units of some 100 ns, for each schema that is compiled again.
const BYTES_AN_UNEVALUATED: usize = 96;
const UNITS_AN_UNEVALUATED: usize = 15;

/// Bytes of a property's name beside its text. Each schema with an unevaluated keyword has a copy of the name.
const BYTES_A_NAME: usize = 64;
/// Bytes of copied names that take one unit.
const NAME_BYTES_A_UNIT: usize = 64;

/// Keywords whose schemas apply to the same value as the schema that they stand in (JSON Schema 2020-12, core, section
/// 10.2). A cycle through these and references never ends.
const IN_PLACE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const IN_PLACE: [&str; 4] = ["not", "if", "then", "else"];
const IN_PLACE_MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
const ANCHORS: [&str; 2] = ["$anchor", "$dynamicAnchor"];

/// Keywords for which the in-place schemas are applied once more.
const UNEVALUATED: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];

/// Bytes of an `enum` or `const` that are compared in about the time of one schema.
const DATA_A_CHECK: usize = 64;

/// Names that are looked up in a value in about the time of one schema.
const NAMES_A_CHECK: usize = 8;

/// Schema with the places to which it leads; numbers are places.
#[derive(Debug, Default)]
pub(super) struct Subschema {
    /// Number of checks that the schema itself makes of any value.
    pub(super) own: usize,
    /// True if it compares the elements of an array with each other.
    pub(super) compares_elements: bool,
    /// Weight of the `pattern` of texts.
    pub(super) pattern: Option<Box<Weight>>,
    /// Weight of the patterns of members' names, together.
    pub(super) name_patterns: Option<Box<Weight>>,
    /// Places that apply to the same value.
    pub(super) in_place: Vec<usize>,
    /// Subschema that applies to the member of that name.
    pub(super) properties: HashMap<String, usize>,
    /// Places that apply to every member whose name matches a pattern. Each member is tried on each.
    pub(super) patterns: Vec<usize>,
    /// Places that apply to members that `properties` does not name.
    pub(super) additional: Vec<usize>,
    /// Places that apply to each member's name.
    pub(super) names: Vec<usize>,
    /// Places that apply to the elements in order.
    pub(super) prefix: Vec<usize>,
    /// Places that apply to every element.
    pub(super) elements: Vec<usize>,
}

/// All places that are reached from the root, which is the first.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) all: Vec<Subschema>,
    /// Schemas that are compiled again for unevaluated keywords.
    pub(super) unevaluated: Unevaluated,
}

/// Schemas that are compiled again for unevaluated keywords, all together.
#[derive(Debug, Default)]
pub(super) struct Unevaluated {
    schemas: usize,
    name_bytes: usize,
}

impl Unevaluated {
    /// Returns the approximate size in bytes.
    pub(super) fn bytes(&self) -> usize {
        (self.schemas * BYTES_AN_UNEVALUATED).saturating_add(self.name_bytes)
    }

    /// Returns the cost of compiling them, in units of some 100 ns.
    pub(super) fn units(&self) -> usize {
        self.schemas * UNITS_AN_UNEVALUATED + self.name_bytes / NAME_BYTES_A_UNIT
    }
}

impl Places {
    /// Walks through a schema whose patterns were weighed.
    ///
    /// # Errors
    /// Returns a mistake with its place, for a reference that is neither a JSON Pointer nor an anchor of this document,
    /// and for one that leads to more schemas than may apply to one value.
    pub(super) fn of(root: &Value, patterns: &Patterns) -> Result<Self, Mistake> {
        let mut reading = Reading::new(root, patterns)?;
        reading.number(root);
        let mut places = Vec::new();
        while let Some(schema) = reading.queue.get(places.len()).copied() {
            let place = reading.place(schema);
            places.push(place.map_err(|problem| Mistake::of(root, schema, problem))?);
        }
        let mut places = Self { all: places, unevaluated: Unevaluated::default() };
        let checked = places.check(&reading.queue);
        checked.map_err(|(place, problem)| Mistake::of(root, reading.queue[place], problem))?;
        Ok(places)
    }

    /// Bounds the fan-out of references and in-place keywords from any place.
    fn check(&mut self, schemas: &[&Value]) -> Result<(), (usize, String)> {
        let mut of_places = vec![Visit::Never; self.all.len()];
        for (start, schema) in schemas.iter().enumerate() {
            let Some(FanOut { checks, depth, name_bytes }) = self.visit(start, &mut of_places)
            else {
                return Err((start, "a reference leads back to itself".to_owned()));
            };
            if checks > FAN_OUT_MAX || depth > CHAIN_MAX {
                let problem = format!(
                    "applies {checks} schemas to one value, in chains of {depth}, references counted; \
                     at most {FAN_OUT_MAX} and {CHAIN_MAX}"
                );
                return Err((start, problem));
            }
            if UNEVALUATED.iter().any(|key| schema.get(key).is_some()) {
                let all = &mut self.unevaluated;
                all.schemas += checks;
                all.name_bytes = all.name_bytes.saturating_add(name_bytes);
            }
            if self.unevaluated.schemas > UNEVALUATED_MAX {
                let problem = format!(
                    "asks for what {} schemas leave unevaluated, together with those before; at most \
                     {UNEVALUATED_MAX}",
                    self.unevaluated.schemas
                );
                return Err((start, problem));
            }
        }
        Ok(())
    }

    /// Returns the fan-out of a place without the places to which it leads.
    fn alone(&self, place: usize) -> FanOut {
        let names = self.all[place].properties.keys();
        let name_bytes = names.map(|name| name.len() + BYTES_A_NAME).sum();
        FanOut { checks: 1, depth: 1, name_bytes }
    }

    /// Settles a place after those to which it leads, without taking stack for them. Returns `None` for a cycle.
    fn visit(&self, start: usize, of_places: &mut [Visit]) -> Option<FanOut> {
        let mut path = vec![(start, 0, self.alone(start))];
        loop {
            let (here, next, so_far) = path.last_mut().expect("ends with its first");
            let place = *here;
            let fan_out = *so_far;
            match self.all[place].in_place.get(*next).map(|target| (*target, of_places[*target])) {
                Some((_, Visit::Under)) => return None,
                Some((_, Visit::Done(of_target))) => {
                    so_far.checks = fan_out.checks.saturating_add(of_target.checks);
                    so_far.depth = fan_out.depth.max(of_target.depth + 1);
                    so_far.name_bytes = fan_out.name_bytes.saturating_add(of_target.name_bytes);
                    *next += 1;
                }
                Some((target, Visit::Never)) => {
                    of_places[place] = Visit::Under;
                    path.push((target, 0, self.alone(target)));
                }
                None => {
                    of_places[place] = Visit::Done(fan_out);
                    path.pop();
                    if path.is_empty() {
                        return Some(fan_out);
                    }
                }
            }
        }
    }
}

/// Number of schemas that apply to one value, with their depth and names.
#[derive(Debug, Clone, Copy, Default)]
struct FanOut {
    /// Number of schemas that apply to the value.
    checks: usize,
    /// Length of the longest chain of them.
    depth: usize,
    /// Bytes of the names of their properties.
    name_bytes: usize,
}

/// Progress in settling a place.
#[derive(Debug, Clone, Copy)]
enum Visit {
    Never,
    Under,
    Done(FanOut),
}

/// Walk through a schema.
struct Reading<'a> {
    root: &'a Value,
    patterns: &'a Patterns,
    anchors: HashMap<&'a str, &'a Value>,
    /// True if a schema below the root has an id of its own, to which its references are relative.
    has_inner_id: bool,
    /// Places by the address of their schema.
    known: HashMap<*const Value, usize>,
    queue: Vec<&'a Value>,
}

impl<'a> Reading<'a> {
    fn new(root: &'a Value, patterns: &'a Patterns) -> Result<Self, Mistake> {
        let mut anchors = HashMap::new();
        collect_anchors(root, &mut anchors)?;
        let is_draft_4 = root.get("$schema").and_then(Value::as_str).is_some_and(|uri| {
            jsonschema::Draft::from_schema_uri(uri) == jsonschema::Draft::Draft4
        });
        let id = if is_draft_4 { "id" } else { "$id" };
        let has_inner_id = inner(root).any(|value| has_id(value, id));
        let known = HashMap::new();
        let queue = Vec::new();
        Ok(Self { root, patterns, anchors, has_inner_id, known, queue })
    }

    fn number(&mut self, schema: &'a Value) -> usize {
        let next = self.queue.len();
        let number = *self.known.entry(std::ptr::from_ref(schema)).or_insert(next);
        if number == next {
            self.queue.push(schema);
        }
        number
    }

    fn all(&mut self, schemas: impl IntoIterator<Item = &'a Value>) -> Vec<usize> {
        schemas.into_iter().map(|schema| self.number(schema)).collect()
    }

    fn place(&mut self, schema: &'a Value) -> Result<Subschema, String> {
        let Value::Object(map) = schema else { return Ok(Subschema::default()) };
        let mut place = self.alone(map);
        place.in_place = self.in_place(map)?;
        if UNEVALUATED.iter().any(|key| map.contains_key(*key)) {
            place.in_place.extend_from_within(..);
        }
        for (name, schema) in object(map, "properties") {
            place.properties.insert(name.clone(), self.number(schema));
        }
        place.patterns = self.all(object(map, "patternProperties").map(|(_, schema)| schema));
        place.additional = self.all(each(map, &["additionalProperties", "unevaluatedProperties"]));
        place.names = self.all(map.get("propertyNames"));
        // A list in `items` means what `prefixItems` means since 2020-12.
        let items = map.get("items");
        place.prefix = self.all(array(map, "prefixItems").chain(array(map, "items")));
        place.elements = self.all(items.filter(|items| !items.is_array()));
        let rest = each(map, &["additionalItems", "unevaluatedItems", "contains"]);
        place.elements.extend(self.all(rest));
        Ok(place)
    }

    /// Returns the place of a schema without the schemas to which it leads.
    fn alone(&self, map: &'a Map<String, Value>) -> Subschema {
        let data = each(map, &["enum", "const"]).map(size).sum::<usize>() / DATA_A_CHECK;
        let names = object(map, "properties").count()
            + array(map, "required").count()
            + ["dependentRequired", "dependentSchemas", "dependencies"]
                .iter()
                .map(|key| {
                    object(map, key).map(|(_, names)| 1 + names.as_array().map_or(0, Vec::len))
                })
                .map(Iterator::sum::<usize>)
                .sum::<usize>();
        let weight = |text: &str| self.patterns.weight(text);
        let named = object(map, "patternProperties").map(|(text, _)| weight(text));
        Subschema {
            own: data + names / NAMES_A_CHECK + usize::from(map.contains_key("format")),
            compares_elements: map.get("uniqueItems") == Some(&Value::Bool(true)),
            pattern: map.get("pattern").and_then(Value::as_str).map(weight).map(Box::new),
            name_patterns: named.reduce(Weight::and).map(Box::new),
            ..Subschema::default()
        }
    }

    fn in_place(&mut self, map: &'a Map<String, Value>) -> Result<Vec<usize>, String> {
        let mut found = Vec::new();
        for reference in each(map, &REFERENCES).filter_map(Value::as_str) {
            let target = self.target(reference)?;
            found.push(self.number(target));
        }
        found.extend(self.all(each(map, &IN_PLACE)));
        found.extend(self.all(IN_PLACE_LISTS.iter().flat_map(|key| array(map, key))));
        let maps = IN_PLACE_MAPS.iter().flat_map(|key| object(map, key));
        found.extend(self.all(maps.map(|(_, schema)| schema)));
        Ok(found)
    }

    fn target(&self, reference: &str) -> Result<&'a Value, String> {
        if self.has_inner_id {
            let problem = "a schema below the root has an $id, which changes what references mean: leave it out, \
                           and refer to it as #/$defs/name";
            return Err(problem.to_owned());
        }
        let id = self.root.get("$id").and_then(Value::as_str).unwrap_or_default();
        let id = id.strip_suffix('#').unwrap_or(id);
        let fragment = match reference.split_once('#') {
            None if reference == id => Some(""),
            Some((base, fragment)) if base.is_empty() || base == id => Some(fragment),
            _ => None,
        };
        let found = fragment.and_then(|fragment| {
            let fragment = percent_decoded(fragment);
            self.anchors.get(&*fragment).copied().or_else(|| self.root.pointer(&fragment))
        });
        found.ok_or_else(|| {
            format!("the reference {reference:?} is no JSON Pointer or anchor of this document")
        })
    }
}

fn collect_anchors<'a>(
    value: &'a Value,
    found: &mut HashMap<&'a str, &'a Value>,
) -> Result<(), Mistake> {
    if let Value::Object(map) = value {
        for anchor in each(map, &ANCHORS).filter_map(Value::as_str) {
            let known = *found.entry(anchor).or_insert(value);
            if !std::ptr::eq(known, value) {
                return Err(Mistake::at_root(format!("the anchor {anchor:?} is there twice")));
            }
        }
    }
    children(value).try_for_each(|inner| collect_anchors(inner, found))
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Object(map) => Box::new(map.values()),
        Value::Array(items) => Box::new(items.iter()),
        _ => Box::new(std::iter::empty()),
    }
}

/// Returns every value below this one.
fn inner(value: &Value) -> impl Iterator<Item = &Value> {
    let mut left: Vec<&Value> = children(value).collect();
    std::iter::from_fn(move || {
        let next = left.pop()?;
        left.extend(children(next));
        Some(next)
    })
}

fn has_id(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_str).is_some_and(|id| !id.starts_with('#'))
}

/// Returns the bytes of a value's texts, plus eight for each part.
fn size(value: &Value) -> usize {
    let own = |value: &Value| 8 + value.as_str().map_or(0, str::len);
    own(value) + inner(value).map(own).sum::<usize>()
}

fn each<'a>(map: &'a Map<String, Value>, keys: &[&str]) -> impl Iterator<Item = &'a Value> {
    keys.iter().filter_map(|key| map.get(*key)).collect::<Vec<_>>().into_iter()
}

fn object<'a>(
    map: &'a Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    map.get(key).and_then(Value::as_object).into_iter().flatten()
}

fn array<'a>(map: &'a Map<String, Value>, key: &str) -> impl Iterator<Item = &'a Value> {
    map.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// Returns the text with its `%XX` resolved, or unchanged if the result is no UTF-8.
pub(super) fn percent_decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8().unwrap_or(Cow::Borrowed(text))
}
