// Package history reads message histories: what they say about tools, and what must not be sent on. [Scan] reads
// what was discovered and called, for the agent's state; [Strip] gives the history that can be sent; [Compacted]
// puts a snapshot before what is left of a history that was summarised.
//
// Histories are slices of anything that encodes to JSON messages: a vendor's types, maps, json.RawMessage. They
// may be messages of Anthropic's Messages API, OpenAI's Chat Completions and Responses APIs, and MCP (sampling
// messages and JSON-RPC), also mixed. What is unknown is passed over; nothing here fails for what a message holds.
package history

import (
	"encoding/json"
	"fmt"

	"toolgate.dev/go/toolgatev1"
)

// History is what a conversation's messages say about tools.
type History struct {
	// Discovered are the tools that were loaded, in the order of their discovery: by a reference, by a search (the
	// provider's, or toolgate.SearchTool), or because a call to them succeeded. The newest 24 KiB of them.
	Discovered []string
	// Calls are oldest first: the newest 24 KiB, the last success of each tool before others.
	Calls []Call
	// Turns is how many turns of the model there were.
	Turns uint32
}

// Call is one call of a history.
type Call struct {
	// Tool is its name, as the model wrote it.
	Tool string
	// Status is how it ended; unspecified while it has no answer.
	Status toolgatev1.CallStatus
	// Turn is the model's turn in which it was made, from 0.
	Turn uint32
	// ID is the provider's identifier of the call; empty when there was none.
	ID string
}

// State is the agent's state for Route and Gate. Scopes, milestones and attributes, which no history can say, are
// left for the caller.
func (h History) State() *toolgatev1.AgentState {
	state := &toolgatev1.AgentState{DiscoveredTools: h.Discovered}
	for _, call := range h.Calls {
		prior := &toolgatev1.PriorCall{Tool: call.Tool, Status: call.Status, Turn: call.Turn}
		state.Calls = append(state.Calls, prior)
	}
	return state
}

// Scan reads a history, oldest message first, for what the model has discovered and called. The snapshot is what
// [History.Snapshot] gave before the history was compacted; nil for none.
//
// Scanning messages that a snapshot covers already changes nothing but, where they hold no call, Turns.
func Scan[M any](messages []M, snapshot json.RawMessage) History {
	scanner := newScanner()
	if held, err := parsed(snapshot); err == nil {
		scanner.restore(held)
	}
	for _, message := range messages {
		entry, err := parsed(message)
		if err != nil {
			continue
		}
		if isSnapshot(entry) {
			scanner.restore(entry)
			continue
		}
		for _, event := range read(entry) {
			scanner.take(event)
		}
	}
	return scanner.result()
}

// Compacted is the history after compaction: a snapshot of the old messages, then what is kept: a summary, and
// those of the messages that stay. The snapshot is as for [Scan].
//
// It fails when a message of this type can't hold a snapshot, as vendors' types can't: keep
// [History.Snapshot] beside the messages then, and give it to the next Scan.
func Compacted[M any](messages, kept []M, snapshot json.RawMessage) ([]M, error) {
	written := Scan(messages, snapshot).Snapshot()
	first, err := decoded[M](written)
	if err == nil {
		var held any
		if held, err = parsed(first); err == nil && !isSnapshot(held) {
			err = fmt.Errorf("its %q is lost", "type")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("history: a %T can't hold a snapshot: %w; keep Snapshot() beside the messages", first, err)
	}
	return append([]M{first}, kept...), nil
}
