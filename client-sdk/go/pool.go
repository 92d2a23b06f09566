package toolgate

import "toolgate.dev/go/toolgatev1"

// ApplyPool gives the summary pool after a change of the held one, which is left alone. Keep the pool in this
// order in the prompt: a changed summary moves to the end, so that a cached prefix before it holds.
func ApplyPool(held []*toolgatev1.SummaryEntry, change *toolgatev1.SummaryPoolDelta) []*toolgatev1.SummaryEntry {
	gone := make(map[string]bool)
	for _, name := range change.GetRemoved() {
		gone[name] = true
	}
	// Of a name that comes twice, the last one counts.
	latest := make(map[string]*toolgatev1.SummaryEntry)
	for _, entry := range change.GetAdded() {
		latest[entry.GetModelName()] = entry
	}
	var after []*toolgatev1.SummaryEntry
	for _, entry := range held {
		name := entry.GetModelName()
		if !change.GetFull() && !gone[name] && latest[name] == nil {
			after = append(after, entry)
		}
	}
	for _, entry := range change.GetAdded() {
		if latest[entry.GetModelName()] == entry {
			after = append(after, entry)
		}
	}
	return after
}
