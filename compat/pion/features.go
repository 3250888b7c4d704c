package sctp

import (
	"errors"
	"fmt"
)

// Errors of what the stack does not do yet. They match errors.ErrUnsupported.
var (
	errNoReset  = fmt.Errorf("sctp: streams cannot be reset yet (RFC 6525): %w", errors.ErrUnsupported)
	errNoTokens = fmt.Errorf("sctp: no association by SNAP tokens yet: %w", errors.ErrUnsupported)
)

// resetOutgoing resets the stream towards the peer.
func (s *Stream) resetOutgoing() error { return errNoReset }

// GenerateOutOfBandToken returns the INIT chunk of an association to be set up by WithSNAP.
func GenerateOutOfBandToken(opts ...ClientOption) ([]byte, error) {
	if _, err := settingsOf(opts, ClientOption.setForClient); err != nil {
		return nil, err
	}
	return nil, errNoTokens
}
