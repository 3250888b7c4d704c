// Package httpget reads pages that what is tested serves.
package httpget

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/must"
)

// Page is what there is at url. No connection stays behind.
func Page(t testing.TB, url string) string {
	t.Helper()
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	resp := must.Get(client.Get(url))(t)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must.That(t, err == nil && resp.StatusCode == http.StatusOK, "%s: %s, %v", url, resp.Status, err)
	return string(b)
}

// Tool runs a tool with these arguments and --metrics, and returns where those are, as it says
// first, and what ends it, which returns its exit code.
func Tool(t testing.TB, run func(ctx context.Context, args []string, stdout, stderr io.Writer) int,
	args ...string) (url string, end func() int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	said, errs := io.Pipe()
	ended := make(chan int)
	go func() {
		code := run(ctx, append(args, "--metrics", "127.0.0.1:0"), io.Discard, errs)
		errs.Close()
		ended <- code
	}()
	line := make([]byte, 200)
	n, err := said.Read(line)
	url, ok := strings.CutPrefix(strings.TrimSpace(string(line[:n])), "metrics: ")
	must.That(t, err == nil && ok, "it says %q, %v", line[:n], err)
	return url, func() int {
		stop()
		_, _ = io.Copy(io.Discard, said)
		return <-ended
	}
}

// Until reads the page at url until it has had each text.
func Until(t testing.TB, url string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		for !strings.Contains(Page(t, url), text) {
		}
	}
}
