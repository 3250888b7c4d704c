package sctp_test

import (
	"fmt"

	"github.com/ishidawataru/sctp"
)

// A program for github.com/ishidawataru/sctp, as it is.
func Example() {
	addr, err := sctp.ResolveSCTPAddr("sctp", "127.0.0.1:0")
	check(err)
	l, err := sctp.ListenSCTP("sctp", addr)
	check(err)
	defer l.Close()
	go func() {
		c, err := l.Accept()
		check(err)
		buf := make([]byte, 1500)
		n, err := c.Read(buf)
		check(err)
		_, err = c.Write(buf[:n])
		check(err)
	}()

	c, err := sctp.DialSCTP("sctp", nil, l.Addr().(*sctp.SCTPAddr))
	check(err)
	defer c.Close()
	_, err = c.Write([]byte("hello"))
	check(err)
	buf := make([]byte, 1500)
	n, err := c.Read(buf)
	check(err)
	fmt.Printf("%s\n", buf[:n])
	// Output: hello
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
