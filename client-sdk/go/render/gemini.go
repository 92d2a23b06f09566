package render

import (
	"slices"
	"strconv"

	"toolgate.dev/go/internal/ordered"
	"toolgate.dev/go/toolgatev1"
)

const (
	// geminiMost is the number of declarations that a request takes.
	geminiMost = 512
	maxSchemas = 4096
	maxMerges  = 16
	saidTwice  = "dropped: another schema says it already"
)

// annotations say nothing about which values are valid.
var annotations = []string{"title", "description", "default", "examples"}

// Gemini gives the active set as `functionDeclarations`, to be sent as `[{"functionDeclarations": [...]}]`.
//
// Schemas are rewritten in Gemini's subset of OpenAPI's; every keyword that it can't say is among the losses.
// Models that take full JSON Schema (`parametersJsonSchema`) don't need this. A request takes 512 declarations:
// later ones are left out, and among the losses. It fails for a tool that came without its schema.
func Gemini(tools []*toolgatev1.ActiveTool) (*Rendered, error) {
	return format{most: geminiMost, canName: canNameForGemini, define: declare}.render(tools)
}

// canNameForGemini: the API takes longer names and more characters; older models do not.
func canNameForGemini(name string) bool {
	return isName(name, 64, "_.-") && beginsName(name)
}

func beginsName(name string) bool {
	return isLetter(name[0]) || name[0] == '_'
}

func declare(tool *toolgatev1.ActiveTool, lost *losses) (*ordered.Object, error) {
	schema, err := inputSchema(tool)
	if err != nil {
		return nil, err
	}
	schema = plainRoot(schema, nil, lost)
	parameters := (&converter{root: schema, losses: lost, left: maxSchemas}).convert(schema, place{})
	declaration := named(tool)
	if parameters.Has("properties") {
		declaration.Set("parameters", parameters)
	}
	return declaration, nil
}

// place is where a schema stands within the registered one.
type place struct {
	// at is a JSON Pointer.
	at      string
	nesting int
	// followed are the references that led here.
	followed []string
}

// down is the place of a schema within this one.
func (p place) down(parts ...string) place {
	p.nesting++
	for _, part := range parts {
		p.at = pointer(p.at, part)
	}
	return p
}

// converter rewrites the schemas of one tool: references and allOf are merged in, oneOf and lists of types become
// anyOf, and what is left gets exactly one type.
type converter struct {
	root   *ordered.Object
	losses *losses
	left   int
}

// convert gives the schema in Gemini's subset; anything but an object says nothing.
func (c *converter) convert(schema any, stands place) *ordered.Object {
	if c.left == 0 || stands.nesting > maxNesting {
		c.losses.add(stands.at, "", "too large a schema: any text")
		return ordered.New("type", "STRING")
	}
	c.left--
	merged := ordered.AsObject(schema).Without()
	for range maxMerges {
		if merged.Has("$ref") {
			merged, stands = c.follow(merged, stands)
		} else if merged.Has("allOf") {
			merged, stands = c.allOf(merged, stands)
		} else {
			break
		}
	}
	key, choices := c.choices(merged, stands.at)
	if len(choices) == 0 {
		return c.convertTyped(merged, stands)
	}
	var converted []*ordered.Object
	for _, choice := range choices {
		within := stands.down("type")
		if key != "" {
			within = stands.down(key, strconv.Itoa(choice.index))
		}
		converted = append(converted, c.convert(choice.schema, within))
	}
	return c.anyOf(merged, converted, stands.at)
}

// follow is the schema with what it refers to merged in, and where that stands.
func (c *converter) follow(schema *ordered.Object, stands place) (*ordered.Object, place) {
	reference := schema.Get("$ref")
	siblings := schema.Without("$ref")
	target := resolve(c.root, reference)
	if target == nil {
		c.losses.add(stands.at, "$ref", "dropped: it names nothing in this schema")
		return siblings, stands
	}
	text := ordered.AsText(reference)
	if slices.Contains(stands.followed, text) {
		c.losses.add(stands.at, "$ref", "a schema within itself: any object")
		return ordered.New("type", "object"), stands
	}
	stands.at = text[len("#"):]
	stands.followed = append(slices.Clone(stands.followed), text)
	merged := target.Without()
	for _, key := range siblings.Keys() {
		merged.Set(key, siblings.Get(key))
	}
	return merged, stands
}

// allOf is the schema with the branches of its allOf merged in.
func (c *converter) allOf(schema *ordered.Object, stands place) (*ordered.Object, place) {
	merged := schema.Without("allOf")
	for index, branch := range listAt(schema, "allOf") {
		within := stands.down("allOf", strconv.Itoa(index))
		read := ordered.AsObject(branch)
		if read.Has("$ref") {
			read, within = c.follow(read, within)
			stands.followed = within.followed
		}
		for _, key := range read.Keys() {
			c.merge(merged, key, read.Get(key), within.at)
		}
	}
	return merged, stands
}

