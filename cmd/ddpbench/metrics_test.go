package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
)

// A measurement can be watched while it runs.
func TestMetricsAreServed(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	said, out := io.Pipe()
	ended := make(chan int)
	go func() {
		code := run(ctx, []string{"write", "--self", "--link", "mem", "-D", "3600", "--metrics", "127.0.0.1:0"}, io.Discard, out)
		out.Close()
		ended <- code
	}()
	line := make([]byte, 200)
	n, err := said.Read(line)
	url, ok := strings.CutPrefix(strings.TrimSpace(string(line[:n])), "metrics: ")
	must.That(t, err == nil && ok, "it says %q, %v", line[:n], err)
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for _, want := range []string{`rddp_rdma_connected_total{source="client"} 1`, `rddp_rdma_accepted_total{source="server"} 1`} {
		for text := ""; !strings.Contains(text, want); {
			resp := must.Get(client.Get(url))(t)
			b, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			must.OK(t, err)
			text = string(b)
		}
	}
	stop()
	go io.Copy(io.Discard, said)
	<-ended
	_, errs, code := bench(t, "write", "--self", "--metrics", "nowhere")
	check.That(t, code == exitError && strings.Contains(errs, "--metrics nowhere: it is an address and a TCP port"), "exit %d: %s", code, errs)
	if _, errs, code := bench(t, "--sweep", t.TempDir(), "--metrics", ":0"); code != exitError || !strings.Contains(errs, "--metrics does not go with --sweep") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
