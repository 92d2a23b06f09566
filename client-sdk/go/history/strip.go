package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"toolgate.dev/go/internal/ordered"
)

// Reason is why something was taken out of a history.
type Reason string

const (
	// Vanished: the request defines no such tool.
	Vanished Reason = "vanished"
	// Unsupported: the model, or what stands before it, can't take references.
	Unsupported Reason = "unsupported"
)

// Removed is one thing that was taken out.
type Removed struct {
	// Message is the index of the entry in the history that was given.
	Message int
	// Kind is its type, such as "tool_reference".
	Kind string
	// Name is the tool that it named; of a search, the search tool; empty when it named none.
	Name string
	// Reason is why it was taken out.
	Reason Reason
}

// Stripped is a history that can be sent.
type Stripped[M any] struct {
	// Messages are the history. What did not change is as it was given.
	Messages []M
	// Removed is what was taken out, in the history's order. Snapshots are not listed.
	Removed []Removed
}

// Strip is a history without references to tools that the next request can't resolve.
//
// Tool calls and their results stay, paired as they were. A result or message that would be left empty says
// instead that its tools are gone. Anthropic's tool_reference blocks and server-side tool searches are seen to,
// and OpenAI's tool_search_call, tool_search_output and additional_tools items; snapshots are taken out.
//
// The available names are of all tools that the request will define, deferred ones included; references says
// whether the model, and what stands before it, can take references and searches (toolgate.CanDefer).
//
// It fails only when a changed message does not decode into its type again.
func Strip[M any](messages []M, available []string, references bool) (Stripped[M], error) {
	strip := &stripper{available: make(map[string]bool), references: references}
	for _, tool := range available {
		strip.available[tool] = true
	}
	var kept []keptEntry
	for index, message := range messages {
		entry, err := parsed(message)
		if err != nil || !isSnapshot(entry) {
			kept = strip.take(kept, index, entry)
		}
	}
	kept = strip.withoutLoneReasoning(kept)
	slices.SortStableFunc(strip.removed, func(a, b Removed) int { return cmp.Compare(a.Message, b.Message) })
	stripped := Stripped[M]{Messages: make([]M, 0, len(kept)), Removed: strip.removed}
	for _, entry := range kept {
		message := messages[entry.index]
		if entry.changed {
			var err error
			if message, err = decoded[M](ordered.Write(entry.value)); err != nil {
				return Stripped[M]{}, fmt.Errorf("history: message %d without its references is no %T: %w", entry.index, message, err)
			}
		}
		stripped.Messages = append(stripped.Messages, message)
	}
	return stripped, nil
}

// keptEntry is what is left of one entry.
type keptEntry struct {
	index   int
	value   any
	changed bool
}

// stripper changes copies: what it is given stays as it is.
type stripper struct {
	available  map[string]bool
	references bool
	message    int
	removed    []Removed
}

// take adds what is left of an entry.
func (s *stripper) take(kept []keptEntry, index int, entry any) []keptEntry {
	s.message = index
	before := len(s.removed)
	left, stays := s.entry(entry)
	if !stays {
		return kept
	}
	return append(kept, keptEntry{index: index, value: left, changed: len(s.removed) > before})
}

func (s *stripper) entry(entry any) (any, bool) {
	switch kind := textAt(entry, "type"); {
	case kind == "tool_search_call" && !s.references:
		return s.unsupported(kind, "")
	case kind == "tool_search_output":
		return s.loadedTools(kind, entry)
	case kind == "additional_tools":
		before := len(s.removed)
		left, stays := s.loadedTools(kind, entry)
		emptied := len(s.removed) > before && len(itemsAt(left, "tools")) == 0
		return left, stays && !emptied
	}
	return s.changed(entry, "content", s.block, true), true
}

