package toolgate

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// DefaultTarget is where `toolgate serve` listens unless it is told otherwise.
const DefaultTarget = "127.0.0.1:7070"

// target is an address as people write it, taken apart.
type target struct {
	// address is host:port; an IPv6 host stands in brackets.
	address string
	host    string
	secure  bool
}

// parseTarget reads host:port, http://host:port or https://host:port.
func parseTarget(text string) (target, error) {
	address, secure := text, false
	if scheme, rest, found := strings.Cut(text, "://"); found {
		switch scheme {
		case "http":
		case "https":
			secure = true
		default:
			return target{}, noTarget(text, fmt.Errorf("the scheme %q is not http or https", scheme))
		}
		address = strings.TrimSuffix(rest, "/")
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		var malformed *net.AddrError
		if errors.As(err, &malformed) {
			err = errors.New(malformed.Err)
		}
		return target{}, noTarget(text, err)
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return target{}, noTarget(text, fmt.Errorf("the port %q is not a number from 1 to 65535", port))
	}
	if host == "" || strings.ContainsAny(host, "/?#@%\\ \t\r\n") {
		return target{}, noTarget(text, fmt.Errorf("%q is no host", host))
	}
	return target{address: net.JoinHostPort(host, port), host: host, secure: secure}, nil
}

// isLoopback reports whether what is sent to the host stays on this machine.
func (t target) isLoopback() bool {
	ip := net.ParseIP(t.host)
	return ip.IsLoopback() || strings.EqualFold(t.host, "localhost")
}

func noTarget(text string, why error) error {
	return fmt.Errorf("toolgate: %q is no target: %w; say host:port such as %s, or https://host:port", text, why, DefaultTarget)
}
