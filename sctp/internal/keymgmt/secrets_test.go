package keymgmt

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/internal/seal"
)

// Each export has a context of its own, with the parameters as they were on the wire.
func TestExporterContexts(t *testing.T) {
	// req dtlschunk-7.2-1
	// req dtlskeys-5.2-1
	// req dtlskeys-5.2-2
	// req dtlskeys-5.3-1
	// req dtlskeys-5.3-3
	// req dtlskeys-5.4-1
	// req dtlskeys-5.4-4
	// req dtlschunk-6-5
	var asked []string
	export := func(label string, context []byte, n int) ([]byte, error) {
		asked = append(asked, fmt.Sprintf("%s %x %d", label, context, n))
		return bytes.Repeat([]byte{byte(len(asked))}, n), nil
	}
	const label, params = "EXPORTER_TLS_FOR_DTLS_IN_SCTP", "8006000a0102030401c08006000a0506070802c0"
	want := func(prefixes []string, key int) (list []string) {
		for _, p := range prefixes {
			for kind, n := range []int{key, key, 12} {
				list = append(list, fmt.Sprintf("%s %s0%d%s %d", label, p, kind, params, n))
			}
		}
		return list
	}
	s := must.Get(Export(export, seal.AES256GCM, testParams, true))(t)
	check.Slice(t, "exports", asked, want([]string{"0000", "0001", "0100", "0101"}, 32))
	for i, m := range []*seal.Material{&s.Primary[ByClient], &s.Restart[ByClient], &s.Primary[ByServer], &s.Restart[ByServer]} {
		first := byte(3*i + 1)
		check.That(t, m.Suite == seal.AES256GCM && m.Key[31] == first && m.SNKey[31] == first+1 && m.IV[11] == first+2,
			"material %d: %v", i, m)
	}
	asked = nil
	s = must.Get(Export(export, seal.AES128GCM, testParams, false))(t)
	check.Slice(t, "exports without restart", asked, want([]string{"0000", "0100"}, 16))
	check.That(t, !s.HasRestart && s.Restart == [2]seal.Material{}, "%+v", s)
}

// Any octet of a parameter makes all keys others.
func TestChangedParametersChangeAllKeys(t *testing.T) {
	// req dtlschunk-10.3-1
	export := func(label string, context []byte, n int) ([]byte, error) {
		b := make([]byte, n)
		for i, c := range context {
			b[i%n] ^= c + byte(i)
		}
		return b, nil
	}
	want := must.Get(Export(export, seal.AES128GCM, testParams, true))(t)
	for i := range 20 {
		p := Params{bytes.Clone(testParams.Client), bytes.Clone(testParams.Server)}
		append(append([][]byte{}, p.Client), p.Server)[i/10][i%10] ^= 1
		got := must.Get(Export(export, seal.AES128GCM, p, true))(t)
		for by := range 2 {
			check.That(t, got.Primary[by].Key != want.Primary[by].Key && got.Restart[by].Key != want.Restart[by].Key,
				"octet %d changes nothing", i)
		}
	}
}

func TestExportsThatFail(t *testing.T) {
	wrong := errors.New("no")
	for after := range 12 {
		n := 0
		_, err := Export(func(string, []byte, int) ([]byte, error) {
			if n++; n > after {
				return nil, wrong
			}
			return make([]byte, 16-n%3/2*4), nil
		}, seal.AES128GCM, testParams, true)
		check.That(t, err != nil, "%d exports: no error", after)
	}
	_, err := Export(func(_ string, _ []byte, n int) ([]byte, error) { return make([]byte, n), nil }, 0x1304, testParams, false)
	check.Error(t, "a suite that records cannot use", err, seal.ErrSuite)
}
