package cli

import (
	"strings"
	"unicode"
)

// Printable replaces what a terminal would obey instead of showing, in text that came from the peer.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
