package main

import (
	"bytes"
	"context"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// saidLines is output that a test waits for.
type saidLines struct {
	mu   sync.Mutex
	b    bytes.Buffer
	more chan struct{}
}

func (s *saidLines) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
	return s.b.Write(b)
}

func (s *saidLines) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// await waits for a match of a pattern, and returns its first group.
func (s *saidLines) await(t *testing.T, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for {
		if m := re.FindStringSubmatch(s.String()); m != nil {
			return m[len(m)-1]
		}
		select {
		case <-s.more:
		case <-t.Context().Done():
			t.Fatalf("no %s in %q", pattern, s.String())
		}
	}
}

// startServer starts a server, which ends with the test, and returns the flags of its clients.
func startServer(t *testing.T, link string, flags ...string) (out, errs *saidLines, client []string) {
	out, errs = &saidLines{more: make(chan struct{}, 1)}, &saidLines{more: make(chan struct{}, 1)}
	args := []string{"-l", "--local", "127.0.0.1", "--link", link}
	if link == "udp" {
		c := must.Get(net.ListenPacket("udp", "127.0.0.1:0"))(t)
		port := strconv.Itoa(c.LocalAddr().(*net.UDPAddr).Port)
		c.Close()
		args, client = append(args, "--udp-port", port), []string{"--link", link, "--encap-port", port, "--local", "127.0.0.1"}
	} else {
		c := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		port := strconv.Itoa(c.Addr().(*net.TCPAddr).Port)
		c.Close()
		args, client = append(args, "--port", port), []string{"--link", link, "--port", port}
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runProgram(ctx, append(args, flags...), out, errs)
	}()
	t.Cleanup(func() { stop(); <-ended })
	out.await(t, "serving on")
	return out, errs, append(client, "-c", "1", "-W", "20", "127.0.0.1")
}

// Two commands encrypt a ping: the server prints the fingerprint that its client is given.
func TestEncryptedPing(t *testing.T) {
	for _, link := range []string{"udp", "tcp"} {
		t.Run(link, func(t *testing.T) {
			_, errs, client := startServer(t, link, "--insecure-self-signed")
			sum := errs.await(t, "SHA-256 fingerprint ([0-9a-f]{64})\n")
			code, out, said := runTool(t.Context(), append(client, "--fingerprint", sum)...)
			check.That(t, code == exitOK && strings.Contains(out, "1 received") && said == "", "exit %d\n%s%s", code, out, said)
			code, out, said = runTool(t.Context(), append(client, "--insecure-self-signed")...)
			check.That(t, code == exitOK && strings.Contains(out, "1 received") &&
				strings.Contains(said, "nobody vouches for, with the SHA-256 fingerprint "+sum), "exit %d\n%s%s", code, out, said)
		})
	}
	code, out, said := runTool(t.Context(), "--self", "--link", "mem", "-c", "1", "--insecure-self-signed")
	check.That(t, code == exitOK && strings.Contains(out, "1 received"), "--self: exit %d\n%s%s", code, out, said)
}

// Each side says what is missing, and of which side.
func TestPingsThatAreNotLetIn(t *testing.T) {
	wrong := strings.Repeat("00", 32)
	for _, row := range []struct {
		name           string
		server, client []string
		atClient       string
		atServer       string // empty: an INIT leaves nothing behind
	}{
		{"another fingerprint", []string{"--insecure-self-signed"}, []string{"--fingerprint", wrong},
			"the certificate of the other side has the SHA-256 fingerprint [0-9a-f]{64}, which --fingerprint does not name",
			"was not let in: the other side refuses the certificate of this side, by the alert"},
		{"a client of another fingerprint", []string{"--insecure-self-signed", "--fingerprint", wrong},
			[]string{"--insecure-self-signed"}, "the other side refuses the certificate of this side, by the alert",
			"was not let in: the certificate of the other side has the SHA-256 fingerprint"},
		{"a client in the clear", []string{"--insecure-self-signed"}, nil, "encrypted sessions", ""},
		{"a server in the clear", nil, []string{"--insecure-self-signed"}, "the other side does not encrypt", ""},
	} {
		for _, link := range []string{"udp", "tcp"} {
			t.Run(row.name+", "+link, func(t *testing.T) {
				_, errs, client := startServer(t, link, row.server...)
				code, out, said := runTool(t.Context(), append(client, row.client...)...)
				check.That(t, code != exitOK && regexp.MustCompile(row.atClient).MatchString(out+said) && !strings.Contains(out, "op="),
					"exit %d, want %q\n%s%s", code, row.atClient, out, said)
				if row.atServer != "" {
					errs.await(t, row.atServer)
				}
			})
		}
	}
}
