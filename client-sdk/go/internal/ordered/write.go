package ordered

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Write gives a value's JSON, without white space. Equal values with keys in the same order give the same bytes.
func Write(value any) json.RawMessage {
	return appendValue(nil, value)
}

func appendValue(out []byte, value any) []byte {
	switch value := value.(type) {
	case nil:
		return append(out, "null"...)
	case bool:
		return fmt.Append(out, value)
	case json.Number:
		return append(out, value...)
	case int:
		return fmt.Append(out, value)
	case string:
		return AppendText(out, value)
	case json.RawMessage:
		return append(out, value...)
	case []any:
		return appendList(out, value)
	case *Object:
		return appendObject(out, value)
	}
	panic(fmt.Sprintf("ordered: a %T is no JSON value", value))
}

func appendList(out []byte, list []any) []byte {
	out = append(out, '[')
	for i, item := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendValue(out, item)
	}
	return append(out, ']')
}

func appendObject(out []byte, object *Object) []byte {
	out = append(out, '{')
	for i, key := range object.Keys() {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(AppendText(out, key), ':')
		out = appendValue(out, object.fields[key])
	}
	return append(out, '}')
}

// AppendText writes a string with no more escapes than JSON asks for.
func AppendText(out []byte, text string) []byte {
	out = append(out, '"')
	for i := 0; i < len(text); {
		char, size := utf8.DecodeRuneInString(text[i:])
		if char == utf8.RuneError && size == 1 {
			out, size = appendNoUTF8(out, text[i:])
		} else {
			out = appendChar(out, char)
		}
		i += size
	}
	return append(out, '"')
}

func appendChar(out []byte, char rune) []byte {
	switch char {
	case '"', '\\':
		return append(out, '\\', byte(char))
	case '\b':
		return append(out, `\b`...)
	case '\f':
		return append(out, `\f`...)
	case '\n':
		return append(out, `\n`...)
	case '\r':
		return append(out, `\r`...)
	case '\t':
		return append(out, `\t`...)
	}
	if char < ' ' {
		return fmt.Appendf(out, `\u%04x`, char)
	}
	return utf8.AppendRune(out, char)
}

// appendNoUTF8 writes a lone surrogate as its escape, and any other byte as U+FFFD.
func appendNoUTF8(out []byte, text string) ([]byte, int) {
	if len(text) >= 3 && text[0] == 0xed && text[1] >= 0xa0 && text[1] <= 0xbf && text[2]&0xc0 == 0x80 {
		char := 0xd000 | rune(text[1]&0x3f)<<6 | rune(text[2]&0x3f)
		return fmt.Appendf(out, `\u%04x`, char), 3
	}
	return append(out, "\ufffd"...), 1
}
