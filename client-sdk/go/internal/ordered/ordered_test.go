package ordered

import (
	"encoding/json"
	"testing"
)

func TestWhatIsReadIsWrittenAgain(t *testing.T) {
	for _, text := range []string{
		`null`, `true`, `false`, `0`, `-1.50`, `1e400`, `12345678901234567890`, `""`, `[]`, `{}`,
		`{"b":1,"a":[1,{"c":null}],"":false}`,
		`"\"\\\b\f\n\r\t\u0000\u001f"`,
		"\"\u007f\u2028<>&é😀\"",
		`"\ud800"`, `"\udfff\ud800x"`, `["\ud83d","\ude00"]`,
	} {
		value, err := Parse([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if written := string(Write(value)); written != text {
			t.Errorf("%s became %s", text, written)
		}
	}
}

func TestWhatIsWrittenOtherwiseMeansTheSame(t *testing.T) {
	for text, want := range map[string]string{
		" { \"a\" : [ 1 , 2 ] ,\n\t\"b\" : { } } ": `{"a":[1,2],"b":{}}`,
		`"\/\u00e9\ud83d\ude00\u0041"`:             `"/é😀A"`,
		`{"a":1,"b":2,"a":3}`:                      `{"a":3,"b":2}`,
		"\"\xff\"":                                 "\"\ufffd\"",
		"\"\xed\xa0\x80\"":                         "\"\ufffd\"",
		`"\ud800\u0041"`:                           `"\ud800A"`,
		`"\ud800\ud83d\ude00"`:                     `"\ud800😀"`,
		`"\\ud800"`:                                `"\\ud800"`,
	} {
		value, err := Parse([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if written := string(Write(value)); written != want {
			t.Errorf("%s became %s, not %s", text, written, want)
		}
	}
}

func TestWhatIsNoJSONIsRefused(t *testing.T) {
	for _, text := range []string{``, ` `, `{`, `{"a"}`, `[1,]`, `01`, `"`, `nul`, `1 2`, "\"\n\"", `"\ud8"`} {
		if value, err := Parse([]byte(text)); err == nil {
			t.Errorf("%q became %v", text, value)
		}
	}
	deep := make([]byte, 1<<20)
	for i := range deep {
		deep[i] = '['
	}
	if _, err := Parse(deep); err == nil {
		t.Error("a text without end was taken")
	}
}

func TestEqualComparesValues(t *testing.T) {
	for _, pair := range [][2]string{
		{`{"a":1,"b":[null]}`, `{"b":[null],"a":1.0}`}, {`10`, `1e1`}, {`"a"`, `"\u0061"`}, {`null`, `null`},
	} {
		if !Equal(parsed(t, pair[0]), parsed(t, pair[1])) {
			t.Errorf("%s is not %s", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{
		{`{"a":1}`, `{"a":2}`}, {`{"a":null}`, `{"b":null}`}, {`1`, `"1"`}, {`1`, `true`}, {`[]`, `{}`}, {`null`, `[]`},
		{`9007199254740993`, `9007199254740992`}, {`1e400`, `1e401`}, {`[1,2]`, `[2,1]`},
	} {
		if Equal(parsed(t, pair[0]), parsed(t, pair[1])) || Equal(parsed(t, pair[1]), parsed(t, pair[0])) {
			t.Errorf("%s is %s", pair[0], pair[1])
		}
	}
}

func TestAKeyThatIsSetAgainKeepsItsPlace(t *testing.T) {
	object := New("a", 1, "b", json.RawMessage(`{ }`))
	object.Set("a", true)
	object.Set("c", "x")
	if got := string(Write(object)); got != `{"a":true,"b":{ },"c":"x"}` {
		t.Error(got)
	}
	var none *Object
	if none.Len() != 0 || none.Get("a") != nil || none.Has("a") {
		t.Error("no object is an empty one")
	}
}

func parsed(t *testing.T, text string) any {
	t.Helper()
	value, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return value
}
