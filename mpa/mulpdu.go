package mpa

// Limits of a ULPDU in octets (section 3).
const (
	MinMULPDU = 128
	MaxMULPDU = 64768
)

// MULPDU is the longest ULPDU whose FPDU fits a TCP segment of emss octets (section 4.5). markers
// says that Markers go with it. It is never below MinMULPDU, however short segments are.
func MULPDU(emss int, markers bool) int {
	n := emss - (crcLen + lengthLen + emss%4)
	if markers {
		n -= markerLen * ((emss + markerInterval - 1) / markerInterval)
	}
	return min(max(n, MinMULPDU), MaxMULPDU)
}
