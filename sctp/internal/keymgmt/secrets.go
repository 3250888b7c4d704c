package keymgmt

import (
	"github.com/rddp-go/rddp/sctp/internal/seal"
	"github.com/rddp-go/rddp/sctp/wire"
)

// ExporterLabel is the only label (section 5.3).
const ExporterLabel = "EXPORTER_TLS_FOR_DTLS_IN_SCTP"

// Direction is who seals: the client or the server of the TLS session, whoever began the
// association.
type Direction uint8

// The directions, by their numbers in the exporter context.
const (
	ByClient Direction = iota
	ByServer
)

// Numbers of the exporter context (section 5.2).
const (
	rolePrimary = 0
	roleRestart = 1
	typeKey     = 0
	typeSNKey   = 1
	typeIV      = 2
)

// Params are the DTLS Key Management Parameters of both sides, as they were on the wire: with their
// header, without padding. They are those of the negotiated roles, and stay so in each session.
type Params struct{ Client, Server []byte }

// HasRestart reports whether both sides take protected restarts, as their R bits say.
func (p Params) HasRestart() bool {
	client, err := wire.Param(p.Client).KeyManagement()
	if err != nil {
		return false
	}
	server, err := wire.Param(p.Server).KeyManagement()
	return err == nil && client.Restart && server.Restart
}

// Secrets is the key material of one TLS session, by Direction.
type Secrets struct {
	Primary    [2]seal.Material
	Restart    [2]seal.Material
	HasRestart bool
}

// Exporter is that of a TLS session (RFC 8446 section 7.5).
type Exporter func(label string, context []byte, length int) ([]byte, error)

// Export derives the secrets of a session. The context is direction, key role, key type and both
// parameters, so that a parameter which was changed on its way makes all keys differ.
func Export(export Exporter, suite seal.Suite, p Params, withRestart bool) (*Secrets, error) {
	s := &Secrets{HasRestart: withRestart}
	for _, by := range []Direction{ByClient, ByServer} {
		var err error
		if s.Primary[by], err = exportMaterial(export, suite, p, by, rolePrimary); err != nil {
			return nil, err
		}
		if !withRestart {
			continue
		}
		if s.Restart[by], err = exportMaterial(export, suite, p, by, roleRestart); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// exportMaterial derives key, sequence number key and IV of one direction.
func exportMaterial(export Exporter, suite seal.Suite, p Params, by Direction, role byte) (seal.Material, error) {
	context := append([]byte{byte(by), role, 0}, p.Client...)
	context = append(context, p.Server...)
	var parts [3][]byte
	for kind, n := range [...]int{typeKey: suite.KeyLen(), typeSNKey: suite.KeyLen(), typeIV: seal.IVLen} {
		context[2] = byte(kind)
		var err error
		if parts[kind], err = export(ExporterLabel, context, n); err != nil {
			return seal.Material{}, err
		}
	}
	return seal.NewMaterial(suite, parts[typeKey], parts[typeSNKey], parts[typeIV])
}
