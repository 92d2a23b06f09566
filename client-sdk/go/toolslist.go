package toolgate

import "fmt"

// ToolsList makes the body of RegisterServer from what an MCP server's `tools/list` answered: []byte,
// json.RawMessage and string are JSON already and stay as they are, byte for byte; any other value is encoded.
func ToolsList(answer any) ([]byte, error) {
	switch answer := answer.(type) {
	case []byte:
		return answer, nil
	case string:
		return []byte(answer), nil
	}
	text, err := encoded(answer)
	if err != nil {
		return nil, fmt.Errorf("toolgate: an answer to tools/list: %w", err)
	}
	return text, nil
}
