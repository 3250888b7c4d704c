package metrics

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
)

// A page of another site reads nothing here and starts nothing, by whatever name it gets the user's
// browser to come.
func TestPagesOfOtherSitesGetNothing(t *testing.T) {
	c := NewCollector()
	pprof, given, remote := &StatusOptions{Pprof: true}, &StatusOptions{Hosts: []string{"stat.example"}, Pprof: true},
		&StatusOptions{Remote: true, Pprof: true}
	type headers = map[string]string
	cross := headers{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
	link := headers{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
	frame := headers{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}
	port := headers{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}
	own := headers{"Sec-Fetch-Site": "same-origin"}
	typed := headers{"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
	tool := headers{"User-Agent": "Go-http-client/1.1"}
	old := headers{"User-Agent": "Mozilla/5.0"}
	for _, row := range []struct {
		name       string
		opts       *StatusOptions // of Status; nil and path /metrics: Handler
		path, host string
		from       string
		h          headers
		code       int
	}{
		{"localhost", nil, "/json", "localhost:9100", "", tool, 200},
		{"localhost, without a port", nil, "/json", "localhost", "", tool, 200},
		{"localhost, as DNS writes it", nil, "/json", "LocalHost.:80", "", tool, 200},
		{"127.0.0.1", nil, "/json", "127.0.0.1:9100", "", tool, 200},
		{"another loopback address", nil, "/json", "127.3.4.5", "", tool, 200},
		{"::1", nil, "/json", "[::1]:9100", "[::1]:5", tool, 200},
		{"::1, without a port", nil, "/json", "[::1]", "[::1]:5", tool, 200},
		{"a page's name that leads here", nil, "/json", "evil.example:9100", "", own, 403},
		{"the page itself", nil, "/", "evil.example:9100", "", typed, 403},
		{"the text", nil, "/text", "evil.example", "", tool, 403},
		{"a name that begins like ours", nil, "/json", "localhost.evil.example", "", own, 403},
		{"a name that ends like ours", nil, "/json", "evil-localhost", "", own, 403},
		{"a name like an address", nil, "/json", "127.0.0.1.evil.example", "", own, 403},
		{"an address that is not this host's", nil, "/json", "192.0.2.1", "", own, 403},
		{"no name", nil, "/json", "", "", tool, 403},
		{"a name that was given", given, "/json", "Stat.Example:443", "", own, 200},
		{"a name that was not", given, "/json", "evil.example", "", own, 403},
		{"another host by address", remote, "/json", "192.0.2.1:9100", "192.0.2.7:5", tool, 200},
		{"another host by a name that was not given", remote, "/json", "evil.example", "192.0.2.7:5", tool, 403},
		{"a link of another site", nil, "/", "localhost", "", link, 200},
		{"a frame of another site", nil, "/", "localhost", "", frame, 403},
		{"an image of another site", nil, "/json", "localhost", "", cross, 403},
		{"a script of another port", nil, "/json", "localhost", "", port, 403},
		{"the page's own link", nil, "/json", "localhost", "", own, 200},
		{"another origin, of an old browser", nil, "/json", "localhost", "", headers{"Origin": "http://evil.example"}, 403},
		{"no origin of its own", nil, "/json", "localhost", "", headers{"Origin": "null"}, 403},
		{"its own origin, of an old browser", nil, "/json", "localhost:9100", "", headers{"Origin": "http://localhost:9100"}, 200},
		{"metrics", nil, "/metrics", "localhost:9100", "", tool, 200},
		{"metrics, by a page's name that leads here", nil, "/metrics", "evil.example", "", tool, 403},
		{"variables, by a page's name that leads here", nil, "/debug/vars", "evil.example", "", own, 403},
		{"metrics, for a script of another site", nil, "/metrics", "localhost", "", cross, 403},
		{"metrics, by another host's name for this one", nil, "/metrics", "server.example:9100", "192.0.2.7:5", tool, 200},
		{"a profile for a tool", pprof, "/pprof/heap", "localhost:9100", "", tool, 200},
		{"a profile for the user", pprof, "/pprof/heap", "localhost:9100", "", typed, 200},
		{"a profile for the site itself", pprof, "/pprof/heap", "localhost:9100", "", own, 200},
		{"a profile for an image of another site", pprof, "/pprof/profile", "localhost:9100", "", cross, 403},
		{"a profile for a link of another site", pprof, "/pprof/profile", "localhost:9100", "", link, 403},
		{"a profile for a page of another port", pprof, "/pprof/profile", "localhost:9100", "", port, 403},
		{"a profile for another origin", pprof, "/pprof/profile", "localhost:9100", "", headers{"Origin": "http://localhost:8000"}, 403},
		{"a profile for a page that says where it is", pprof, "/pprof/profile", "localhost:9100", "", headers{"Referer": "http://evil.example/a"}, 403},
		{"a profile for a browser that says nothing", remote, "/pprof/profile", "192.0.2.1:9100", "192.0.2.7:5", old, 403},
		{"a profile by a page's name that leads here", pprof, "/pprof/profile", "evil.example", "", own, 403},
		{"a header that is no URL", pprof, "/pprof/heap", "localhost", "", headers{"Referer": "http://a b%zz"}, 403},
	} {
		h := Status(c, row.opts)
		if row.path == "/metrics" || row.path == "/debug/vars" {
			h = Handler(c)
		}
		r, w := httptest.NewRequest(http.MethodGet, row.path, nil), httptest.NewRecorder()
		r.Host, r.RemoteAddr = row.host, "127.0.0.1:5"
		if row.from != "" {
			r.RemoteAddr = row.from
		}
		for k, v := range row.h {
			r.Header.Set(k, v)
		}
		h.ServeHTTP(w, r)
		check.That(t, w.Code == row.code, "%s: %d %s, want %d", row.name, w.Code, w.Body, row.code)
		check.That(t, w.Code != 403 || !strings.Contains(w.Body.String(), "rddp_") &&
			!strings.ContainsAny(w.Body.String(), "<>"), "%s: it is told %s", row.name, w.Body)
	}
}

// A connection to a loopback address is one within this host, whatever its other end says.
func TestConnectionToLoopbackIsLocal(t *testing.T) {
	l := httptest.NewUnstartedServer(Handler(NewCollector()))
	l.Start()
	defer l.Close()
	r, err := http.NewRequest(http.MethodGet, l.URL+"/metrics", nil)
	check.OK(t, err)
	r.Host = "evil.example"
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	check.That(t, err == nil && resp.StatusCode == 403, "%v, %v", resp, err)
	if err == nil {
		resp.Body.Close()
	}
	req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	req.RemoteAddr = "192.0.2.1:5"
	for addr, want := range map[string]bool{"127.0.0.1": true, "::1": true, "192.0.2.9": false} {
		ctx := contextWith(req, &net.TCPAddr{IP: net.ParseIP(addr)})
		check.Equal(t, "to "+addr+": within this host", isLocalRequest(ctx), want)
	}
}

// contextWith is a request over a connection to addr.
func contextWith(r *http.Request, addr net.Addr) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, addr))
}
