// Package rddplayers holds the fuzz target of the gopacket layers: whatever decodes is compared
// with what the stack makes of it, and serializes to the same octets.
package rddplayers
