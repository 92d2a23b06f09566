package history

import (
	"slices"

	"toolgate.dev/go/internal/offering"
	"toolgate.dev/go/toolgatev1"
)

// The state is at most 64 KiB on the wire; the rest is for scopes, milestones and attributes.
const (
	discoveredBytes = 24 << 10
	callsBytes      = 24 << 10
	callOverhead    = 16
	nameOverhead    = 4
)

// scanner folds the events of a history into what it says.
type scanner struct {
	found      []string
	foundNames map[string]bool
	calls      []Call
	// open are calls whose answers may come, by identifier.
	open map[string]int
	// anonymous are calls without an identifier whose answers have not come, oldest first.
	anonymous []int
	// restored are calls of a snapshot that the messages have not repeated, by identifier.
	restored map[string]int
	// nextTurn is the next turn of the model.
	nextTurn    uint32
	turns       uint32
	modelSpeaks bool
}

func newScanner() *scanner {
	return &scanner{foundNames: make(map[string]bool), open: make(map[string]int), restored: make(map[string]int)}
}

// restore takes in what a snapshot holds.
func (s *scanner) restore(snapshot any) {
	held := readSnapshot(snapshot)
	for _, tool := range held.Discovered {
		s.find(tool)
	}
	known := make(map[string]bool)
	for _, call := range s.calls {
		known[call.ID] = true
	}
	for _, call := range held.Calls {
		if call.ID != "" {
			if known[call.ID] {
				continue
			}
			s.restored[call.ID] = len(s.calls)
			s.open[call.ID] = len(s.calls)
		}
		s.calls = append(s.calls, call)
	}
	s.turns = max(s.turns, held.Turns)
	s.nextTurn = s.turns
	s.modelSpeaks = false
}

func (s *scanner) take(event event) {
	switch event.kind {
	case spoke:
		if event.model && !s.modelSpeaks {
			s.nextTurn++
			s.turns = max(s.turns, s.nextTurn)
		}
		s.modelSpeaks = event.model
	case found:
		s.find(event.tool)
	case called:
		s.call(event.key, event.tool)
	case answered:
		s.answer(event)
	}
}

func (s *scanner) find(tool string) {
	if !s.foundNames[tool] {
		s.foundNames[tool] = true
		s.found = append(s.found, tool)
	}
}

func (s *scanner) call(id, tool string) {
	if known, ok := s.restored[id]; ok && s.calls[known].Tool == tool {
		// This turn was counted before the compaction.
		delete(s.restored, id)
		s.nextTurn = s.calls[known].Turn + 1
		s.turns = max(s.turns, s.nextTurn)
		return
	}
	// Some providers use an identifier again: with another tool, it is another call.
	if open, ok := s.open[id]; ok && s.calls[open].Tool == tool {
		return
	}
	if id == "" {
		s.anonymous = append(s.anonymous, len(s.calls))
	} else {
		s.open[id] = len(s.calls)
	}
	turn := max(s.nextTurn, 1) - 1
	s.calls = append(s.calls, Call{Tool: tool, Turn: turn, ID: id})
}

func (s *scanner) answer(event event) {
	index, ok := s.open[event.key]
	if event.key == "" && len(s.anonymous) > 0 {
		index, ok = s.anonymous[0], true
		s.anonymous = s.anonymous[1:]
	}
	if !ok {
		return
	}
	delete(s.open, event.key)
	call := &s.calls[index]
	if event.failed {
		call.Status = toolgatev1.CallStatus_CALL_STATUS_FAILED
		return
	}
	call.Status = toolgatev1.CallStatus_CALL_STATUS_SUCCEEDED
	// The search is no tool of the catalog: its answer says what it loaded.
	loaded := []string{call.Tool}
	if call.Tool == offering.SearchToolName {
		loaded = foundTools(event.content)
	}
	for _, tool := range loaded {
		s.find(tool)
	}
}

func (s *scanner) result() History {
	return History{Discovered: newestNames(s.found), Calls: newestCalls(s.calls), Turns: s.turns}
}

func newestNames(names []string) []string {
	left := discoveredBytes
	start := len(names)
	for start > 0 {
		left -= len(names[start-1]) + nameOverhead
		if left < 0 {
			break
		}
		start--
	}
	return names[start:]
}

// newestCalls are the newest ones, but the last success of each tool first: preconditions ask for it.
func newestCalls(calls []Call) []Call {
	var successes, others []int
	succeeded := make(map[string]bool)
	for index := range slices.Backward(calls) {
		call := calls[index]
		if call.Status == toolgatev1.CallStatus_CALL_STATUS_SUCCEEDED && !succeeded[call.Tool] {
			succeeded[call.Tool] = true
			successes = append(successes, index)
		} else {
			others = append(others, index)
		}
	}
	left := callsBytes
	var kept []int
	for _, index := range append(successes, others...) {
		left -= len(calls[index].Tool) + callOverhead
		if left < 0 {
			break
		}
		kept = append(kept, index)
	}
	slices.Sort(kept)
	newest := make([]Call, len(kept))
	for place, index := range kept {
		newest[place] = calls[index]
	}
	return newest
}
