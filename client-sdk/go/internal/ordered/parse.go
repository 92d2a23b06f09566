package ordered

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Parse reads one JSON value. Of a key that comes twice, the last value counts.
func Parse(text []byte) (any, error) {
	// The standard library finds mistakes, and refuses what is nested too deep: what follows sees neither.
	var checked json.RawMessage
	if err := json.Unmarshal(text, &checked); err != nil {
		return nil, err
	}
	return (&parser{text: string(text)}).value(), nil
}

// parser reads text that is known to be JSON.
type parser struct {
	text string
	at   int
}

// next skips white space and gives the byte after it.
func (p *parser) next() byte {
	for strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
	return p.text[p.at]
}

func (p *parser) value() any {
	switch p.next() {
	case '{':
		return p.object()
	case '[':
		return p.list()
	case '"':
		return p.string()
	case 't':
		p.at += len("true")
		return true
	case 'f':
		p.at += len("false")
		return false
	case 'n':
		p.at += len("null")
		return nil
	}
	return p.number()
}

func (p *parser) object() *Object {
	object := New()
	p.at++
	for p.next() != '}' {
		if p.text[p.at] == ',' {
			p.at++
			p.next()
		}
		key := p.string()
		p.next()
		p.at++ // The colon.
		object.Set(key, p.value())
	}
	p.at++
	return object
}

func (p *parser) list() []any {
	list := []any{}
	p.at++
	for p.next() != ']' {
		if p.text[p.at] == ',' {
			p.at++
		}
		list = append(list, p.value())
	}
	p.at++
	return list
}

func (p *parser) number() json.Number {
	start := p.at
	for p.at < len(p.text) && strings.IndexByte("+-.eE0123456789", p.text[p.at]) >= 0 {
		p.at++
	}
	return json.Number(p.text[start:p.at])
}

func (p *parser) string() string {
	start := p.at + 1
	end := start
	for p.text[end] != '"' {
		if p.text[end] == '\\' {
			end++
		}
		end++
	}
	p.at = end + 1
	// Bytes that are no UTF-8 are not JSON's, and the standard library's check lets them pass.
	raw := strings.ToValidUTF8(p.text[start:end], "\ufffd")
	if strings.IndexByte(raw, '\\') < 0 {
		return raw
	}
	return unescaped(raw)
}

func unescaped(raw string) string {
	text := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			text = append(text, raw[i])
			continue
		}
		i++
		if raw[i] != 'u' {
			text = append(text, escapes[raw[i]])
			continue
		}
		char := unit(raw[i+1:])
		i += 4
		if pair := utf16.DecodeRune(char, second(raw[i+1:])); pair != utf8.RuneError {
			char = pair
			i += len(`\udc00`)
		}
		text = appendRune(text, char)
	}
	return string(text)
}

var escapes = map[byte]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// unit is the number of four hexadecimal digits.
func unit(digits string) rune {
	number, _ := strconv.ParseUint(digits[:4], 16, 16)
	return rune(number)
}

// second is the escape that the rest begins with, which may be the second half of a pair; 0 for anything else.
func second(rest string) rune {
	if len(rest) < 6 || rest[0] != '\\' || rest[1] != 'u' {
		return 0
	}
	return unit(rest[2:])
}

// appendRune writes a surrogate as three bytes, where the standard library writes U+FFFD.
func appendRune(text []byte, char rune) []byte {
	if utf16.IsSurrogate(char) {
		return append(text, 0xe0|byte(char>>12), 0x80|byte(char>>6)&0x3f, 0x80|byte(char)&0x3f)
	}
	return utf8.AppendRune(text, char)
}
