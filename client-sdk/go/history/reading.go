package history

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"toolgate.dev/go/internal/ordered"
)

// Foreign JSON is read here: what is not of the expected type counts as absent.

const (
	// maxName is the most characters that any provider takes for a tool's name.
	maxName   = 128
	maxResult = 64 << 10
	// An answer to a search may hold the schemas of 100 tools.
	maxAnswer = 1 << 20
)

// field is a field of what may be an object.
func field(value any, key string) any {
	return ordered.AsObject(value).Get(key)
}

// textAt is the text of a field.
func textAt(value any, key string) string {
	return ordered.AsText(field(value, key))
}

// itemsAt are the items of a field's list.
func itemsAt(value any, key string) []any {
	return ordered.AsList(field(value, key))
}

// first is the first of these fields that is not null: vendors write some in snake and in camel case.
func first(value any, keys ...string) any {
	for _, key := range keys {
		if found := field(value, key); found != nil {
			return found
		}
	}
	return nil
}

// blocks are the blocks of a message's content: a list of them, or a single one. A text has none.
func blocks(content any) []any {
	if object, ok := content.(*ordered.Object); ok {
		return []any{object}
	}
	return ordered.AsList(content)
}

// name is a tool's name; "" for what can't be one, such as a text that can't be sent.
func name(value any) string {
	text := ordered.AsText(value)
	if utf8.RuneCountInString(text) > maxName || !utf8.ValidString(text) {
		return ""
	}
	return text
}

// saysError reports whether a result says that it is an error, for APIs that have no flag for it: it does when it
// is a JSON object with a non-empty `error` or a true `isError`. A doubtful result so counts as failed, which
// unlocks nothing.
func saysError(content any) bool {
	result := jsonObject(content, maxResult)
	return isTruthy(result.Get("error")) || first(result, "isError", "is_error") == true
}

// foundTools are the tools that an answer to a search names: a JSON object with the list `tools`. Anything else
// names none.
func foundTools(content any) []string {
	var named []string
	for _, tool := range ordered.AsList(jsonObject(content, maxAnswer).Get("tools")) {
		if found := name(field(tool, "name")); found != "" {
			named = append(named, found)
		}
	}
	return named
}

// jsonObject is the JSON object that a result is; nil for anything else.
func jsonObject(content any, limit int) *ordered.Object {
	written, isText := content.(string)
	if !isText {
		var joined strings.Builder
		for _, block := range ordered.AsList(content) {
			joined.WriteString(textAt(block, "text"))
		}
		written = joined.String()
	}
	if utf8.RuneCountInString(written) > limit || !strings.HasPrefix(strings.TrimSpace(written), "{") {
		return nil
	}
	result, err := ordered.Parse([]byte(written))
	if err != nil {
		return nil
	}
	return ordered.AsObject(result)
}

func isTruthy(value any) bool {
	switch value := value.(type) {
	case bool:
		return value
	case json.Number:
		number, _ := strconv.ParseFloat(string(value), 64)
		return number != 0
	case string:
		return value != ""
	case []any:
		return len(value) > 0
	case *ordered.Object:
		return value.Len() > 0
	}
	return false
}
