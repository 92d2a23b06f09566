package render

import (
	"slices"
	"strings"

	"toolgate.dev/go/internal/ordered"
)

// maxNesting is how many levels of a schema are read; the service refuses deeper ones.
const maxNesting = 64

// losses collects those of one tool.
type losses struct {
	tool  string
	found []Loss
}

// add notes one; the same one again, where a schema is used twice, is noted once.
func (l *losses) add(pointer, keyword, note string) {
	loss := Loss{Tool: l.tool, Pointer: pointer, Keyword: keyword, Note: note}
	if !slices.Contains(l.found, loss) {
		l.found = append(l.found, loss)
	}
}

// isName reports whether a name has 1 to so many characters, all of them ASCII letters, digits or among more.
func isName(name string, longest int, more string) bool {
	if name == "" || len(name) > longest {
		return false
	}
	for _, char := range []byte(name) {
		if !isLetter(char) && (char < '0' || char > '9') && strings.IndexByte(more, char) < 0 {
			return false
		}
	}
	return true
}

func isLetter(char byte) bool {
	return 'a' <= char && char <= 'z' || 'A' <= char && char <= 'Z'
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// pointer is a JSON Pointer (RFC 6901) further down.
func pointer(base, part string) string {
	return base + "/" + pointerEscapes.Replace(part)
}

// listAt is the list that a keyword holds.
func listAt(schema *ordered.Object, key string) []any {
	return ordered.AsList(schema.Get(key))
}

// has reports whether a list holds a value.
func has(list []any, value any) bool {
	return slices.ContainsFunc(list, func(held any) bool { return ordered.Equal(held, value) })
}

// resolve is what a reference within the document names; nil for any other reference.
func resolve(root *ordered.Object, reference any) *ordered.Object {
	text := ordered.AsText(reference)
	if text == "#" {
		return root
	}
	path, isWithin := strings.CutPrefix(text, "#/")
	if !isWithin {
		return nil
	}
	var found any = root
	for part := range strings.SplitSeq(path, "/") {
		key := strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		found = ordered.AsObject(found).Get(key)
	}
	return ordered.AsObject(found)
}
