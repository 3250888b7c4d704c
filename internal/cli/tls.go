package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"io"
	"math/big"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
)

// TLSFlags are the flags that encrypt what a tool sends and receives.
type TLSFlags struct {
	certFile, keyFile, caFile string
	fingerprints              string
	selfSigned                bool

	program string
	stderr  io.Writer
	own     tls.Certificate
	roots   *x509.CertPool
	pinned  []fingerprint
	keyLog  io.Writer
}

// fingerprint is the SHA-256 of a certificate.
type fingerprint [sha256.Size]byte

func (p fingerprint) String() string { return hex.EncodeToString(p[:]) }

// Add defines the flags.
func (f *TLSFlags) Add(fs *pflag.FlagSet) {
	fs.StringVar(&f.certFile, "cert", "",
		"encrypt, and show the certificate in this `file` (PEM, with those of authorities in between)")
	fs.StringVar(&f.keyFile, "key", "", "the private key of --cert, a `file` (PEM)")
	fs.StringVar(&f.caFile, "ca", "",
		"let in peers with certificates of the authorities in this `file` (PEM); a server's has to be for HOST")
	fs.StringVar(&f.fingerprints, "fingerprint", "",
		"encrypt, and let in peers whose certificate has this SHA-256, in `hex`; several with commas between them")
	fs.BoolVar(&f.selfSigned, "insecure-self-signed", false,
		"encrypt with a certificate made for this run, and print its fingerprint. Without --fingerprint "+
			"anybody is let in")
}

// isOn reports whether anything is to be encrypted.
func (f *TLSFlags) isOn() bool {
	return f.certFile != "" || f.keyFile != "" || f.caFile != "" || f.fingerprints != "" || f.selfSigned
}

// check refuses combinations that make no sense.
func (f *TLSFlags) check(self bool) error {
	switch {
	case self && (f.certFile != "" || f.keyFile != "" || f.caFile != "" || f.fingerprints != ""):
		return Usagef("--self has both ends, which know each other: it takes --insecure-self-signed alone")
	case f.selfSigned && (f.certFile != "" || f.keyFile != "" || f.caFile != ""):
		return Usagef("--insecure-self-signed makes a certificate for this run: it takes no --cert, --key and --ca")
	case (f.certFile == "") != (f.keyFile == ""):
		return Usagef("--cert and --key belong together")
	case f.caFile != "" && f.fingerprints != "":
		return Usagef("--ca and --fingerprint: a peer is known by its authority, or by its certificate itself")
	case f.caFile != "" && f.certFile == "":
		return Usagef("--ca needs --cert and --key: both sides have to show a certificate")
	case f.certFile != "" && f.caFile == "" && f.fingerprints == "":
		return Usagef("--cert needs --ca or --fingerprint, which say who is let in")
	}
	return nil
}

// Open reads the certificates, or makes one. self says that both ends are in this process. Lines
// for people go to stderr.
func (f *TLSFlags) Open(program string, self bool, stderr io.Writer) (err error) {
	if !f.isOn() {
		return nil
	}
	f.program, f.stderr = program, stderr
	if err = f.check(self); err != nil {
		return err
	}
	if f.pinned, err = parseFingerprints(f.fingerprints); err != nil {
		return err
	}
	if f.caFile != "" {
		if f.roots, err = readAuthorities(f.caFile); err != nil {
			return err
		}
	}
	if f.certFile != "" {
		if f.own, err = tls.LoadX509KeyPair(f.certFile, f.keyFile); err != nil {
			return Usagef("--cert %s, --key %s: %v", f.certFile, f.keyFile, err)
		}
	} else {
		if f.own, err = selfSigned(time.Now()); err != nil {
			return err
		}
		switch own := fingerprintOf(f.own.Certificate[0]); {
		case self:
			f.pinned = []fingerprint{own}
		case f.selfSigned:
			f.say("the certificate of this side, made for this run, has the SHA-256 fingerprint %v", own)
			if len(f.pinned) == 0 {
				f.say("whoever answers, or calls, is let in: --fingerprint names who may")
			}
		}
	}
	return f.openKeyLog()
}

