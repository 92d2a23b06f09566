package toolgate

import (
	"strings"

	"toolgate.dev/go/toolgatev1"
)

// Announcement tells the model what it can search for. It goes at the end of the history and stays there, so that
// the cached prefix before it holds.
type Announcement struct {
	// Full is whether this is the whole list.
	Full bool
	// Added can be searched for and was not announced; an empty summary stands for the name alone.
	Added []*toolgatev1.SummaryEntry
	// Removed are names that were announced and are neither searchable nor loaded now, in their order.
	Removed []string
	// Announced is every name that the model has been told of and that is still there, for the next turn. It is
	// never nil.
	Announced []string
}

// Announce says what changed since the last announcement. The searchable tools are those that a search can find,
// such as a summary pool; loaded names those whose definitions the model has, which need no search and are not
// reported as removed. The announced names are the last announcement's; nil when the model has been told nothing,
// also after a compaction.
func Announce(searchable []*toolgatev1.SummaryEntry, loaded, announced []string) Announcement {
	said := Announcement{Full: announced == nil, Announced: []string{}}
	isLoaded, there := setOf(loaded), setOf(loaded)
	for _, entry := range searchable {
		there[entry.GetModelName()] = true
	}
	told := make(map[string]bool)
	for _, name := range announced {
		switch {
		case told[name]:
		case there[name]:
			said.Announced = append(said.Announced, name)
		default:
			said.Removed = append(said.Removed, name)
		}
		told[name] = true
	}
	for _, entry := range searchable {
		name := entry.GetModelName()
		if !isLoaded[name] && !told[name] {
			told[name] = true
			said.Added = append(said.Added, entry)
			said.Announced = append(said.Announced, name)
		}
	}
	return said
}

// Text is what to append to the history; "" when there is nothing to tell.
func (a Announcement) Text() string {
	tag := "searchable-tools-added"
	if a.Full {
		tag = "searchable-tools"
	}
	var lines, parts []string
	for _, entry := range a.Added {
		lines = append(lines, announcedLine(entry))
	}
	if len(lines) > 0 {
		parts = append(parts, tagged(tag, lines))
	}
	if len(a.Removed) > 0 {
		parts = append(parts, tagged("searchable-tools-removed", a.Removed))
	}
	return strings.Join(parts, "\n")
}

func tagged(tag string, lines []string) string {
	return "<" + tag + ">\n" + strings.Join(lines, "\n") + "\n</" + tag + ">"
}

// announcedLine is one line, whatever a summary holds.
func announcedLine(entry *toolgatev1.SummaryEntry) string {
	if words := strings.Fields(entry.GetSummary()); len(words) > 0 {
		return entry.GetModelName() + ": " + strings.Join(words, " ")
	}
	return entry.GetModelName()
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}
