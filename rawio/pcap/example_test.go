package pcap_test

import (
	"bytes"
	"fmt"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/rawio/pcap"
)

func ExampleNew() {
	a, b, err := mem.Pair(mem.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()

	var file bytes.Buffer
	tap, err := pcap.New(a, &file)
	if err != nil {
		fmt.Println(err)
		return
	}
	// The tap is used in place of the link.
	if _, err := tap.WriteBatch([]rawio.Packet{{Vec: [][]byte{[]byte("hello")}, Remote: b.LocalAddrs()[0]}}); err !=
		nil {
		fmt.Println(err)
	}
	if err := tap.Close(); err != nil {
		fmt.Println(err)
	}

	fmt.Println("recorded:", bytes.Contains(file.Bytes(), []byte("hello")))
	// Output: recorded: true
}
