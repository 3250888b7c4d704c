//go:build !linux

// Package testns gives tests network namespaces of their own. It exists on Linux only.
package testns
