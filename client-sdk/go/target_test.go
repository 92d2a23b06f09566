package toolgate_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
	"time"

	"toolgate.dev/go"
)

func source(context.Context) (string, error) { return "t", nil }

func TestTargetsThatPeopleWrite(t *testing.T) {
	for _, target := range []string{
		"127.0.0.1:7070", "localhost:7070", "[::1]:7070", "http://tools.example:80", "http://tools.example:80/",
		"https://tools.example:443", "https://[::1]:443/",
	} {
		dial(t, target)
	}
}

func TestATargetThatCanNotBeMeantIsRefusedAtOnce(t *testing.T) {
	for target, why := range map[string]string{
		"": "missing port", " ": "missing port", "127.0.0.1": "missing port", "localhost": "missing port",
		"localhost:": `the port "" is not a number`, "localhost:port": `the port "port" is not a number`,
		"localhost:0": "not a number from 1", "localhost:65536": "not a number from 1", "::1": "too many colons",
		"[::1]": "missing port", ":7070": `"" is no host`, "a b:7070": `"a b" is no host`,
		"http://": "missing port", "http://tools.example": "missing port", "http://tools.example:80/v1": "not a number",
		"http://tools.example/v1:80": "is no host", "https://tools.example": "missing port",
		"https://user@tools.example:443": "is no host", "unix:///run/toolgate:1": `the scheme "unix" is not http`,
	} {
		_, err := toolgate.New(target)
		if err == nil {
			t.Errorf("%q was taken", target)
			continue
		}
		text := err.Error()
		if !strings.Contains(text, fmt.Sprintf("%q is no target", target)) || !strings.Contains(text, why) ||
			!strings.Contains(text, "say host:port such as 127.0.0.1:7070") {
			t.Errorf("%q: %s", target, text)
		}
	}
}

func TestOptionsThatCanNotBeMeantAreRefusedAtOnce(t *testing.T) {
	const far = "tools.example:7070"
	for _, refused := range []struct {
		target, why string
		options     []toolgate.Option
	}{
		{far, "use https://tools.example:7070", []toolgate.Option{toolgate.WithAPIKey("sesame")}},
		{far, "WithAllowInsecureCredentials", []toolgate.Option{toolgate.WithTokenSource(source)}},
		{far, "say https://tools.example:7070", []toolgate.Option{toolgate.WithTLS(&tls.Config{})}},
		{"http://" + far, "asks for no encryption", []toolgate.Option{toolgate.WithTLS(&tls.Config{})}},
		{"https://" + far, "not both", []toolgate.Option{toolgate.WithAPIKey("sesame"), toolgate.WithTokenSource(source)}},
		{"https://" + far, "is empty", []toolgate.Option{toolgate.WithAPIKey("")}},
		{"https://" + far, "white space", []toolgate.Option{toolgate.WithAPIKey("sesame\n")}},
		{"https://" + far, "needs a source", []toolgate.Option{toolgate.WithTokenSource(nil)}},
		{"https://" + far, "needs a configuration", []toolgate.Option{toolgate.WithTLS(nil)}},
		{far, "must be above 0", []toolgate.Option{toolgate.WithTimeout(-time.Second)}},
	} {
		_, err := toolgate.New(refused.target, refused.options...)
		if err == nil || !strings.Contains(err.Error(), refused.why) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %v", refused.why, err)
		}
	}
}

func TestCredentialsMayGoWhereNobodyReadsThem(t *testing.T) {
	for _, target := range []string{"https://tools.example:1", "127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1"} {
		dial(t, target, toolgate.WithAPIKey("k"))
	}
	client := dial(t, "tools.example:1", toolgate.WithAPIKey("sesame"), toolgate.WithAllowInsecureCredentials())
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, client); strings.Contains(text, "sesame") {
			t.Errorf("%s shows the key", verb)
		}
	}
}

func TestTLSFilesSayWhatIsWrong(t *testing.T) {
	for why, files := range map[string]toolgate.TLSFiles{
		"no such file":       {CA: "missing.pem"},
		"holds no PEM":       {CA: "target_test.go"},
		"needs its key":      {Cert: "cert.pem"},
		"of a.pem and b.pem": {Cert: "a.pem", Key: "b.pem"},
	} {
		if _, err := files.Config(); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
	}
}
