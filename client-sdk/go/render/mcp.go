package render

import (
	"toolgate.dev/go/internal/ordered"
	"toolgate.dev/go/toolgatev1"
)

// MCP gives the active set as `tools` of an answer to `tools/list`, under model-facing names. Schemas and
// annotations are as registered; MCP's `title`, `icons` and `_meta` are not part of an active set. It fails for a
// tool that came without its schema.
func MCP(tools []*toolgatev1.ActiveTool) (*Rendered, error) {
	return format{canName: func(name string) bool { return name != "" }, define: defineForMCP}.render(tools)
}

func defineForMCP(tool *toolgatev1.ActiveTool, _ *losses) (*ordered.Object, error) {
	schema, err := inputSchema(tool)
	if err != nil {
		return nil, err
	}
	definition := named(tool).With("inputSchema", schema)
	parts := [][2]string{
		{"outputSchema", tool.GetOutputSchemaJson()}, {"annotations", tool.GetAnnotationsJson()},
	}
	for _, part := range parts {
		if part[1] == "" {
			continue
		}
		value, err := parse(tool, part[0], part[1])
		if err != nil {
			return nil, err
		}
		definition.Set(part[0], value)
	}
	return definition, nil
}
