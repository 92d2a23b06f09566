package main

import (
	"context"
	"encoding/json"
	"time"

	"toolgate.dev/go"
)

// clientSpec is how a request describes its client.
type clientSpec struct {
	Target  *string  `json:"target"`
	Tenant  string   `json:"tenant"`
	Timeout *float64 `json:"timeout"`
	APIKey  *string  `json:"api_key"`
	Token   *string  `json:"token"`
	TLS     *struct {
		CA         string `json:"ca"`
		Cert       string `json:"cert"`
		Key        string `json:"key"`
		ServerName string `json:"server_name"`
	} `json:"tls"`
	AllowInsecureCredentials bool `json:"allow_insecure_credentials"`
}

// clients are open, by their description.
type clients map[string]*toolgate.Client

// of is the client that a request describes; the same one for the same description.
func (c *clients) of(description json.RawMessage) (*toolgate.Client, error) {
	var spec clientSpec
	if err := read(description, &spec); err != nil {
		return nil, err
	}
	canonical, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	if client := (*c)[string(canonical)]; client != nil {
		return client, nil
	}
	client, err := spec.open()
	if err != nil {
		return nil, err
	}
	if *c == nil {
		*c = make(clients)
	}
	(*c)[string(canonical)] = client
	return client, nil
}

func (c clients) closeAll() {
	for _, client := range c {
		_ = client.Close()
	}
}

func (s clientSpec) target() string {
	if s.Target == nil {
		return toolgate.DefaultTarget
	}
	return *s.Target
}

func (s clientSpec) open() (*toolgate.Client, error) {
	options := []toolgate.Option{toolgate.WithTenant(s.Tenant)}
	if s.Timeout != nil {
		options = append(options, toolgate.WithTimeout(seconds(*s.Timeout)))
	}
	if s.APIKey != nil {
		options = append(options, toolgate.WithAPIKey(*s.APIKey))
	}
	if s.Token != nil {
		options = append(options, toolgate.WithTokenSource(func(context.Context) (string, error) { return *s.Token, nil }))
	}
	if s.TLS != nil {
		files := toolgate.TLSFiles{CA: s.TLS.CA, Cert: s.TLS.Cert, Key: s.TLS.Key, ServerName: s.TLS.ServerName}
		config, err := files.Config()
		if err != nil {
			return nil, err
		}
		options = append(options, toolgate.WithTLS(config))
	}
	if s.AllowInsecureCredentials {
		options = append(options, toolgate.WithAllowInsecureCredentials())
	}
	return toolgate.New(s.target(), options...)
}

func seconds(number float64) time.Duration {
	return time.Duration(number * float64(time.Second))
}

// within is a context with a request's timeout, if it has one.
func within(timeout *float64) (context.Context, context.CancelFunc) {
	if timeout == nil {
		return context.WithCancel(context.Background())
	}
	return context.WithTimeout(context.Background(), seconds(*timeout))
}
