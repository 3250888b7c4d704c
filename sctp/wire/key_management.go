package wire

import "encoding/binary"

// KeyManagement is a DTLS Key Management parameter of INIT and INIT ACK
// (draft-ietf-tsvwg-sctp-dtls-chunk section 4.1).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|         Type = 0x8006         |        Length = 9 + N         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                          Tie Breaker                          |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|Reserved |R|S|C|                  N methods                    |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type KeyManagement struct {
	TieBreaker uint32
	Restart    bool   // the sender supports protected restarts
	Server     bool   // the sender takes the role of the server
	Client     bool   // and that of the client
	Methods    []byte // the most preferred first; a view
}

// The bits.
const (
	keyRoleClient = 1 << iota
	keyRoleServer
	keyRestart
)

// keyManagementLen is the length of the parameter without methods.
const keyManagementLen = paramHeaderLen + 5

// KeyManagement returns a DTLS Key Management parameter. It has one method at least. Reserved bits
// are not looked at.
func (p Param) KeyManagement() (k KeyManagement, err error) {
	if err = p.checkType(ParamKeyManagement, keyManagementLen+1, MaxParamLen); err != nil {
		return k, err
	}
	bits := p[8]
	return KeyManagement{TieBreaker: binary.BigEndian.Uint32(p[4:]), Restart: bits&keyRestart != 0,
		Server: bits&keyRoleServer != 0, Client: bits&keyRoleClient != 0, Methods: p[9:]}, nil
}

// AppendKeyManagement appends a DTLS Key Management parameter with its padding.
func AppendKeyManagement(b []byte, k KeyManagement) []byte {
	start := len(b)
	b = binary.BigEndian.AppendUint32(appendTLVHeader(b, uint16(ParamKeyManagement), keyManagementLen), k.TieBreaker)
	bits := byte(0)
	for _, x := range [...]struct {
		is  bool
		bit byte
	}{{k.Client, keyRoleClient}, {k.Server, keyRoleServer}, {k.Restart, keyRestart}} {
		if x.is {
			bits |= x.bit
		}
	}
	return setLength(append(append(b, bits), k.Methods...), start)
}