// withoutLoneReasoning takes out what OpenAI refuses: a reasoning item without the item that it led to.
func (s *stripper) withoutLoneReasoning(kept []keptEntry) []keptEntry {
	gone := make(map[int]bool)
	for _, removed := range s.removed {
		gone[removed.Message] = true
	}
	for _, entry := range kept {
		delete(gone, entry.index)
	}
	var entries []keptEntry
	for place, entry := range kept {
		var follower any
		if place+1 < len(kept) {
			follower = kept[place+1].value
		}
		if gone[entry.index+1] && textAt(entry.value, "type") == "reasoning" && !isLedTo(follower) {
			s.message = entry.index
			s.note("reasoning", "", Unsupported)
		} else {
			entries = append(entries, entry)
		}
	}
	return entries
}

func (s *stripper) loadedTools(kind string, entry any) (any, bool) {
	if !s.references {
		return s.unsupported(kind, "")
	}
	return s.changed(entry, "tools", s.loadedTool, false), true
}

func (s *stripper) loadedTool(tool any) (any, bool) {
	switch textAt(tool, "type") {
	case "namespace":
		inner := s.keep(itemsAt(tool, "tools"), s.loadedTool)
		return ordered.AsObject(tool).With("tools", inner), len(inner) > 0
	case "function", "custom":
		return tool, s.has("tool", field(tool, "name"))
	}
	return tool, true
}

func (s *stripper) block(block any) (any, bool) {
	called := textAt(block, "name")
	switch kind := textAt(block, "type"); {
	case kind == "tool_result" || kind == "mcp_tool_result":
		return s.changed(block, "content", s.reference, true), true
	case kind == "tool_search_tool_result":
		return s.searchResult(block)
	case kind == "server_tool_use" && !s.references && isSearch(called):
		return s.unsupported(kind, called)
	case kind == "tool_use" && !s.references && ordered.AsObject(block).Has("caller"):
		s.note("caller", name(called), Unsupported)
		return ordered.AsObject(block).Without("caller"), true
	}
	return block, true
}

func (s *stripper) searchResult(block any) (any, bool) {
	if !s.references {
		return s.unsupported("tool_search_tool_result", "")
	}
	before := len(s.removed)
	left := s.changed(field(block, "content"), "tool_references", s.reference, false)
	if len(s.removed) == before {
		return block, true
	}
	return ordered.AsObject(block).With("content", left), true
}

func (s *stripper) reference(item any) (any, bool) {
	stays := textAt(item, "type") != "tool_reference" || s.has("tool_reference", field(item, "tool_name"))
	return item, stays
}

// has reports whether a reference may stay; it notes it when not.
func (s *stripper) has(kind string, tool any) bool {
	called := name(tool)
	switch {
	case !s.references:
		s.note(kind, called, Unsupported)
		return false
	case !s.available[called]:
		s.note(kind, called, Vanished)
		return false
	}
	return true
}

func (s *stripper) unsupported(kind, called string) (any, bool) {
	s.note(kind, called, Unsupported)
	return nil, false
}

func (s *stripper) note(kind, called string, reason Reason) {
	s.removed = append(s.removed, Removed{Message: s.message, Kind: kind, Name: called, Reason: reason})
}

// changed is the object with what is left of a list of its own; itself when nothing was taken out. A content that
// would be empty says that its tools are gone.
func (s *stripper) changed(object any, key string, change func(any) (any, bool), isContent bool) any {
	before := len(s.removed)
	kept := s.keep(itemsAt(object, key), change)
	if len(s.removed) == before {
		return object
	}
	if isContent && len(kept) == 0 {
		kept = []any{ordered.New("type", "text", "text", "The tools that were found here are no longer available.")}
	}
	return ordered.AsObject(object).With(key, kept)
}

func (s *stripper) keep(values []any, change func(any) (any, bool)) []any {
	kept := make([]any, 0, len(values))
	for _, value := range values {
		if left, stays := change(value); stays {
			kept = append(kept, left)
		}
	}
	return kept
}

func isSearch(tool string) bool {
	return tool == "tool_search_tool_regex" || tool == "tool_search_tool_bm25"
}

// isLedTo reports whether an item of the Responses API is one that reasoning leads to.
func isLedTo(entry any) bool {
	kind := textAt(entry, "type")
	return strings.HasSuffix(kind, "_call") || textAt(entry, "role") == "assistant"
}
