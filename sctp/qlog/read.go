package qlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// Record is an event of a trace.
type Record struct {
	Time  float64         `json:"time"` // milliseconds since the trace was begun
	Name  string          `json:"name"`
	Group string          `json:"group_id"` // the source, and the number of the association
	Data  json.RawMessage `json:"data"`
}

// ErrNoTrace says that what was read is no trace of SCTP.
var ErrNoTrace = errors.New("it is no trace: ddpping and ddpbench write one with --trace")

// maxRecordOctets is how many octets a record has at most.
const maxRecordOctets = 1 << 20

// Read reads a file and hands out its events. Records that a full disk has cut off are passed over:
// bad is how many. It fails with ErrNoTrace, with the error of r, and with that of each.
func Read(r io.Reader, each func(*Record) error) (head Head, bad int, err error) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxRecordOctets)
	s.Split(bySeparator)
	for n := 0; s.Scan(); {
		b := bytes.TrimSpace(s.Bytes())
		if len(b) == 0 {
			continue
		}
		if n++; n == 1 {
			if json.Unmarshal(b, &head) != nil || head.FileSchema != fileSchema || len(head.Trace.Schemas) != 1 ||
				head.Trace.Schemas[0] != Schema {
				return head, 0, ErrNoTrace
			}
			continue
		}
		var e Record
		if json.Unmarshal(b, &e) != nil || e.Name == "" {
			bad++
			continue
		}
		if err := each(&e); err != nil {
			return head, bad, err
		}
	}
	if err := s.Err(); err != nil {
		return head, bad, errors.Join(ErrNoTrace, err)
	}
	if head.FileSchema == "" {
		return head, bad, ErrNoTrace
	}
	return head, bad, nil
}

// bySeparator cuts a JSON text sequence into its texts.
func bySeparator(b []byte, end bool) (n int, text []byte, err error) {
	if i := bytes.IndexByte(b, recordSeparator); i >= 0 {
		return i + 1, b[:i], nil
	}
	if end && len(b) > 0 {
		return len(b), b, nil
	}
	return 0, nil, nil
}
