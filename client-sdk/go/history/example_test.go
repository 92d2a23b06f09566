package history_test

import (
	"encoding/json"
	"fmt"
	"log"

	"toolgate.dev/go/history"
)

func Example() {
	messages := []json.RawMessage{
		json.RawMessage(`{"role":"user","content":"What changed?"}`),
		json.RawMessage(`{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"mcp__git__log","input":{}}]}`),
		json.RawMessage(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"Nothing."}]}`),
	}
	seen := history.Scan(messages, nil)
	fmt.Println(seen.Discovered, seen.Turns)

	summary := json.RawMessage(`{"role":"user","content":"Nothing changed."}`)
	compacted, err := history.Compacted(messages, []json.RawMessage{summary}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(history.Scan(compacted, nil).Discovered)

	stripped, err := history.Strip(compacted, nil, true)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", stripped.Messages)
	// Output:
	// [mcp__git__log] 1
	// [mcp__git__log]
	// [{"role":"user","content":"Nothing changed."}]
}
