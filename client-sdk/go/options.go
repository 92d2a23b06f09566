package toolgate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
)

// Option changes how a [Client] behaves.
type Option func(*settings) error

// settings are what the options say. Credentials are in closures, so that printing settings shows none.
type settings struct {
	tenant        string
	timeout       time.Duration
	tls           *tls.Config
	credential    func(context.Context) (string, error)
	allowInsecure bool
	dialOptions   []grpc.DialOption
}

func settingsOf(options []Option) (*settings, error) {
	chosen := &settings{timeout: DefaultTimeout}
	for _, option := range options {
		if err := option(chosen); err != nil {
			return nil, err
		}
	}
	return chosen, nil
}

// WithTenant names the tenant of requests that name none. Default: "", which the service reads as "default"
// while authentication is off.
func WithTenant(tenant string) Option {
	return func(s *settings) error {
		s.tenant = tenant
		return nil
	}
}

// WithTimeout sets how long a call whose context has no deadline may take, its retries included, and how long
// [Client.WatchCatalog] may take to open. Default: [DefaultTimeout]. It must be above 0.
func WithTimeout(timeout time.Duration) Option {
	return func(s *settings) error {
		if timeout <= 0 {
			return fmt.Errorf("toolgate: a timeout of %v: it must be above 0", timeout)
		}
		s.timeout = timeout
		return nil
	}
}

// WithTLS sets how connections of an https:// target are encrypted. Default: TLS with the system's certificate
// authorities. [TLSFiles.Config] reads PEM files.
func WithTLS(config *tls.Config) Option {
	return func(s *settings) error {
		if config == nil {
			return errors.New("toolgate: WithTLS needs a configuration; leave it out for the system's certificate authorities")
		}
		s.tls = config.Clone()
		return nil
	}
}

// WithAPIKey sends the key with each call, as `authorization: Bearer <key>`. Not together with
// [WithTokenSource].
func WithAPIKey(key string) Option {
	return func(s *settings) error {
		if err := checkToken(key); err != nil {
			return fmt.Errorf("toolgate: the API key %w", err)
		}
		return s.setCredential(func(context.Context) (string, error) { return key, nil })
	}
}

// WithTokenSource asks the source for a token before each call, each of its retries and each health check of a
// connection, and sends it as `authorization: Bearer <token>`: for tokens that rotate. The source must be safe for
// concurrent use, and should keep a token as long as it is valid. Its error fails the call with UNAUTHENTICATED. Not together with
// [WithAPIKey].
func WithTokenSource(source func(context.Context) (string, error)) Option {
	return func(s *settings) error {
		if source == nil {
			return errors.New("toolgate: WithTokenSource needs a source")
		}
		return s.setCredential(source)
	}
}

// WithAllowInsecureCredentials lets credentials be sent to any host without encryption. Without it, that is
// refused unless the host is a loopback address.
func WithAllowInsecureCredentials() Option {
	return func(s *settings) error {
		s.allowInsecure = true
		return nil
	}
}

// WithDialOptions adds options of grpc-go after the client's own, which they override.
func WithDialOptions(options ...grpc.DialOption) Option {
	return func(s *settings) error {
		s.dialOptions = append(s.dialOptions, options...)
		return nil
	}
}

func (s *settings) setCredential(source func(context.Context) (string, error)) error {
	if s.credential != nil {
		return errors.New("toolgate: an API key or a token source, not both")
	}
	s.credential = source
	return nil
}

// TLSFiles names PEM files of a TLS configuration.
type TLSFiles struct {
	// CA holds the certificate authorities that are trusted. Default: the system's.
	CA string
	// Cert and Key are the client's certificate and its key, for mutual TLS. Both or none.
	Cert, Key string
	// ServerName is the name that the server's certificate must have. Default: the target's host.
	ServerName string
}

// Config reads the files. Its errors name the file at fault.
func (f TLSFiles) Config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.ServerName}
	if f.CA != "" {
		pem, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("toolgate: certificate authorities: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("toolgate: certificate authorities: %s holds no PEM certificate", f.CA)
		}
	}
	if (f.Cert == "") != (f.Key == "") {
		return nil, errors.New("toolgate: a client certificate needs its key, and a key its certificate: name both files or none")
	}
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, fmt.Errorf("toolgate: client certificate of %s and %s: %w", f.Cert, f.Key, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
