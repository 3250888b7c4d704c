package seal_test

import (
	"fmt"

	"github.com/rddp-go/rddp/sctp/internal/seal"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Two ends with the keys of one direction of the first epoch.
func ExampleKeyring() {
	m, err := seal.NewMaterial(seal.AES128GCM, make([]byte, 16), make([]byte, 16), make([]byte, seal.IVLen))
	if err != nil {
		panic(err)
	}
	from, to := seal.NewKeyring(seal.Limits{}, 0), seal.NewKeyring(seal.Limits{}, 0)
	for _, k := range []*seal.Keyring{from, to} {
		if err := k.InstallReceive(0, seal.FirstEpoch, &m); err != nil { // of the other direction, for from
			panic(err)
		}
	}
	if err := from.InstallSend(0, seal.FirstEpoch, &m); err != nil {
		panic(err)
	}

	chunk, _ := from.Append(nil, wire.AppendCookieAck(nil))
	fmt.Println(len(chunk), "octets")
	d, _ := wire.AsDTLS(wire.Chunk(chunk[:29])) // without its padding
	content, epoch, err := to.Open(0, d, nil)
	fmt.Println(wire.Chunk(content).Type(), epoch, err)
	// Output:
	// 32 octets
	// COOKIE ACK 3 <nil>
}
