package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// One copy is one session. The client offers a name and a size in the private data of its request.
// The server grants a window of exactly that size in the private data of its acceptance. The client
// fills the window by RDMA Writes and then seals it by a Send. The server answers by a Send with
// its verdict, at any time if something is wrong.
const (
	magic      = "rcopy v1"
	maxName    = 255 // octets, what file systems take
	maxText    = 255 // octets of a verdict's or a refusal's text
	sealLen    = 8 + sha256.Size
	tempPrefix = ".rcopy-" // of files that are not complete; no client may ask for such a name
)

var errProtocol = errors.New("the other side does not speak rcopy's protocol")

// offer is what the client wants to copy.
type offer struct {
	size uint64 // octets
	name string
}

func (o *offer) encode() []byte {
	b := append(make([]byte, 0, len(magic)+8+len(o.name)), magic...)
	b = binary.BigEndian.AppendUint64(b, o.size)
	return append(b, o.name...)
}

func (o *offer) decode(b []byte) error {
	b, ok := bytes.CutPrefix(b, []byte(magic))
	if !ok || len(b) < 8 {
		return errProtocol
	}
	o.size, o.name = binary.BigEndian.Uint64(b), string(b[8:])
	return nil
}

// grant is where the client may write. It has no meaning for a file of no octets.
type grant struct {
	stag uint32
	to   uint64
}

func (g *grant) encode() []byte {
	b := append(make([]byte, 0, len(magic)+12), magic...)
	b = binary.BigEndian.AppendUint32(b, g.stag)
	return binary.BigEndian.AppendUint64(b, g.to)
}

func (g *grant) decode(b []byte) error {
	b, ok := bytes.CutPrefix(b, []byte(magic))
	if !ok || len(b) != 12 {
		return errProtocol
	}
	g.stag, g.to = binary.BigEndian.Uint32(b), binary.BigEndian.Uint64(b[4:])
	return nil
}

// seal describes the content of the window.
type seal struct {
	size uint64
	sum  [sha256.Size]byte
}

func (s *seal) encode() []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, sealLen), s.size), s.sum[:]...)
}

func (s *seal) decode(b []byte) error {
	if len(b) != sealLen {
		return errProtocol
	}
	s.size = binary.BigEndian.Uint64(b)
	copy(s.sum[:], b[8:])
	return nil
}

// verdict is the server's last message: the file is stored, or why it is not.
type verdict struct {
	stored bool
	text   string
}

func (v *verdict) encode() []byte {
	b := []byte{0}
	if v.stored {
		b[0] = 1
	}
	return append(b, clip(v.text)...)
}

func (v *verdict) decode(b []byte) error {
	if len(b) == 0 || b[0] > 1 {
		return errProtocol
	}
	v.stored, v.text = b[0] == 1, string(b[1:])
	return nil
}

func clip(s string) string { return s[:min(len(s), maxText)] }

// checkName refuses a name that is not the plain name of a file in the server's directory.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("the name is empty")
	case len(name) > maxName:
		return errors.New("the name is longer than 255 octets")
	case !utf8.ValidString(name):
		return errors.New("the name is not UTF-8")
	case strings.ContainsAny(name, `/\`):
		return errors.New("the name is a path; only a plain name is taken")
	case strings.ContainsFunc(name, unicode.IsControl):
		return errors.New("the name has control characters")
	case name == "." || !filepath.IsLocal(name):
		return errors.New("the name is not that of a file")
	case strings.HasPrefix(name, tempPrefix):
		return errors.New("names that begin with " + tempPrefix + " are reserved")
	}
	return nil
}
