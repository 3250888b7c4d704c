package compat_test

import (
	"fmt"
	"net"

	"github.com/rddp-go/rddp/compat"
)

// Two sockets of the one-to-one style, used as those of the kernel. The environment variable
// RDDP_LINK is udp here, which needs no privilege.
func Example() {
	l := compat.NewSocket(false, false)
	check(l.Bind(compat.RawAddrs([]net.IPAddr{{IP: net.IPv4(127, 0, 0, 1)}}, 0), false))
	check(l.Listen())
	defer l.Close()
	at, _, err := l.LocalAddrs()
	check(err)

	client := compat.NewSocket(false, false)
	_, err = client.Connect(at)
	check(err)
	defer client.Close()
	server, err := l.Accept()
	check(err)
	defer server.Close()

	_, err = client.Send([]byte("hello"), &compat.SndRcvInfo{Stream: 3})
	check(err)
	buf := make([]byte, 1500)
	n, _, flags, err := server.Recv(buf, new(compat.SndRcvInfo))
	check(err)
	fmt.Printf("%s, whole: %t\n", buf[:n], flags&compat.MsgEOR != 0)
	// Output: hello, whole: true
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
