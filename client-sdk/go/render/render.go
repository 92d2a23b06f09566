// Package render writes the active set in the shape that a provider's API takes. Rendering the same tools gives
// the same bytes, so that prompt caches hold. Schemas keep the order of their keys and the digits of their
// numbers.
//
// [Rendered.Losses] says what a provider's schemas can't. Gate still holds calls to the registered schema.
package render

import (
	"encoding/json"
	"fmt"

	"toolgate.dev/go/internal/ordered"
	"toolgate.dev/go/toolgatev1"
)

// Rendered is definitions in a provider's shape.
type Rendered struct {
	// Tools are the definitions as JSON objects, in the order of the active set.
	Tools []json.RawMessage
	// Losses are what could not be said.
	Losses []Loss
}

// Loss is something that a registered tool says and the rendered one can't.
type Loss struct {
	// Tool is its model-facing name.
	Tool string `json:"tool"`
	// Pointer says where, as a JSON Pointer into the registered `inputSchema`; "" is the whole.
	Pointer string `json:"pointer"`
	// Keyword is the keyword at fault; "name" for the tool's own name, "tools" for one tool too many.
	Keyword string `json:"keyword"`
	// Note is what became of it.
	Note string `json:"note"`
}

// definitions are rendered tools that may still be changed.
type definitions struct {
	tools  []*ordered.Object
	losses []Loss
}

func (d definitions) rendered() *Rendered {
	rendered := &Rendered{Tools: make([]json.RawMessage, len(d.tools)), Losses: d.losses}
	for i, tool := range d.tools {
		rendered.Tools[i] = ordered.Write(tool)
	}
	return rendered
}

// format is how a provider names and defines tools.
type format struct {
	// most is the number of tools that a request takes; 0 for no limit.
	most    int
	canName func(name string) bool
	define  func(tool *toolgatev1.ActiveTool, losses *losses) (*ordered.Object, error)
}

// each renders tools one by one. One whose name the provider refuses would fail the whole request, and is left
// out. So are those beyond the most that a request takes, the last ones of the active set. One that came as a signature has it for a description, and takes any object: Gate holds its calls to the
// registered schema.
func (f format) each(tools []*toolgatev1.ActiveTool) (definitions, error) {
	var all definitions
	for _, tool := range tools {
		lost := &losses{tool: tool.GetModelName()}
		switch {
		case !f.canName(tool.GetModelName()):
			lost.add("", "name", "the provider takes no such name: the tool is left out")
		case f.most > 0 && len(all.tools) == f.most:
			lost.add("", "tools", fmt.Sprintf("the provider takes %d tools in a request: the tool is left out", f.most))
		default:
			defined, err := f.define(toldBySignature(tool), lost)
			if err != nil {
				return definitions{}, err
			}
			all.tools = append(all.tools, defined)
		}
		all.losses = append(all.losses, lost.found...)
	}
	return all, nil
}

func (f format) render(tools []*toolgatev1.ActiveTool) (*Rendered, error) {
	all, err := f.each(tools)
	if err != nil {
		return nil, err
	}
	return all.rendered(), nil
}

func toldBySignature(tool *toolgatev1.ActiveTool) *toolgatev1.ActiveTool {
	if tool.GetInputSchemaJson() != "" || tool.GetSignature() == "" {
		return tool
	}
	return &toolgatev1.ActiveTool{
		ModelName:        tool.GetModelName(),
		Description:      tool.GetSignature(),
		InputSchemaJson:  `{"type":"object"}`,
		OutputSchemaJson: tool.GetOutputSchemaJson(),
		AnnotationsJson:  tool.GetAnnotationsJson(),
	}
}

// inputSchema is the registered `inputSchema`.
func inputSchema(tool *toolgatev1.ActiveTool) (*ordered.Object, error) {
	if tool.GetInputSchemaJson() == "" {
		return nil, fmt.Errorf("render: %s came without its schema: route with DETAIL_SCHEMAS", tool.GetModelName())
	}
	schema, err := parse(tool, "inputSchema", tool.GetInputSchemaJson())
	return ordered.AsObject(schema).Without(), err
}

// parse reads a part of the definition that came as text.
func parse(tool *toolgatev1.ActiveTool, part, text string) (any, error) {
	value, err := ordered.Parse([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("render: the %s of %s is not JSON: %w", part, tool.GetModelName(), err)
	}
	return value, nil
}

// named begins a definition: the name, and the description under its key where there is one.
func named(tool *toolgatev1.ActiveTool) *ordered.Object {
	definition := ordered.New("name", tool.GetModelName())
	if tool.GetDescription() != "" {
		definition.Set("description", tool.GetDescription())
	}
	return definition
}
