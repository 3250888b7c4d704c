//go:build !linux

package testpriv

// hasCapability is false: capabilities are Linux's.
func hasCapability(string) bool { return false }
