// Package ordered holds JSON as it was written: the order of keys, the digits of numbers and lone surrogates
// survive reading and writing. It knows nothing of tools.
package ordered

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Values are nil, bool, json.Number, string, []any and *Object. A lone surrogate in a string is its three bytes of
// generalised UTF-8, so that such a string is not valid UTF-8. To write, json.RawMessage is a value too.

// Object is a JSON object. A nil one is empty and can't be written to.
type Object struct {
	keys   []string
	fields map[string]any
}

// New makes an object of keys and values in turn.
func New(pairs ...any) *Object {
	object := &Object{fields: make(map[string]any, len(pairs)/2)}
	for i := 0; i < len(pairs); i += 2 {
		object.Set(pairs[i].(string), pairs[i+1])
	}
	return object
}

// Keys gives the keys in their order. The caller leaves them alone.
func (o *Object) Keys() []string {
	if o == nil {
		return nil
	}
	return o.keys
}

// Len is the number of keys.
func (o *Object) Len() int {
	return len(o.Keys())
}

// Get gives the value of a key; nil when there is none.
func (o *Object) Get(key string) any {
	if o == nil {
		return nil
	}
	return o.fields[key]
}

// Has reports whether there is a value, be it null.
func (o *Object) Has(key string) bool {
	if o == nil {
		return false
	}
	_, ok := o.fields[key]
	return ok
}

// Set puts a value in the key's place, or at the end for a new key.
func (o *Object) Set(key string, value any) {
	if !o.Has(key) {
		o.keys = append(o.keys, key)
	}
	o.fields[key] = value
}

// AsText is the text that a value is; "" for anything else.
func AsText(value any) string {
	text, _ := value.(string)
	return text
}

// IsInteger reports whether a number was written without a fraction and an exponent.
func IsInteger(number json.Number) bool {
	return !strings.ContainsAny(string(number), ".eE")
}

// Equal compares by value: the order of keys does not matter, nor how a number is written.
func Equal(one, other any) bool {
	switch one := one.(type) {
	case *Object:
		other, ok := other.(*Object)
		return ok && equalObjects(one, other)
	case []any:
		other, ok := other.([]any)
		return ok && slices.EqualFunc(one, other, Equal)
	case json.Number:
		other, ok := other.(json.Number)
		return ok && equalNumbers(one, other)
	}
	switch other.(type) {
	case *Object, []any, json.Number:
		return false
	}
	return one == other
}

func equalObjects(one, other *Object) bool {
	if one.Len() != other.Len() {
		return false
	}
	for _, key := range one.Keys() {
		if !other.Has(key) || !Equal(one.Get(key), other.Get(key)) {
			return false
		}
	}
	return true
}

func equalNumbers(one, other json.Number) bool {
	if one == other {
		return true
	}
	// Large whole numbers that differ may have the same nearest float.
	if IsInteger(one) && IsInteger(other) {
		return false
	}
	first, err := strconv.ParseFloat(string(one), 64)
	second, failed := strconv.ParseFloat(string(other), 64)
	return err == nil && failed == nil && first == second
}
