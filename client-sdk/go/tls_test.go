package toolgate_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"toolgate.dev/go"
	"toolgate.dev/go/internal/fake"
	"toolgate.dev/go/toolgatev1"
)

// selfSigned writes a certificate for a name, which is its own authority, and its key.
func selfSigned(t *testing.T, name string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return written(t, "CERTIFICATE", cert), written(t, "PRIVATE KEY", encoded)
}

func written(t *testing.T, kind string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// encrypted is a service that asks for a client's certificate.
func encrypted(t *testing.T, server, client toolgate.TLSFiles) *fake.Service {
	t.Helper()
	config, err := toolgate.TLSFiles{CA: client.Cert, Cert: server.Cert, Key: server.Key}.Config()
	if err != nil {
		t.Fatal(err)
	}
	config.ClientCAs, config.ClientAuth = config.RootCAs, tls.RequireAndVerifyClientCert
	service := fake.Start(t, grpc.Creds(credentials.NewTLS(config)))
	service.Answer(route, &toolgatev1.RouteResponse{})
	return service
}

func TestAnEncryptedTargetIsVerifiedBothWays(t *testing.T) {
	server, client := toolgate.TLSFiles{}, toolgate.TLSFiles{ServerName: "tools.example"}
	server.Cert, server.Key = selfSigned(t, "tools.example")
	client.Cert, client.Key = selfSigned(t, "agent.example")
	client.CA = server.Cert
	target := "https://" + encrypted(t, server, client).Target
	withoutName, withoutCert := client, client
	withoutName.ServerName = ""
	withoutCert.Cert, withoutCert.Key = "", ""
	for why, files := range map[string]toolgate.TLSFiles{"": client, "another name": withoutName, "no certificate": withoutCert} {
		config, err := files.Config()
		if err != nil {
			t.Fatal(err)
		}
		_, err = dial(t, target, toolgate.WithTLS(config)).Route(t.Context(), nil)
		if why == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if failed := failure(t, err); failed.Code != codes.Unavailable {
			t.Errorf("%s: %v", why, failed)
		}
	}
	// The system's authorities don't know this one.
	if _, err := dial(t, target).Route(t.Context(), nil); failure(t, err).Code != codes.Unavailable {
		t.Error(err)
	}
}

func TestCredentialsAreSentWithEachCall(t *testing.T) {
	service := fake.Start(t)
	service.Answer(route, &toolgatev1.RouteResponse{})
	var watched []string
	service.Watch = func(_ *toolgatev1.WatchCatalogRequest, stream watchStream) error {
		header, _ := metadata.FromIncomingContext(stream.Context())
		watched = header.Get("authorization")
		return stream.Send(&toolgatev1.WatchCatalogResponse{})
	}
	var asked atomic.Int32
	rotating := toolgate.WithTokenSource(func(context.Context) (string, error) {
		return fmt.Sprint("token-", asked.Add(1)), nil
	})
	byToken, byKey := dial(t, service.Target, rotating), dial(t, service.Target, toolgate.WithAPIKey("key"))
	for _, client := range []*toolgate.Client{byToken, byToken, byKey} {
		if _, err := client.Route(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	for range byKey.WatchCatalog(t.Context(), nil) {
		break
	}
	var sent []string
	for _, call := range service.Calls(route) {
		sent = append(sent, call.Header.Get("authorization")...)
	}
	if len(sent) != 3 || !strings.HasPrefix(sent[0], "Bearer token-") || sent[1] == sent[0] || sent[2] != "Bearer key" {
		t.Error(sent)
	}
	if !reflect.DeepEqual(watched, sent[2:]) {
		t.Error(watched)
	}
}

func TestATokenSourceThatFailsFailsTheCall(t *testing.T) {
	service := fake.Start(t)
	for why, token := range map[string]string{"no token today": "", "white space": "a b"} {
		source := func(context.Context) (string, error) {
			if token == "" {
				return "", errors.New(why)
			}
			return token, nil
		}
		_, err := dial(t, service.Target, toolgate.WithTokenSource(source)).Route(t.Context(), nil)
		failed := failure(t, err)
		if failed.Code != codes.Unauthenticated || !strings.Contains(failed.Message, why) || strings.Contains(failed.Message, "a b") {
			t.Error(failed)
		}
	}
	if len(service.Calls(route)) > 0 {
		t.Error("something was sent")
	}
}
