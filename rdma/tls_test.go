package rdma

import (
	"crypto/tls"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp"
)

// Encryption that is asked for is not left out in silence, over neither network.
func TestDeviceDoesNotEncryptYet(t *testing.T) {
	d, err := NewDevice(nil, &Config{SCTP: sctp.Config{TLS: &tls.Config{}}})
	check.That(t, d == nil && err == ErrNoTLS, "%v, %v", d, err)
}
