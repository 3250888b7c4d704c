package mutualtls

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
)

// errIdentityChanged is for a peer that is another one than in the first session (section 3.3).
var errIdentityChanged = errors.New("the peer shows the certificate of another identity than before")

// verify judges the certificate of the peer: by its issuer, by the program, and by the certificate
// of the first session.
func (i *Identity) verify(state tls.ConnectionState, first *x509.Certificate) error {
	certs := state.PeerCertificates
	if len(certs) == 0 {
		return errors.New("the peer shows no certificate")
	}
	if !i.programVerifies() {
		chains, err := certs[0].Verify(i.verifyOptions(certs[1:]))
		if err != nil {
			return &tls.CertificateVerificationError{UnverifiedCertificates: certs, Err: err}
		}
		state.VerifiedChains = chains
	}
	if f := i.base.VerifyPeerCertificate; f != nil {
		raw := make([][]byte, len(certs))
		for n, c := range certs {
			raw[n] = c.Raw
		}
		if err := f(raw, state.VerifiedChains); err != nil {
			return err
		}
	}
	if f := i.base.VerifyConnection; f != nil {
		if err := f(state); err != nil {
			return err
		}
	}
	if first != nil && !isSameIdentity(first, certs[0]) {
		return errIdentityChanged
	}
	return nil
}

func (i *Identity) verifyOptions(others []*x509.Certificate) x509.VerifyOptions {
	o := x509.VerifyOptions{CurrentTime: i.Now(), Intermediates: x509.NewCertPool()}
	for _, c := range others {
		o.Intermediates.AddCert(c)
	}
	if i.peerIsServer() {
		o.Roots, o.DNSName = i.base.RootCAs, i.base.ServerName
		o.KeyUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	} else {
		o.Roots, o.KeyUsages = i.base.ClientCAs, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	return o
}

// isSameIdentity reports whether two certificates name the same subject. Those that name nobody are
// the same if their keys are.
func isSameIdentity(a, b *x509.Certificate) bool {
	if bytes.Equal(a.RawSubjectPublicKeyInfo, b.RawSubjectPublicKeyInfo) {
		return true
	}
	names := identityNames(a)
	return len(names) > 0 && slices.Equal(names, identityNames(b)) && bytes.Equal(a.RawSubject, b.RawSubject)
}

// identityNames lists the subject's names, sorted.
func identityNames(c *x509.Certificate) (names []string) {
	for _, n := range c.DNSNames {
		names = append(names, "dns "+n)
	}
	for _, n := range c.EmailAddresses {
		names = append(names, "email "+n)
	}
	for _, n := range c.IPAddresses {
		names = append(names, "ip "+n.String())
	}
	for _, n := range c.URIs {
		names = append(names, "uri "+n.String())
	}
	if c.Subject.CommonName != "" {
		names = append(names, "cn "+c.Subject.CommonName)
	}
	slices.Sort(names)
	return names
}