func (c *converter) merge(merged *ordered.Object, key string, value any, at string) {
	switch held := merged.Get(key); {
	case key == "properties":
		merged.Set(key, c.mergedProperties(ordered.AsObject(held), ordered.AsObject(value), at))
	case key == "required" || key == "allOf":
		list := slices.Clone(ordered.AsList(held))
		for _, item := range ordered.AsList(value) {
			if !has(list, item) {
				list = append(list, item)
			}
		}
		merged.Set(key, list)
	case !merged.Has(key):
		merged.Set(key, value)
	case !ordered.Equal(held, value) && !slices.Contains(annotations, key):
		c.losses.add(pointer(at, key), key, saidTwice)
	}
}

func (c *converter) mergedProperties(held, more *ordered.Object, at string) *ordered.Object {
	merged := held.Without()
	for _, name := range more.Keys() {
		if !merged.Has(name) {
			merged.Set(name, more.Get(name))
		} else if !ordered.Equal(merged.Get(name), more.Get(name)) {
			c.losses.add(pointer(pointer(at, "properties"), name), "properties", saidTwice)
		}
	}
	return merged
}

// choice is an alternative and its place in its list.
type choice struct {
	index  int
	schema *ordered.Object
}

// choices gives the keyword of the alternatives, and those that are not null.
func (c *converter) choices(schema *ordered.Object, at string) (string, []choice) {
	for _, key := range []string{"anyOf", "oneOf"} {
		branches := listAt(schema, key)
		if len(branches) == 0 {
			continue
		}
		if !slices.ContainsFunc(branches, saysMoreThanRequired) {
			c.losses.add(pointer(at, key), key, "dropped")
			continue
		}
		found := choicesOf(schema, key, branches)
		if key == "oneOf" && len(found) > 1 {
			c.losses.add(pointer(at, key), key, "as anyOf: several may hold")
		}
		return key, found
	}
	var kinds []choice
	for _, kind := range listAt(schema, "type") {
		if kind != "null" {
			of := schema.Without(annotations...).With("type", kind)
			kinds = append(kinds, choice{index: len(kinds), schema: of})
		}
	}
	if len(kinds) < 2 {
		return "", nil
	}
	return "", kinds
}

func saysMoreThanRequired(branch any) bool {
	return ordered.AsObject(branch).Without("required").Len() > 0
}

// choicesOf are the branches that are not null, each with what stands beside them.
func choicesOf(schema *ordered.Object, key string, branches []any) []choice {
	beside := schema.Without(annotations...).Without(key, "nullable")
	if _, isList := beside.Get("type").([]any); isList {
		beside.Delete("type")
	}
	var found []choice
	for index, branch := range branches {
		read := ordered.AsObject(branch)
		if isNull(read) {
			continue
		}
		if beside.Len() > 0 {
			read = ordered.New("allOf", []any{read.Without(), beside})
		}
		found = append(found, choice{index: index, schema: read})
	}
	return found
}

// anyOf joins alternatives. Gemini takes anyOf alone: what stands beside it goes into the branches.
func (c *converter) anyOf(schema *ordered.Object, converted []*ordered.Object, at string) *ordered.Object {
	var flat []*ordered.Object
	for _, branch := range converted {
		flat = append(flat, alternatives(branch)...)
	}
	description, isDescribed := schema.Get("description").(string)
	for _, branch := range flat {
		if isDescribed && !branch.Has("description") {
			branch.Set("description", description)
		}
	}
	if allowsNull(schema) {
		flat[0].Set("nullable", true)
	}
	byDefault := schema.Get("default")
	if len(flat) > 1 {
		if byDefault != nil {
			c.losses.add(pointer(at, "default"), "default", "dropped beside anyOf")
		}
		branches := make([]any, len(flat))
		for i, branch := range flat {
			branches[i] = branch
		}
		return ordered.New("anyOf", branches)
	}
	only := flat[0]
	if isDescribed {
		only.Set("description", description)
	}
	if byDefault != nil {
		only.Set("default", byDefault)
	}
	return only
}

// alternatives are those of a converted schema, or itself.
func alternatives(converted *ordered.Object) []*ordered.Object {
	branches, isAnyOf := converted.Get("anyOf").([]any)
	if !isAnyOf {
		return []*ordered.Object{converted}
	}
	var found []*ordered.Object
	for _, branch := range branches {
		found = append(found, ordered.AsObject(branch))
	}
	return found
}
