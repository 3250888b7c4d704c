// Command peer accepts an association on port 7777 of SCTP over UDP, and prints the PPID of the
// first message as it was on the wire.
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"github.com/rddp-go/rddp/sctp"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	l, err := sctp.Listen("sctp", "127.0.0.1:7777")
	if err != nil {
		die(err)
	}
	fmt.Println("listening")
	c, err := l.Accept(ctx)
	if err != nil {
		die(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second)) // it cannot fail
	_, info, err := c.ReadMsg(make([]byte, 1<<16))
	if err != nil {
		die(err)
	}
	fmt.Printf("% x\n", binary.BigEndian.AppendUint32(nil, info.PPID))
	c.Abort("seen")
}

func die(err error) {
	fmt.Fprintln(os.Stderr, "peer:", err)
	os.Exit(1)
}
