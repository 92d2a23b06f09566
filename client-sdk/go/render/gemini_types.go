package render

import (
	"encoding/json"
	"slices"
	"strings"

	"toolgate.dev/go/internal/ordered"
)

var typeNames = []string{"string", "number", "integer", "boolean", "array", "object"}

// signs are the keywords by which a schema that does not name its type shows it.
var signs = []struct {
	kind string
	keys []string
}{
	{"OBJECT", []string{"properties", "required", "additionalProperties", "patternProperties"}},
	{"ARRAY", []string{"items", "prefixItems", "minItems", "maxItems"}},
	{"STRING", []string{"minLength", "maxLength", "pattern", "format"}},
	{"NUMBER", []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
}

var counts = map[string][]string{
	"STRING": {"minLength", "maxLength"},
	"ARRAY":  {"minItems", "maxItems"},
	"OBJECT": {"minProperties", "maxProperties"},
}

var formats = map[string][]string{
	"STRING": {"date-time"}, "NUMBER": {"float", "double"}, "INTEGER": {"int32", "int64"},
}

// seenTo are keywords that are rewritten or kept, or have no meaning of their own.
var seenTo = []string{
	"type", "format", "enum", "const", "nullable", "default", "title", "description", "pattern",
	"properties", "required", "additionalProperties", "minProperties", "maxProperties",
	"items", "prefixItems", "minItems", "maxItems", "anyOf", "oneOf",
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength",
	"$schema", "$id", "$comment", "$anchor", "$defs", "definitions",
}

// convertTyped rewrites a schema of one type, without references and combinators.
func (c *converter) convertTyped(schema *ordered.Object, stands place) *ordered.Object {
	kind := c.kindOf(schema, stands.at)
	converted := ordered.New("type", kind)
	for _, key := range []string{"title", "description", "pattern"} {
		if text, isText := schema.Get(key).(string); isText && (key != "pattern" || kind == "STRING") {
			converted.Set(key, text)
		}
	}
	if byDefault := schema.Get("default"); byDefault != nil {
		converted.Set("default", byDefault)
	}
	if allowsNull(schema) {
		converted.Set("nullable", true)
	}
	for _, key := range counts[kind] {
		if count, isNumber := schema.Get(key).(json.Number); isNumber {
			converted.Set(key, whole(count))
		}
	}
	c.format(schema, stands.at, converted)
	c.values(schema, stands.at, converted)
	switch kind {
	case "NUMBER", "INTEGER":
		c.bounds(schema, stands.at, converted)
	case "ARRAY":
		converted.Set("items", c.items(schema, stands))
	case "OBJECT":
		c.properties(schema, stands, converted)
	}
	for _, key := range schema.Keys() {
		if !slices.Contains(seenTo, key) {
			c.losses.add(pointer(stands.at, key), key, "dropped: Gemini has no such keyword")
		}
	}
	return converted
}

// isNull reports whether a schema takes null alone.
func isNull(schema *ordered.Object) bool {
	return schema.Get("type") == "null" || schema.Has("const") && schema.Get("const") == nil
}

// allowsNull reports whether a schema takes null beside other values.
func allowsNull(schema *ordered.Object) bool {
	if schema.Get("nullable") == true || isNull(schema) {
		return true
	}
	if has(listAt(schema, "type"), "null") || has(listAt(schema, "enum"), nil) {
		return true
	}
	takesNull := func(branch any) bool { return isNull(ordered.AsObject(branch)) }
	return slices.ContainsFunc(listAt(schema, "anyOf"), takesNull) ||
		slices.ContainsFunc(listAt(schema, "oneOf"), takesNull)
}

func (c *converter) kindOf(schema *ordered.Object, at string) string {
	for _, kind := range append(slices.Clone(listAt(schema, "type")), schema.Get("type")) {
		if text := ordered.AsText(kind); slices.Contains(typeNames, text) {
			return strings.ToUpper(text)
		}
	}
	for _, sign := range signs {
		if slices.ContainsFunc(sign.keys, schema.Has) {
			return sign.kind
		}
	}
	values := listedValues(schema)
	switch {
	case len(values) > 0 && all(values, isWhole):
		return "INTEGER"
	case len(values) > 0 && all(values, isA[json.Number]):
		return "NUMBER"
	case len(values) > 0 && all(values, isA[bool]):
		return "BOOLEAN"
	case len(values) == 0 || !all(values, isA[string]):
		c.losses.add(at, "type", "any value: only texts are asked for")
	}
	return "STRING"
}

// listedValues are those of const or enum that are not null.
func listedValues(schema *ordered.Object) []any {
	listed := listAt(schema, "enum")
	if schema.Has("const") {
		listed = []any{schema.Get("const")}
	}
	return slices.DeleteFunc(slices.Clone(listed), func(value any) bool { return value == nil })
}

func all(values []any, check func(any) bool) bool {
	return !slices.ContainsFunc(values, func(value any) bool { return !check(value) })
}

func isA[T any](value any) bool {
	_, ok := value.(T)
	return ok
}

func isWhole(value any) bool {
	number, isNumber := value.(json.Number)
	return isNumber && ordered.IsInteger(number)
}

func (c *converter) format(schema *ordered.Object, at string, converted *ordered.Object) {
	named := schema.Get("format")
	if named == nil {
		return
	}
	taken := formats[ordered.AsText(converted.Get("type"))]
	if text, isText := named.(string); isText && slices.Contains(taken, text) {
		converted.Set("format", text)
		return
	}
	c.losses.add(pointer(at, "format"), "format", "dropped: "+string(ordered.Write(named)))
}

// values lists what is valid. Gemini lists texts only; other values are named in the description.
func (c *converter) values(schema *ordered.Object, at string, converted *ordered.Object) {
	values := listedValues(schema)
	if len(values) == 0 {
		return
	}
	isWord := func(value any) bool { return ordered.AsText(value) != "" }
	if converted.Get("type") == "STRING" && all(values, isWord) {
		converted.Set("enum", values)
		return
	}
	listed := make([]string, len(values))
	for i, value := range values {
		listed[i] = string(ordered.Write(value))
	}
	told := "One of: " + strings.Join(listed, ", ") + "."
	if described := ordered.AsText(converted.Get("description")); described != "" {
		told = described + " " + told
	}
	converted.Set("description", told)
	keyword := "enum"
	if schema.Has("const") {
		keyword = "const"
	}
	c.losses.add(pointer(at, keyword), keyword, "named in the description only")
}

func (c *converter) items(schema *ordered.Object, stands place) *ordered.Object {
	places := listAt(schema, "prefixItems")
	if len(places) == 0 {
		places = listAt(schema, "items")
	}
	if len(places) == 0 {
		return c.convert(schema.Get("items"), stands.down("items"))
	}
	keyword := "items"
	if schema.Has("prefixItems") {
		keyword = "prefixItems"
	}
	c.losses.add(pointer(stands.at, keyword), keyword, "which place takes which is lost")
	var unique []any
	for _, value := range places {
		if !has(unique, value) {
			unique = append(unique, value)
		}
	}
	if len(unique) == 1 {
		return c.convert(unique[0], stands.down("items"))
	}
	return c.convert(ordered.New("anyOf", unique), stands.down("items"))
}

func (c *converter) properties(schema *ordered.Object, stands place, converted *ordered.Object) {
	properties := ordered.New()
	given := ordered.AsObject(schema.Get("properties"))
	for _, name := range given.Keys() {
		within := stands.down("properties", name)
		if isName(name, 64, "_") && beginsName(name) {
			properties.Set(name, c.convert(given.Get(name), within))
		} else {
			c.losses.add(within.at, "properties", "dropped: not taken as a name")
		}
	}
	var required []any
	for _, name := range listAt(schema, "required") {
		if text, isText := name.(string); isText && properties.Has(text) {
			required = append(required, name)
		}
	}
	if properties.Len() > 0 {
		converted.Set("properties", properties)
	}
	if len(required) > 0 {
		converted.Set("required", required)
	}
	if saysSomething(schema.Get("additionalProperties")) {
		at := pointer(stands.at, "additionalProperties")
		c.losses.add(at, "additionalProperties", "dropped: not taken")
	}
}

func saysSomething(more any) bool {
	object, isObject := more.(*ordered.Object)
	return more != nil && more != true && (!isObject || object.Len() > 0)
}
