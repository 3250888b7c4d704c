// Grpc is gRPC over SCTP: a server and a client that know of it only where they listen and dial. It
// lives in the module of bench, so that importers of rddp do without gRPC.
//
//	cd bench && go run ./grpc
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp"
)

const port = 50051

func main() {
	a, b, err := mem.Pair(mem.Options{}) // or udp.Open, on two hosts
	if err == nil {
		err = run(context.Background(), a, b, netip.AddrPortFrom(a.LocalAddrs()[0].Addr(), port), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "grpc:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, server, client rawio.Link, to netip.AddrPort, out io.Writer) error {
	st, err := sctp.NewTransport(server, nil)
	if err != nil {
		return err
	}
	defer st.Close()
	l, err := st.Listen(port, nil)
	if err != nil {
		return err
	}
	srv := grpc.NewServer()
	defer srv.Stop()
	h := health.NewServer()
	h.SetServingStatus("sctp", grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(srv, h)
	go srv.Serve(l.StreamListener())

	ct, err := sctp.NewTransport(client, nil)
	if err != nil {
		return err
	}
	defer ct.Close()
	cc, err := grpc.NewClient("passthrough:///"+to.String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			c, err := ct.Dial(ctx, to, nil)
			if err != nil {
				return nil, err
			}
			return c.StreamConn(), nil
		}))
	if err != nil {
		return err
	}
	defer cc.Close()
	answer, err := grpc_health_v1.NewHealthClient(cc).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: "sctp"})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, answer.Status)
	return err
}
