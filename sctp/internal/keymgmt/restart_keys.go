package keymgmt

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"github.com/rddp-go/rddp/sctp/internal/seal"
)

// RestartKeys seal the restart of an association after a crash of this side
// (draft-ietf-tsvwg-sctp-dtls-chunk section 5.4). Their numbers begin at 0, so they are used once.
type RestartKeys struct {
	Epoch         uint64
	Send, Receive seal.Material
}

// restartKeys returns those of the side that was, or was not, the client of the session.
func (s *Secrets) restartKeys(epoch uint64, isClient bool) *RestartKeys {
	send, receive := ByServer, ByClient
	if isClient {
		send, receive = receive, send
	}
	return &RestartKeys{Epoch: epoch, Send: s.Restart[send], Receive: s.Restart[receive]}
}

// RestartRecord is what is stored for a restart of this side.
type RestartRecord struct {
	Name string // that it is stored under
	Keys RestartKeys
	Peer []byte // the certificate that the peer has shown first, as DER
}

// The layout of a record: magic, epoch, suite, key, sequence number key and IV of both directions,
// and name and certificate with their lengths. A SHA-256 of all that is at the end.
const (
	restartMagic    = "rddp restart 1\n"
	restartFixedLen = len(restartMagic) + 8 + 2

	// MaxRestartRecord is the length of the longest record, in octets.
	MaxRestartRecord = 1 << 20
)

// ErrRestartRecord is for what is no record, or was cut or changed.
var ErrRestartRecord = errors.New("keymgmt: not a whole record of restart keys")

// Append appends the record to b.
func (r *RestartRecord) Append(b []byte) []byte {
	start := len(b)
	b = append(b, restartMagic...)
	b = binary.BigEndian.AppendUint64(b, r.Keys.Epoch)
	b = binary.BigEndian.AppendUint16(b, uint16(r.Keys.Send.Suite))
	n := r.Keys.Send.Suite.KeyLen()
	for _, m := range []*seal.Material{&r.Keys.Send, &r.Keys.Receive} {
		b = append(append(append(b, m.Key[:n]...), m.SNKey[:n]...), m.IV[:]...)
	}
	for _, part := range [][]byte{[]byte(r.Name), r.Peer} {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(part))), part...)
	}
	sum := sha256.Sum256(b[start:])
	return append(b, sum[:]...)
}

// ParseRestartRecord reads a record. It fails with ErrRestartRecord, or with an error of seal.
func ParseRestartRecord(b []byte) (r RestartRecord, err error) {
	body := len(b) - sha256.Size
	if body < restartFixedLen || len(b) > MaxRestartRecord || string(b[:len(restartMagic)]) != restartMagic {
		return r, ErrRestartRecord
	}
	if sha256.Sum256(b[:body]) != [sha256.Size]byte(b[body:]) {
		return r, ErrRestartRecord
	}
	b = b[len(restartMagic):body]
	r.Keys.Epoch = binary.BigEndian.Uint64(b)
	suite := seal.Suite(binary.BigEndian.Uint16(b[8:]))
	b = b[10:]
	n := suite.KeyLen()
	if r.Keys.Epoch < seal.FirstEpoch || n == 0 || len(b) < 2*(2*n+seal.IVLen) {
		return RestartRecord{}, ErrRestartRecord
	}
	for _, m := range []*seal.Material{&r.Keys.Send, &r.Keys.Receive} {
		if *m, err = seal.NewMaterial(suite, b[:n], b[n:2*n], b[2*n:2*n+seal.IVLen]); err != nil {
			return RestartRecord{}, err
		}
		b = b[2*n+seal.IVLen:]
	}
	name, b, named := cutPart(b)
	peer, b, hasPeer := cutPart(b)
	if !named || !hasPeer || len(b) > 0 {
		return RestartRecord{}, ErrRestartRecord
	}
	r.Name, r.Peer = string(name), peer
	return r, nil
}

// cutPart cuts octets with their length in front off.
func cutPart(b []byte) (part, rest []byte, ok bool) {
	if len(b) < 4 || uint64(binary.BigEndian.Uint32(b)) > uint64(len(b)-4) {
		return nil, nil, false
	}
	n := 4 + int(binary.BigEndian.Uint32(b))
	return b[4:n], b[n:], true
}
