package rdma_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"strconv"

	"github.com/rddp-go/rddp/rdma"
)

// Over TCP a completed Write has left for the peer. A Read behind it is answered when it is there.
func ExampleQP_Dial() {
	ctx := context.Background()
	server, err := rdma.NewDevice(nil, nil) // without a link: TCP alone
	check(err)
	defer server.Close()
	listener, err := server.ListenOn("tcp", "127.0.0.1:0")
	check(err)
	pd := server.AllocPD()
	mr, err := pd.Register(make([]byte, 64), rdma.RemoteWrite|rdma.RemoteRead, nil)
	check(err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		cq, err := server.CreateCQ(256)
		check(err)
		qp, err := server.CreateQP(&rdma.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq})
		check(err)
		req, err := listener.Accept(ctx)
		check(err)
		check(req.Accept(qp, binary.BigEndian.AppendUint32(nil, uint32(mr.STag()))))
		<-qp.Done()
	}()

	client, err := rdma.NewDevice(nil, nil)
	check(err)
	defer client.Close()
	cq, err := client.CreateCQ(256)
	check(err)
	copyOf, own := make([]byte, 12), client.AllocPD()
	sink, err := own.Register(copyOf, rdma.LocalWrite, nil)
	check(err)
	qp, err := client.CreateQP(&rdma.QPConfig{PD: own, SendCQ: cq, RecvCQ: cq})
	check(err)
	private, err := qp.Dial(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(listener.Port()))), nil)
	check(err)
	stag := rdma.STag(binary.BigEndian.Uint32(private))

	_, err = qp.PostSendList([]rdma.SendWR{
		{Op: rdma.OpWrite, Flags: rdma.Unsignaled, Inline: []byte("hello, world"), RemoteSTag: stag},
		{Op: rdma.OpRead, SGL: []rdma.SGE{sink.SGE(0, 12)}, RemoteSTag: stag}, // of no octets would do
	})
	check(err)
	check(cq.Wait(ctx))
	fmt.Printf("server memory holds %q\n", copyOf)
	check(qp.Disconnect(ctx))
	<-served
	// Output: server memory holds "hello, world"
}
