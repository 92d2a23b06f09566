package history

import (
	"encoding/json"
	"math"
	"strconv"

	"toolgate.dev/go/internal/ordered"
	"toolgate.dev/go/toolgatev1"
)

// The snapshot is an entry of its own kind, never text: a message that writes one down does not forge it.

const (
	snapshotKind    = "toolgate_snapshot"
	snapshotVersion = 1
	// maxTurns is well below what the wire carries, so that turns can be counted on from here.
	maxTurns = math.MaxInt32
)

var statuses = map[toolgatev1.CallStatus]string{
	toolgatev1.CallStatus_CALL_STATUS_UNSPECIFIED: "unspecified",
	toolgatev1.CallStatus_CALL_STATUS_SUCCEEDED:   "succeeded",
	toolgatev1.CallStatus_CALL_STATUS_FAILED:      "failed",
}

// Snapshot is all of the history as a JSON object, to keep when messages are compacted. Hand it to the next
// [Scan], or leave it in the history: Scan finds it there, and [Strip] takes it out before the history is sent.
func (h History) Snapshot() json.RawMessage {
	names := make([]any, len(h.Discovered))
	for i, tool := range h.Discovered {
		names[i] = tool
	}
	calls := make([]any, len(h.Calls))
	for i, call := range h.Calls {
		status := statuses[call.Status]
		calls[i] = ordered.New("tool", call.Tool, "status", status, "turn", int(call.Turn), "id", call.ID)
	}
	return ordered.Write(ordered.New(
		"type", snapshotKind, "version", snapshotVersion,
		"turns", int(h.Turns), "discovered", names, "calls", calls,
	))
}

// isSnapshot reports whether an entry of a history is a snapshot, of whichever version.
func isSnapshot(entry any) bool {
	return textAt(entry, "type") == snapshotKind
}

// readSnapshot reads what can be read; a later version's snapshot is read as far as it is the same.
func readSnapshot(snapshot any) History {
	held := History{Turns: count(field(snapshot, "turns"))}
	for _, tool := range itemsAt(snapshot, "discovered") {
		if named := name(tool); named != "" {
			held.Discovered = append(held.Discovered, named)
		}
	}
	for _, call := range itemsAt(snapshot, "calls") {
		if tool := name(field(call, "tool")); tool != "" {
			held.Calls = append(held.Calls, Call{
				Tool:   tool,
				Status: statusOf(textAt(call, "status")),
				Turn:   count(field(call, "turn")),
				ID:     textAt(call, "id"),
			})
		}
	}
	return held
}

func statusOf(text string) toolgatev1.CallStatus {
	for status, named := range statuses {
		if named == text {
			return status
		}
	}
	return toolgatev1.CallStatus_CALL_STATUS_UNSPECIFIED
}

func count(value any) uint32 {
	number, _ := value.(json.Number)
	// A number beyond 64 bits is no count that anybody made.
	counted, err := strconv.ParseUint(string(number), 10, 64)
	if err != nil {
		return 0
	}
	return uint32(min(counted, maxTurns))
}
