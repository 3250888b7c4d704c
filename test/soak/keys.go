//go:build linux

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"github.com/rddp-go/rddp/sctp"
)

// keyRing is what a process needs for encrypted associations, which outlives it: its certificate, and
// keys by which associations are restarted after a kill.
type keyRing struct {
	tls    *tls.Config
	folder string
	stores map[string]sctp.RestartStore // of each device
}

// makeCertificate writes a certificate for the processes of a name, once.
func makeCertificate(dir, name string) (file string, err error) {
	file = filepath.Join(dir, name+".pem")
	if _, err = os.Stat(file); err == nil || !errors.Is(err, os.ErrNotExist) {
		return file, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return file, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(365 * 24 * time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return file, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return file, err
	}
	return file, os.WriteFile(file, append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})...), 0o600)
}

// openKeys reads what a process has been given. Without a certificate all goes in the clear.
func openKeys(certificate string) (*keyRing, error) {
	if certificate == "" {
		return &keyRing{}, nil
	}
	own, err := tls.LoadX509KeyPair(certificate, certificate)
	if err != nil {
		return nil, err
	}
	return &keyRing{folder: certificate + ".keys", stores: make(map[string]sctp.RestartStore),
		tls: &tls.Config{Certificates: []tls.Certificate{own}, InsecureSkipVerify: true,
			ClientAuth: tls.RequireAnyClientCert, VerifyConnection: func(tls.ConnectionState) error { return nil }}}, nil
}

// storeFor returns where a device keeps its keys for restarts, nil without encryption.
func (k *keyRing) storeFor(device string) (sctp.RestartStore, error) {
	if k.tls == nil || k.stores[device] != nil {
		return k.stores[device], nil
	}
	s, err := sctp.NewFileRestartStore(k.folder + "-" + device)
	if err == nil {
		k.stores[device] = s
	}
	return s, err
}
