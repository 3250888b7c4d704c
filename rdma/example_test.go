package rdma_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/rdma"
)

// A client writes into the server's memory and tells it so. The two ends run in one process over a
// link in memory; over a network they differ in nothing but the link.
func Example() {
	ctx := context.Background()
	serverLink, clientLink, err := mem.Pair(mem.Options{})
	check(err)

	// The server registers memory, posts a receive, and accepts whoever asks, telling where to
	// write.
	server, err := rdma.NewDevice(serverLink, nil)
	check(err)
	defer server.Close()
	listener, err := server.Listen(rdma.DefaultPort)
	check(err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		pd := server.AllocPD()
		memory := make([]byte, 64)
		mr, err := pd.Register(memory, rdma.RemoteWrite|rdma.LocalWrite, nil)
		check(err)
		cq, err := server.CreateCQ(256)
		check(err)
		qp, err := server.CreateQP(&rdma.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq})
		check(err)
		check(qp.PostRecv(&rdma.RecvWR{SGL: []rdma.SGE{mr.SGE(32, 32)}}))

		req, err := listener.Accept(ctx)
		check(err)
		check(req.Accept(qp, []byte{byte(mr.STag() >> 24), byte(mr.STag() >> 16), byte(mr.STag() >> 8),
			byte(mr.STag())}))
		check(cq.Wait(ctx)) // the notification
		fmt.Printf("server memory holds %q\n", memory[:12])
		<-qp.Done()
	}()

	client, err := rdma.NewDevice(clientLink, nil)
	check(err)
	defer client.Close()
	cq, err := client.CreateCQ(256)
	check(err)
	qp, err := client.CreateQP(&rdma.QPConfig{PD: client.AllocPD(), SendCQ: cq, RecvCQ: cq})
	check(err)
	addr := netip.AddrPortFrom(serverLink.LocalAddrs()[0].Addr(), rdma.DefaultPort)
	private, err := qp.Connect(ctx, addr, nil)
	check(err)
	stag := rdma.STag(private[0])<<24 | rdma.STag(private[1])<<16 | rdma.STag(private[2])<<8 | rdma.STag(private[3])

	_, err = qp.PostSendList([]rdma.SendWR{
		{Op: rdma.OpWrite, Inline: []byte("hello, world"), RemoteSTag: stag, RemoteTO: 0},
		{Op: rdma.OpSendSE, Inline: []byte("look")},
	})
	check(err)
	check(qp.Disconnect(ctx))
	<-served
	// Output: server memory holds "hello, world"
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
