package render

import (
	"slices"

	"toolgate.dev/go/internal/ordered"
)

const maxBranches = 256

var combinators = []string{"$ref", "allOf", "anyOf", "oneOf"}

// plainRoot is the schema with `type: object` at its root and no combinator there, for providers that take none.
// The properties of all branches become properties of the root; what every branch requires is required. Nested
// schemas stay as they are, and so does a schema that is fine already. The keywords that are also refused are
// dropped.
func plainRoot(schema *ordered.Object, alsoRefused []string, lost *losses) *ordered.Object {
	var refused []string
	for _, key := range slices.Concat(combinators, alsoRefused) {
		if schema.Has(key) {
			refused = append(refused, key)
		}
	}
	if len(refused) == 0 && schema.Get("type") == "object" {
		return schema
	}
	merged := (&branches{root: schema, left: maxBranches}).read(schema)
	plain := ordered.New("type", "object")
	for _, key := range schema.Keys() {
		if key != "type" && !slices.Contains(refused, key) {
			plain.Set(key, schema.Get(key))
		}
	}
	if merged.properties.Len() > 0 {
		plain.Set("properties", merged.properties)
	}
	if len(merged.required) > 0 {
		plain.Set("required", merged.required)
	}
	for _, key := range refused {
		note := "its properties were merged into the root's"
		if slices.Contains(alsoRefused, key) {
			note = "dropped"
		}
		lost.add(pointer("", key), key, "not taken at the root: "+note)
	}
	return plain
}

// object is properties, and which of them are required, in the order of the schema.
type object struct {
	properties *ordered.Object
	required   []any
}

func objectOf(schema *ordered.Object) *object {
	found := &object{properties: ordered.AsObject(schema.Get("properties")).Without()}
	for _, name := range listAt(schema, "required") {
		if _, isText := name.(string); isText {
			found.required = append(found.required, name)
		}
	}
	return found
}

func (o *object) both(other *object) {
	for _, name := range other.properties.Keys() {
		if !o.properties.Has(name) {
			o.properties.Set(name, other.properties.Get(name))
		}
	}
	for _, name := range other.required {
		if !has(o.required, name) {
			o.required = append(o.required, name)
		}
	}
}

// either is one of several objects: a property that they define differently may be as any of them.
func either(several []*object) *object {
	found := &object{properties: ordered.New()}
	definitions := make(map[string][]any)
	for _, one := range several {
		for _, name := range one.properties.Keys() {
			if schema := one.properties.Get(name); !has(definitions[name], schema) {
				definitions[name] = append(definitions[name], schema)
			}
			// In its place; the value follows.
			found.properties.Set(name, nil)
		}
	}
	for name, known := range definitions {
		if len(known) == 1 {
			found.properties.Set(name, known[0])
		} else {
			found.properties.Set(name, ordered.New("anyOf", known))
		}
	}
	for _, name := range several[0].required {
		isRequired := func(one *object) bool { return has(one.required, name) }
		if !slices.ContainsFunc(several, func(one *object) bool { return !isRequired(one) }) {
			found.required = append(found.required, name)
		}
	}
	return found
}

// branches reads a schema's branches, as many as there may reasonably be.
type branches struct {
	root *ordered.Object
	left int
}

func (b *branches) read(schema *ordered.Object) *object {
	found := objectOf(schema)
	if b.left == 0 {
		return found
	}
	b.left--
	if target := resolve(b.root, schema.Get("$ref")); target != nil {
		found.both(b.read(target))
	}
	for _, branch := range listAt(schema, "allOf") {
		found.both(b.read(ordered.AsObject(branch)))
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		var read []*object
		for _, branch := range listAt(schema, key) {
			read = append(read, b.read(ordered.AsObject(branch)))
		}
		if len(read) > 0 {
			found.both(either(read))
		}
	}
	return found
}
