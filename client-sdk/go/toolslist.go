package toolgate

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// ToolsList makes the body of RegisterServer from what an MCP server's `tools/list` answered: []byte,
// json.RawMessage and string are JSON already and stay as they are, byte for byte; any other value is encoded.
func ToolsList(answer any) ([]byte, error) {
	switch answer := answer.(type) {
	case []byte:
		return answer, nil
	case json.RawMessage:
		return answer, nil
	case string:
		return []byte(answer), nil
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(answer); err != nil {
		return nil, fmt.Errorf("toolgate: an answer to tools/list: %w", err)
	}
	return text.Bytes(), nil
}
