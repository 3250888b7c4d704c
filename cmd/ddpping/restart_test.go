package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/certs"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// certFlags writes a certificate to files, and returns the flags that name them and its
// fingerprint.
func certFlags(t *testing.T, c tls.Certificate) (flags []string, sum string) {
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{
		"cert": {Type: "CERTIFICATE", Bytes: c.Certificate[0]},
		"key":  {Type: "PRIVATE KEY", Bytes: must.Get(x509.MarshalPKCS8PrivateKey(c.PrivateKey))(t)},
	} {
		file := filepath.Join(dir, name)
		must.OK(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
		flags = append(flags, "--"+name, file)
	}
	digest := sha256.Sum256(c.Certificate[0])
	return flags, hex.EncodeToString(digest[:])
}

// records returns the names of the records in a folder of restart keys.
func records(t *testing.T, dir string) (names []string) {
	for _, e := range must.Get(os.ReadDir(dir))(t) {
		if e.Name()[0] != '.' {
			names = append(names, e.Name())
		}
	}
	return names
}

// A client with --restart-keys that has crashed pings again at once, from the same port. The server
// takes it for the one of before: the session of that ends.
func TestPingAfterACrash(t *testing.T) {
	ca, dir := certs.New(t), t.TempDir()
	serverCert, serverSum := certFlags(t, ca.Issue(t, "server.test", x509.ExtKeyUsageServerAuth, time.Hour))
	clientCert, clientSum := certFlags(t, ca.Issue(t, "client.test", x509.ExtKeyUsageClientAuth, time.Hour))
	folder := func(name string) string { return filepath.Join(dir, name) }
	said, _, client := startServer(t, "udp", append(serverCert, "--fingerprint", clientSum, "--restart-keys", folder("server"))...)
	ping := func(keys string, count string) []string {
		return slices.Concat(client, clientCert, []string{"--fingerprint", serverSum, "--local-port", "5999",
			"--restart-keys", folder(keys), "-c", count, "-i", "0.002"})
	}
	first := &saidLines{more: make(chan struct{}, 1)}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runProgram(ctx, ping("client", "1000000"), first, first)
	}()
	defer func() { stop(); <-ended }()
	for seq := 1; ; seq++ {
		first.await(t, fmt.Sprintf("seq=%d ", seq))
		if len(records(t, folder("client"))) == 1 && len(records(t, folder("server"))) == 1 {
			break
		}
	}
	name := records(t, folder("client"))[0]
	check.Equal(t, "record", name, "5999-5043-127.0.0.1")
	must.OK(t, os.Mkdir(folder("crashed"), 0o700)) // what the disk has when the host comes back
	must.OK(t, os.WriteFile(filepath.Join(folder("crashed"), name),
		must.Get(os.ReadFile(filepath.Join(folder("client"), name)))(t), 0o600))
	code, out, errs := runTool(t.Context(), ping("crashed", "1")...)
	check.That(t, code == exitOK && strings.Contains(out, "1 received") && errs == "", "exit %d\n%s%s", code, out, errs)
	said.await(t, "the peer restarted the association")
	check.Equal(t, "records left of a client that has ended well", len(records(t, folder("crashed"))), 0)
}
