package mem_test

import (
	"fmt"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
)

func ExamplePair() {
	a, b, err := mem.Pair(mem.Options{MTU: 1500})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	defer b.Close()

	_, err = a.WriteBatch([]rawio.Packet{{
		Vec:    [][]byte{[]byte("header, "), []byte("payload")},
		Remote: b.LocalAddrs()[0],
	}})
	if err != nil {
		fmt.Println(err)
		return
	}

	pkts := make([]rawio.Packet, 8)
	n, err := b.ReadBatch(pkts)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range pkts[:n] {
		fmt.Printf("%s from %s\n", pkts[i].Data, pkts[i].Remote.Addr())
		pkts[i].Release()
	}
	// Output: header, payload from 10.0.0.1
}
