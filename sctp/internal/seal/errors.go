package seal

import "fmt"

// Error says why a record was not sealed or opened, or a key not installed. Values are constants:
// compare them with == or errors.Is.
type Error uint8

const (
	// ErrRecordLength: the record is too short to hold a content type, or longer than 2^14 octets
	// of content allow. Drop the packet.
	ErrRecordLength Error = iota + 1
	// ErrRecordHeader: the header is not the only one that DTLS chunks use. Drop the packet.
	ErrRecordHeader
	// ErrNoKey: there is no key of that epoch, or none to seal with. Drop the packet.
	ErrNoKey
	// ErrReplayed: the record was opened before, or is older than the replay window. Drop the
	// packet.
	ErrReplayed
	// ErrNotAuthentic: the record was not sealed with the key, or was changed. Drop the packet.
	ErrNotAuthentic
	// ErrContentType: the record holds no application data. Drop the packet.
	ErrContentType
	// ErrKeyExhausted: the key has reached a limit and is not used any more. Install another.
	ErrKeyExhausted
	// ErrContentLength: there is nothing to seal, or more than 2^14 octets.
	ErrContentLength
	// ErrSuite: the cipher suite is none of Suites.
	ErrSuite
	// ErrKeyLength: a key, a sequence number key or an IV does not have the length of the suite.
	ErrKeyLength
	// ErrEpoch: the epoch is not the next one, or a restart key has no primary key of its epoch.
	ErrEpoch
	// ErrStillDraining: receive keys of two epochs are there, and the older is to be removed first.
	ErrStillDraining

	numErrors
)

var errorTexts = [numErrors]string{
	ErrRecordLength:  "record is too short or too long; drop the packet",
	ErrRecordHeader:  "record header is not that of a DTLS chunk; drop the packet",
	ErrNoKey:         "no key of that epoch; drop the packet",
	ErrReplayed:      "record was opened before or is too old; drop the packet",
	ErrNotAuthentic:  "record is not authentic; drop the packet",
	ErrContentType:   "record holds no application data; drop the packet",
	ErrKeyExhausted:  "key has reached a limit; install another",
	ErrContentLength: "content is empty or longer than 16384 octets",
	ErrSuite:         "cipher suite is not offered",
	ErrKeyLength:     "key or IV does not have the length of its cipher suite",
	ErrEpoch:         "epoch is not the next one, or has no primary key",
	ErrStillDraining: "receive keys of two epochs are in use; remove the older first",
}

// Error returns what is wrong and what to do about it.
func (e Error) Error() string {
	if int(e) < len(errorTexts) && errorTexts[e] != "" {
		return "seal: " + errorTexts[e]
	}
	return fmt.Sprintf("seal: error %d", uint8(e))
}
