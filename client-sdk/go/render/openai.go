package render

import (
	"slices"

	"toolgate.dev/go/internal/ordered"
	"toolgate.dev/go/toolgatev1"
)

// openAIMost is the number of tools that a request takes.
const openAIMost = 128

var refusedAtRoot = []string{"enum", "not"}

// Where schemas stand within a schema.
var (
	schemas       = []string{"items", "additionalProperties", "contains", "not", "if", "then", "else"}
	schemaLists   = []string{"anyOf", "oneOf", "allOf", "prefixItems"}
	schemasByName = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)

// OpenAIChat gives the active set as `tools` of the Chat Completions API. Not strict: schemas stay as they are. A
// request takes 128 tools: later ones are left out, and among the losses. It fails for a tool that came without its
// schema.
func OpenAIChat(tools []*toolgatev1.ActiveTool) (*Rendered, error) {
	return format{most: openAIMost, canName: canNameForOpenAI, define: defineForChat}.render(tools)
}

// OpenAIResponses gives the active set as `tools` of the Responses API, as [OpenAIChat] does for Chat Completions.
func OpenAIResponses(tools []*toolgatev1.ActiveTool) (*Rendered, error) {
	return format{most: openAIMost, canName: canNameForOpenAI, define: defineForResponses}.render(tools)
}

func canNameForOpenAI(name string) bool {
	return isName(name, 64, "_-")
}

func defineForChat(tool *toolgatev1.ActiveTool, lost *losses) (*ordered.Object, error) {
	defined, err := function(tool, lost)
	return ordered.New("type", "function", "function", defined), err
}

func defineForResponses(tool *toolgatev1.ActiveTool, lost *losses) (*ordered.Object, error) {
	defined, err := function(tool, lost)
	flat := ordered.New("type", "function")
	for _, key := range defined.Keys() {
		flat.Set(key, defined.Get(key))
	}
	return flat.With("strict", false), err
}

func function(tool *toolgatev1.ActiveTool, lost *losses) (*ordered.Object, error) {
	schema, err := inputSchema(tool)
	if err != nil {
		return nil, err
	}
	schema = plainRoot(schema, refusedAtRoot, lost)
	return named(tool).With("parameters", complete(schema, 0)), nil
}

// complete is the schema with `items` in every array and `properties` in every object. OpenAI refuses those
// without; `{}` says the same.
func complete(schema any, nesting int) any {
	given, isObject := schema.(*ordered.Object)
	if !isObject || nesting > maxNesting {
		return schema
	}
	changed := ordered.New()
	for _, key := range given.Keys() {
		changed.Set(key, completeWithin(key, given.Get(key), nesting+1))
	}
	kinds := changed.Get("type")
	for _, added := range [][2]string{{"array", "items"}, {"object", "properties"}} {
		isKind := kinds == any(added[0]) || has(ordered.AsList(kinds), added[0])
		if isKind && !changed.Has(added[1]) {
			changed.Set(added[1], ordered.New())
		}
	}
	return changed
}

func completeWithin(key string, value any, nesting int) any {
	list, isList := value.([]any)
	byName, isObject := value.(*ordered.Object)
	switch {
	case slices.Contains(schemas, key):
		return complete(value, nesting)
	case isList && slices.Contains(schemaLists, key):
		completed := make([]any, len(list))
		for i, item := range list {
			completed[i] = complete(item, nesting)
		}
		return completed
	case isObject && slices.Contains(schemasByName, key):
		completed := ordered.New()
		for _, name := range byName.Keys() {
			completed.Set(name, complete(byName.Get(name), nesting))
		}
		return completed
	}
	return value
}
