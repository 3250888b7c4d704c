//go:build !linux

package main

func ownNamespace() bool { return false }
