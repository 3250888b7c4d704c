package keymgmt

import "fmt"

// Failure says why an association is aborted by its key management.
type Failure struct {
	Why Reason
	Err error // what TLS says; nil: it is not about that
}

// Reason is the kind of a Failure.
type Reason uint8

// The reasons.
const (
	// HandshakeFailed: the first TLS handshake has failed. Err says why.
	HandshakeFailed Reason = iota + 1
	// HandshakeTimeout: the first TLS handshake has not ended in time.
	HandshakeTimeout
	// KeysExpired: the keys in use have reached a limit, and could not be replaced. Err is what the
	// last attempt has failed for.
	KeysExpired
	// MalformedMessage: a message of key management is no such message.
	MalformedMessage
	// KeyingFailed: keys could not be installed. Err says why.
	KeyingFailed
)

var reasonTexts = [...]string{
	HandshakeFailed:  "the TLS handshake has failed",
	HandshakeTimeout: "the TLS handshake has not ended in time",
	KeysExpired:      "the keys are at their limit and could not be replaced",
	MalformedMessage: "the peer has sent a malformed message of key management",
	KeyingFailed:     "the keys could not be installed",
}

// Error says what has failed, and what TLS says about it.
func (f *Failure) Error() string {
	text := fmt.Sprintf("failure %d", f.Why)
	if int(f.Why) < len(reasonTexts) && reasonTexts[f.Why] != "" {
		text = reasonTexts[f.Why]
	}
	if f.Err != nil {
		return "sctp: key management: " + text + ": " + f.Err.Error()
	}
	return "sctp: key management: " + text
}

// Unwrap returns what TLS says.
func (f *Failure) Unwrap() error { return f.Err }
