package seal

import (
	"bytes"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// The vectors of the algorithms, of the documents that define them. The numbers of NIST's are
// those of "The Galois/Counter Mode of Operation", which NIST published with its vectors.
func TestCiphersAgreeWithTheirStandards(t *testing.T) {
	// req dtlschunk-3.1.1-1, dtlschunk-3.1.1-2
	const (
		gcmKey   = "feffe9928665731c6d6a8f9467308308"
		gcmText  = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
		gcmNonce = "cafebabefacedbaddecaf888"
		gcmData  = "feedfacedeadbeeffeedfacedeadbeefabaddad2"
		sunsc    = "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it."
	)
	for _, c := range []struct {
		name                         string
		suite                        Suite
		key, nonce, text, data, want string
	}{
		{"NIST 3", AES128GCM, gcmKey, gcmNonce, gcmText + "1aafd255", "",
			"42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091473f5985" +
				"4d5c2af327cd64a62cf35abd2ba6fab4"},
		{"NIST 4", AES128GCM, gcmKey, gcmNonce, gcmText, gcmData,
			"42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091" +
				"5bc94fbc3221a5db94fae95ae7121a47"},
		{"NIST 15", AES256GCM, gcmKey + gcmKey, gcmNonce, gcmText + "1aafd255", "",
			"522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad" +
				"b094dac5d93471bdec1a502270e3cc6c"},
		{"NIST 16", AES256GCM, gcmKey + gcmKey, gcmNonce, gcmText, gcmData,
			"522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662" +
				"76fc6ece0f4e1768cddf8853bb2d551b"},
		{"RFC 8439 section 2.8.2", ChaCha20Poly1305, "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
			"070000004041424344454647", string(toHex(sunsc)), "50515253c0c1c2c3c4c5c6c7",
			"d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36" +
				"92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc3ff4def08e4b7a9de576d26586cec64b6116" +
				"1ae10b594f09e26a7e902ecbd0600691"},
	} {
		t.Run(c.name, func(t *testing.T) {
			key := parseHex(t, c.key)
			m := must.Get(NewMaterial(c.suite, key, key, parseHex(t, c.nonce)))(t)
			rc := must.Get(newRecordCipher(&m))(t)
			got := rc.aead.Seal(nil, rc.nonceOf(0), parseHex(t, c.text), parseHex(t, c.data))
			check.Slice(t, "sealed", got, parseHex(t, c.want))
		})
	}
}

func toHex(s string) (h []byte) {
	const digits = "0123456789abcdef"
	for _, c := range []byte(s) {
		h = append(h, digits[c>>4], digits[c&15])
	}
	return h
}

// Sequence numbers are encrypted by one block of AES, or the first octets of a block of ChaCha20,
// whose counter comes first (RFC 9147 section 4.2.3).
func TestMasksAgreeWithTheStandardsOfTheCiphers(t *testing.T) {
	// req dtlschunk-5.2-5: the mask
	const upTo31 = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	for _, c := range []struct {
		name        string
		suite       Suite
		key, sample string
		want        uint16
	}{
		{"FIPS 197, 128 bits", AES128GCM, upTo31[:32], "00112233445566778899aabbccddeeff", 0x69c4},
		{"FIPS 197, 256 bits", AES256GCM, upTo31, "00112233445566778899aabbccddeeff", 0x8ea2},
		{"RFC 8439 section 2.3.2", ChaCha20Poly1305, upTo31, "01000000000000090000004a00000000", 0x10f1},
		// What a peer sends is the counter: the highest one has a block too, and no panic.
		{"highest counter", ChaCha20Poly1305, upTo31, "ffffffff000000090000004a00000000", 0xff29},
	} {
		t.Run(c.name, func(t *testing.T) {
			key := parseHex(t, c.key)
			m := must.Get(NewMaterial(c.suite, key, key, make([]byte, IVLen)))(t)
			rc := must.Get(newRecordCipher(&m))(t)
			check.Equal(t, "mask", rc.maskOf(append(parseHex(t, c.sample), 9, 9)), c.want)
		})
	}
}

func TestMaterialHasTheLengthsOfItsSuite(t *testing.T) {
	for _, c := range []struct {
		name             string
		suite            Suite
		key, snKey, ivLn int
		want             error
	}{
		{"AES-128", AES128GCM, 16, 16, 12, nil},
		{"AES-256", AES256GCM, 32, 32, 12, nil},
		{"ChaCha20", ChaCha20Poly1305, 32, 32, 12, nil},
		{"short key", AES256GCM, 16, 32, 12, ErrKeyLength},
		{"short sequence number key", AES256GCM, 32, 16, 12, ErrKeyLength},
		{"long key", AES128GCM, 32, 16, 12, ErrKeyLength},
		{"short IV", ChaCha20Poly1305, 32, 32, 8, ErrKeyLength},
		{"CCM", 0x1304, 16, 16, 12, ErrSuite},
		{"none", 0, 0, 0, 12, ErrSuite},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := NewMaterial(c.suite, bytes.Repeat([]byte{1}, c.key), bytes.Repeat([]byte{2}, c.snKey),
				bytes.Repeat([]byte{3}, c.ivLn))
			check.Error(t, "error", err, c.want)
			if c.want == nil {
				n := c.suite.KeyLen()
				check.That(t, m.Key[n-1] == 1 && m.SNKey[n-1] == 2 && m.IV[IVLen-1] == 3, "%+v", m)
			}
		})
	}
	_, err := newRecordCipher(&Material{Suite: 0x1304})
	check.Error(t, "a cipher of no suite", err, ErrSuite)
}

func TestSuitesHaveTheNamesOfTheRegistry(t *testing.T) {
	var names []string
	for _, s := range append(Suites(), 0x1305) {
		names = append(names, s.String())
	}
	check.Slice(t, "names", names, []string{"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384",
		"TLS_CHACHA20_POLY1305_SHA256", "cipher suite 0x1305"})
}
