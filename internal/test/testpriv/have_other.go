//go:build !linux

package testpriv

// have is false: capabilities are Linux's.
func have(string) bool { return false }
