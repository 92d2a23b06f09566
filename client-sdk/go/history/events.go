package history

import (
	"encoding/json"

	"toolgate.dev/go/internal/ordered"
)

// What one entry of a history says, whichever API it belongs to: who speaks, which tools were found, which calls
// were made, and how they ended.

type eventKind int

const (
	// spoke: the entry is the model's, or somebody else's.
	spoke eventKind = iota
	// found: a tool's definition was loaded.
	found
	// called: the model called a tool.
	called
	// answered: a call ended.
	answered
)

// event is one thing that an entry says.
type event struct {
	kind  eventKind
	model bool
	tool  string
	// key pairs a call with its answer; "" for a call whose answer comes next.
	key     string
	failed  bool
	content any
}

// read gives the events of one message, Responses item or JSON-RPC message; none for anything else.
func read(entry any) []event {
	kind := textAt(entry, "type")
	if events, ok := responsesItem(kind, entry); ok {
		return events
	}
	object := ordered.AsObject(entry)
	switch _, isList := object.Get("content").([]any); {
	case textAt(entry, "role") != "":
		return message(entry)
	case object.Has("method") || object.Has("jsonrpc"):
		return jsonRPC(object)
	case kind == "" && isList:
		return mcpResult("", entry)
	}
	return nil
}

func responsesItem(kind string, item any) ([]event, bool) {
	switch kind {
	case "function_call", "custom_tool_call":
		return append([]event{speaks(true)}, call(field(item, "call_id"), field(item, "name"))...), true
	case "function_call_output", "custom_tool_call_output":
		output := field(item, "output")
		answer := event{kind: answered, key: textAt(item, "call_id"), failed: saysError(output), content: output}
		return []event{speaks(false), answer}, true
	case "mcp_call":
		return hostedMCPCall(item), true
	case "tool_search_call", "reasoning":
		return []event{speaks(true)}, true
	case "tool_search_output", "additional_tools":
		// These stand among the model's items or among ours; they belong to neither's turn.
		return loadedTools(item), true
	}
	return nil, false
}

func hostedMCPCall(item any) []event {
	events := append([]event{speaks(true)}, call(field(item, "id"), field(item, "name"))...)
	output := field(item, "output")
	failed := field(item, "error") != nil || textAt(item, "status") == "failed"
	if failed || output != nil {
		events = append(events, event{kind: answered, key: textAt(item, "id"), failed: failed, content: output})
	}
	return events
}

func loadedTools(item any) []event {
	var events []event
	for _, tool := range itemsAt(item, "tools") {
		if textAt(tool, "type") != "namespace" {
			events = append(events, find(field(tool, "name"))...)
			continue
		}
		for _, inner := range itemsAt(tool, "tools") {
			events = append(events, find(field(inner, "name"))...)
		}
	}
	return events
}

func message(entry any) []event {
	role, content := textAt(entry, "role"), field(entry, "content")
	events := []event{speaks(role == "assistant" || role == "model")}
	for _, part := range blocks(content) {
		events = append(events, block(part)...)
	}
	for _, made := range itemsAt(entry, "tool_calls") {
		function := first(made, "function", "custom")
		events = append(events, call(field(made, "id"), field(function, "name"))...)
	}
	if role == "tool" {
		failed := textAt(entry, "status") == "error" || saysError(content)
		answer := event{kind: answered, key: textAt(entry, "tool_call_id"), failed: failed, content: content}
		events = append(events, answer)
	}
	return events
}

func block(block any) []event {
	switch textAt(block, "type") {
	case "tool_use", "mcp_tool_use":
		return call(field(block, "id"), field(block, "name"))
	case "tool_result", "mcp_tool_result":
		return toolResult(block)
	case "tool_search_tool_result":
		var events []event
		for _, reference := range itemsAt(field(block, "content"), "tool_references") {
			events = append(events, find(field(reference, "tool_name"))...)
		}
		return events
	}
	return nil
}

func toolResult(block any) []event {
	var events []event
	content := field(block, "content")
	for _, item := range ordered.AsList(content) {
		if textAt(item, "type") == "tool_reference" {
			events = append(events, find(field(item, "tool_name"))...)
		}
	}
	failed := saysError(content)
	if flag := first(block, "is_error", "isError"); flag != nil {
		failed = flag != false
	}
	key := ordered.AsText(first(block, "tool_use_id", "toolUseId"))
	return append(events, event{kind: answered, key: key, failed: failed, content: content})
}

func jsonRPC(entry *ordered.Object) []event {
	key := ""
	switch id := entry.Get("id").(type) {
	case string:
		key = "json-rpc:" + id
	case json.Number:
		if ordered.IsInteger(id) {
			key = "json-rpc:" + string(id)
		}
	}
	switch {
	case textAt(entry, "method") == "tools/call":
		tool := name(field(entry.Get("params"), "name"))
		if tool == "" {
			return []event{speaks(true)}
		}
		return []event{speaks(true), {kind: called, key: key, tool: tool}}
	case entry.Get("error") != nil:
		return []event{speaks(false), {kind: answered, key: key, failed: true}}
	case entry.Has("result"):
		return mcpResult(key, entry.Get("result"))
	}
	return nil
}

func mcpResult(key string, result any) []event {
	flag := first(result, "isError", "is_error")
	failed := flag != nil && flag != false
	return []event{speaks(false), {kind: answered, key: key, failed: failed, content: field(result, "content")}}
}

func speaks(model bool) event {
	return event{kind: spoke, model: model}
}

func call(id, tool any) []event {
	if named := name(tool); named != "" {
		return []event{{kind: called, key: ordered.AsText(id), tool: named}}
	}
	return nil
}

func find(tool any) []event {
	if named := name(tool); named != "" {
		return []event{{kind: found, tool: named}}
	}
	return nil
}
