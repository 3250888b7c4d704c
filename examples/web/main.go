// Web is net/http and crypto/tls over SCTP. Its server and client know of SCTP only where they
// listen and dial.
//
//	go run ./examples/web
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp"
)

const port = 443

func main() {
	a, b, err := mem.Pair(mem.Options{}) // or udp.Open, on two hosts
	if err == nil {
		err = run(a, b, netip.AddrPortFrom(a.LocalAddrs()[0].Addr(), port), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "web:", err)
		os.Exit(1)
	}
}

func run(server, client rawio.Link, to netip.AddrPort, out io.Writer) error {
	cert, roots, err := certificate()
	if err != nil {
		return err
	}
	st, err := sctp.NewTransport(server, nil)
	if err != nil {
		return err
	}
	defer st.Close()
	l, err := st.Listen(port, nil)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: http.HandlerFunc(greet), TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}}
	defer srv.Close()
	go srv.ServeTLS(l.StreamListener(), "", "")

	ct, err := sctp.NewTransport(client, nil)
	if err != nil {
		return err
	}
	defer ct.Close()
	web := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, ServerName: name},
		ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := ct.Dial(ctx, to, nil)
			if err != nil {
				return nil, err
			}
			return c.StreamConn(), nil
		},
	}
	defer web.CloseIdleConnections()
	for _, path := range []string{"/first", "/second"} {
		answer, err := (&http.Client{Transport: web}).Get("https://" + name + path)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, answer.Body)
		answer.Body.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func greet(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "%s of %s by %s, encrypted: %v\n", r.URL.Path, r.Host, r.Proto, r.TLS != nil)
}
