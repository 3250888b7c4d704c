package cli

import (
	"strings"
	"unicode"
)

// PrintableLines is Printable for text of several lines.
func PrintableLines(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) && r != '\n' && r != '\t' {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// Printable replaces the characters of a peer's text that a terminal would obey instead of showing.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