func (f *TLSFlags) say(format string, args ...any) {
	fmt.Fprintf(f.stderr, f.program+": "+format+"\n", args...)
}

// openKeyLog has secrets of handshakes written where SSLKEYLOGFILE says.
func (f *TLSFlags) openKeyLog() error {
	name := os.Getenv("SSLKEYLOGFILE")
	if name == "" {
		return nil
	}
	w, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("SSLKEYLOGFILE: %w", err)
	}
	f.keyLog = w
	f.say("warning: SSLKEYLOGFILE has the secrets of handshakes written to %s, for Wireshark to read them", name)
	return nil
}

// Config returns the configuration of one end, nil for packets in the clear. host is whom a client
// calls, empty for a server.
func (f *TLSFlags) Config(host string) *tls.Config {
	if !f.isOn() {
		return nil
	}
	c := &tls.Config{Certificates: []tls.Certificate{f.own}, KeyLogWriter: f.keyLog}
	if f.roots != nil {
		c.RootCAs, c.ClientCAs, c.ServerName = f.roots, f.roots, host
		return c
	}
	c.InsecureSkipVerify = true // a fingerprint is looked at instead
	var shown sync.Map
	c.VerifyConnection = func(s tls.ConnectionState) error {
		cert := s.PeerCertificates[0]
		if err := f.judge(cert, time.Now()); err != nil || host == "" || len(f.pinned) > 0 {
			return err
		}
		got := fingerprintOf(cert.Raw)
		if _, known := shown.LoadOrStore(got, true); !known {
			f.say("%s shows a certificate that nobody vouches for, with the SHA-256 fingerprint %v", host, got)
		}
		return nil
	}
	return c
}

// judge says whether a certificate is one of those that --fingerprint names, or any may come.
func (f *TLSFlags) judge(cert *x509.Certificate, now time.Time) error {
	if got := fingerprintOf(cert.Raw); len(f.pinned) > 0 && !slices.Contains(f.pinned, got) {
		return &FingerprintError{Got: got.String()}
	}
	if now.Before(cert.NotBefore) || now.After(cert.NotAfter) {
		return x509.CertificateInvalidError{Cert: cert, Reason: x509.Expired}
	}
	return nil
}

// FingerprintError is for a peer whose certificate --fingerprint does not name.
type FingerprintError struct{ Got string }

func (e *FingerprintError) Error() string {
	return "the certificate of the other side has the SHA-256 fingerprint " + e.Got +
		", which --fingerprint does not name"
}

func fingerprintOf(der []byte) fingerprint { return sha256.Sum256(der) }

// parseFingerprints takes what --fingerprint has, also as openssl prints it, with colons.
func parseFingerprints(list string) (all []fingerprint, err error) {
	if list == "" {
		return nil, nil
	}
	for text := range strings.SplitSeq(list, ",") {
		b, err := hex.DecodeString(strings.ReplaceAll(text, ":", ""))
		if err != nil || len(b) != sha256.Size {
			return nil, Usagef("--fingerprint %s: it is the SHA-256 of a certificate, 64 digits in hex", text)
		}
		all = append(all, fingerprint(b))
	}
	return all, nil
}

func readAuthorities(file string) (*x509.CertPool, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, Usagef("--ca: %v", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, Usagef("--ca %s: there is no certificate in it (PEM)", file)
	}
	return pool, nil
}

// selfSignedFor is how long a certificate is good that was made for a run. Clocks may differ by a
// day.
const selfSignedFor = 10 * 365 * 24 * time.Hour

// selfSigned makes a certificate that nobody vouches for.
func selfSigned(now time.Time) (c tls.Certificate, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return c, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return c, err
	}
	template := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: "self-signed for one run"},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(selfSignedFor), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
